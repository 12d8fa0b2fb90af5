"""Probe that checks with one tiny request if a model answers."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from pydantic_ai.direct import model_request
from pydantic_ai.messages import ModelRequest
from pydantic_ai.settings import ModelSettings

from clew.agent.provider_errors import FailureKind, ProviderFailure, classify_error

if TYPE_CHECKING:
    from clew.agent.models import Model

#: Some providers refuse a lower limit.
_MAX_OUTPUT_TOKENS = 16


async def probe_model(model: Model, *, patience: float) -> ProviderFailure | None:
    """Send the request; return the failure within ``patience`` seconds, ``None`` on success."""
    try:
        async with asyncio.timeout(patience):
            await model_request(
                model,
                [ModelRequest.user_text_prompt("Say ok.")],
                model_settings=ModelSettings(max_tokens=_MAX_OUTPUT_TOKENS),
            )
    except TimeoutError:
        text = f"it said nothing for {patience:.0f} seconds"
        return ProviderFailure(kind=FailureKind.TIMEOUT, text=text)
    except Exception as error:  # noqa: BLE001  (any error of a provider is classified)
        return classify_error(error)
    return None
