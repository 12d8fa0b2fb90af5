"""Responses API for ``openai_client``: apart, since only its users need these imports."""

from __future__ import annotations

from typing import Any

from openai.resources.responses import AsyncResponses

from clew.agent.openai_transform import bypass_transform

__all__ = ["Responses"]


class Responses(AsyncResponses):
    """Responses API whose ``create`` lets long lists bypass the transform."""

    async def create(self, **arguments: Any) -> Any:
        create: Any = super().create
        return await create(**bypass_transform(arguments, "input", "tools"))
