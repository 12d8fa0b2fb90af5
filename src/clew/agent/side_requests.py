"""Requests to a model beside the conversation: one prompt, no tools, nothing stored."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from pydantic_ai.direct import model_request
from pydantic_ai.messages import BinaryContent, ModelRequest, UserPromptPart
from pydantic_ai.settings import ModelSettings

from clew.agent.messages import extract_text
from clew.core.attachments import image_media_type
from clew.core.side_answer import SideAnswer

if TYPE_CHECKING:
    from pydantic_ai.messages import UserContent

    from clew.agent.models import Model


async def request_side_answer(
    model: Model, prompt: str, *, max_tokens: int, seconds: float, picture: bytes | None = None
) -> SideAnswer:
    """Return the model's answer to one prompt; errors of the model are raised."""
    said: list[UserContent] = [prompt]
    if picture is not None:
        kind = image_media_type(picture) or "application/octet-stream"
        said.append(BinaryContent(data=picture, media_type=kind))
    async with asyncio.timeout(seconds):
        response = await model_request(
            model,
            [ModelRequest(parts=[UserPromptPart(prompt if picture is None else said)])],
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
