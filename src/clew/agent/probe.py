"""One tiny request, to see whether a model answers."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from pydantic_ai.direct import model_request
from pydantic_ai.messages import ModelRequest
from pydantic_ai.settings import ModelSettings

from clew.agent.failures import Failure, FailureKind, classify

if TYPE_CHECKING:
    from clew.agent.models import Model

#: Some providers refuse a lower limit.
_FEW = 16


async def probe(model: Model, *, patience: float) -> Failure | None:
    """Ask a model for a word within ``patience`` seconds; why it failed, ``None`` if it did not."""
    try:
        async with asyncio.timeout(patience):
            await model_request(
                model,
                [ModelRequest.user_text_prompt("Say ok.")],
                model_settings=ModelSettings(max_tokens=_FEW),
            )
    except TimeoutError:
        text = f"it said nothing for {patience:.0f} seconds"
        return Failure(kind=FailureKind.TIMEOUT, text=text)
    except Exception as error:  # noqa: BLE001  (whatever a provider raises is what was asked for)
        return classify(error)
    return None
