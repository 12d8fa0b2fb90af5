"""Routes of nanobot's session keys: ``CHANNEL:CHAT``, some with a topic or a thread."""

from __future__ import annotations

from typing import Final

from clew.core.route import Route

#: Channels that are no chats: a terminal, a page, jobs.
_NO_CHATS: Final = frozenset({"cli", "api", "cron", "heartbeat", "system", "websocket", "unified"})
_DM, _GROUP = "dm", "group"


def list_routes(key: str) -> list[Route]:
    """Return the routes of a session key; both where it does not tell a chat from a group."""
    channel, _, rest = key.partition(":")
    parts = [part for part in rest.split(":") if part not in ("topic", "thread")]
    if channel in _NO_CHATS or not parts or not parts[0]:
        return []
    if parts[0] == _GROUP and len(parts) > 1:
        return [
            Route(platform=channel, kind=_GROUP, chat=parts[1], user=":".join(parts[2:]) or None)
        ]
    thread = ":".join(parts[1:]) or None
    kinds = _guess_kinds(channel, parts[0], thread)
    return [Route(platform=channel, kind=kind, chat=parts[0], thread=thread) for kind in kinds]


def _guess_kinds(channel: str, chat: str, thread: str | None) -> list[str]:
    if channel == "telegram":
        return [_GROUP if chat.startswith("-") else _DM]
    if channel == "slack":
        return [_DM if chat.startswith("D") else _GROUP]
    if channel == "discord":
        # The ids of both look the same; the route of the other kind is never used.
        return [_GROUP] if thread else [_DM, _GROUP]
    return [_DM]
