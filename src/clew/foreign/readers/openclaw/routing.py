"""Chats of OpenClaw."""

from __future__ import annotations

from typing import Final

from clew.core.route import Route

_KINDS: Final = {"direct": "dm", "dm": "dm", "group": "group", "channel": "group"}


def list_routes(key: str) -> list[Route]:
    """Return the chat of a session key, ``agent:ID:CHANNEL:direct:PEER[:thread:ID]``, if any."""
    parts = key.split(":")
    if len(parts) not in (5, 7) or parts[0] != "agent" or parts[3] not in _KINDS or not all(parts):
        return []
    thread = parts[6] if len(parts) == 7 else None
    return [Route(platform=parts[2], kind=_KINDS[parts[3]], chat=parts[4], thread=thread)]
