"""The Responses API for ``openai_client``: apart, since only its users need what it imports."""

from __future__ import annotations

from typing import Any

from openai.resources.responses import AsyncResponses

from clew.agent.openai_client import hide

__all__ = ["Responses"]


class Responses(AsyncResponses):
    """``create`` with its long lists past the transform."""

    async def create(self, **arguments: Any) -> Any:
        create: Any = super().create
        return await create(**hide(arguments, "input", "tools"))
