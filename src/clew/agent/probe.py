"""Probe that checks with one tiny request if a model answers."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from pydantic_ai.direct import model_request, model_request_stream
from pydantic_ai.messages import ModelRequest
from pydantic_ai.settings import ModelSettings

from clew.agent.loop import raise_if_incomplete
from clew.agent.provider_errors import FailureKind, ProviderFailure, classify_error

if TYPE_CHECKING:
    from clew.agent.models import Model

#: Some providers refuse a lower limit.
_MAX_OUTPUT_TOKENS = 16


async def probe_model(
    model: Model, *, patience: float, streamed: bool = True
) -> ProviderFailure | None:
    """
    Send the request; return the failure within ``patience`` seconds, ``None`` on success.

    :param streamed: as a turn asks; summaries and titles are asked for in one piece
    """
    failure = await _find_failure(model, patience=patience, streamed=streamed)
    if streamed and failure is not None and failure.kind is FailureKind.BAD_REPLY:
        # In one piece, the library tells more about what came, such as a web page.
        return await _find_failure(model, patience=patience, streamed=False) or failure
    return failure


async def _find_failure(model: Model, *, patience: float, streamed: bool) -> ProviderFailure | None:
    try:
        async with asyncio.timeout(patience):
            await _send_request(model, streamed=streamed)
    except TimeoutError:
        text = f"it said nothing for {patience:.0f} seconds"
        return ProviderFailure(kind=FailureKind.TIMEOUT, text=text)
    except Exception as error:  # noqa: BLE001  (any error of a provider is classified)
        return classify_error(error)
    return None


async def _send_request(model: Model, *, streamed: bool) -> None:
    messages = [ModelRequest.user_text_prompt("Say ok.")]
    limited = ModelSettings(max_tokens=_MAX_OUTPUT_TOKENS)
    if not streamed:
        await model_request(model, messages, model_settings=limited)
        return
    async with model_request_stream(model, messages, model_settings=limited) as stream:
        async for _ in stream:
            pass
        raise_if_incomplete(stream.get())
