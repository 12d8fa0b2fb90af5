"""Requests to a model beside the conversation: one prompt, no tools, nothing stored."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from pydantic_ai.direct import model_request
from pydantic_ai.messages import ModelRequest
from pydantic_ai.settings import ModelSettings

from clew.agent.messages import extract_text
from clew.core.side_answer import SideAnswer

if TYPE_CHECKING:
    from clew.agent.models import Model


async def request_side_answer(
    model: Model, prompt: str, *, max_tokens: int, seconds: float
) -> SideAnswer:
    """Return the model's answer to one prompt; errors of the model are raised."""
    async with asyncio.timeout(seconds):
        response = await model_request(
            model,
            [ModelRequest.user_text_prompt(prompt)],
            model_settings=ModelSettings(max_tokens=max_tokens),
        )
    usage = response.usage
    return SideAnswer(
        text=extract_text(response),
        is_complete=response.finish_reason != "length",
        model=response.model_name or "unknown",
        input_tokens=usage.input_tokens,
        cached_tokens=usage.cache_read_tokens,
        output_tokens=usage.output_tokens,
    )
