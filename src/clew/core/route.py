"""
Routes: addresses on a front, written as session keys.

::

    agent:AGENT:local:NAME                        CLI, HTTP, JSON-RPC
    agent:AGENT:PLATFORM:KIND:CHAT                a chat (KIND: dm, group, channel …)
    … :account:A  :user:U  :thread:T              in this order, where they tell chats apart

Inside a part, ``%`` is written ``%25`` and ``:`` is written ``%3A``, so the parts of a key are
found by splitting at ``:`` and nothing that a platform puts into an id can be taken for structure.
A key without a KIND has an even number of parts, one with a KIND an odd number: no key can be read
in two ways.
"""

from __future__ import annotations

from typing import NewType
from urllib.parse import unquote

from clew.core.ids import looks_like_id
from clew.errors import UsageError
from clew.record import Record

RouteKey = NewType("RouteKey", str)

LOCAL = "local"
#: The agent that the settings describe without a name.
MAIN_AGENT = "main"
_MARKERS = ("account", "user", "thread")


def quote_part(part: str) -> str:
    """Return a part as session keys have it."""
    if not part:
        raise UsageError(
            "a part of a session key is empty: every part needs at least one character"
        )
    return part.replace("%", "%25").replace(":", "%3A")


class Route(Record):
    """Address on a front; ``key`` is its only written form."""

    agent: str = MAIN_AGENT
    platform: str
    #: dm, group, channel …; ``None`` for ``local``, which has names instead of chats.
    kind: str | None = None
    #: The chat's id, or the NAME of a local route.
    chat: str
    #: One of several accounts (bot tokens) of the platform.
    account: str | None = None
    #: Set where each member of a group has a separate conversation.
    user: str | None = None
    thread: str | None = None

    @property
    def key(self) -> RouteKey:
        parts = [self.agent, self.platform]
        if self.kind is not None:
            parts.append(self.kind)
        parts.append(self.chat)
        for mark in _MARKERS:
            value: str | None = getattr(self, mark)
            if value is not None:
                parts += [mark, value]
        return RouteKey(":".join(["agent", *map(quote_part, parts)]))

    @property
    def channel(self) -> str:
        """Return the NAME of its channel in the settings."""
        return self.account or self.platform

    @classmethod
    def parse(cls, key: str) -> Route:
        """
        Parse a session key.

        :raises UsageError: if it is not a session key
        """
        parts = key.split(":")
        if parts[0] != "agent" or len(parts) < 4 or "" in parts:
            raise UsageError(
                f"{key!r} is not a session key: an example is agent:main:telegram:dm:42"
            )
        agent, platform, *rest = map(unquote, parts[1:])
        kind = rest.pop(0) if len(rest) % 2 == 0 else None
        route = cls(
            agent=agent, platform=platform, kind=kind, chat=rest[0], **_parse_markers(key, rest[1:])
        )
        if route.key != key:
            raise UsageError(f"{key!r} is not a session key: its normal form is {route.key!r}")
        return route


def _parse_markers(key: str, rest: list[str]) -> dict[str, str]:
    pairs = dict(zip(rest[::2], rest[1::2], strict=True))
    if unknown := pairs.keys() - set(_MARKERS):
        raise UsageError(f"{key!r} is not a session key: it has a part {min(unknown)!r}")
    return pairs


def local_route(name: str, *, agent: str = MAIN_AGENT) -> Route:
    """
    Return the route of a NAME used by CLI, HTTP and JSON-RPC.

    :raises UsageError: if the name looks like an id or a key, is empty, or has control
        characters
    """
    if not name or not name.isprintable() or len(name) > 200:
        raise UsageError("a conversation's name has 1 to 200 printable characters")
    if looks_like_id(name) or name.startswith("agent:"):
        raise UsageError(
            f"{name!r} has the form of an id, which a conversation's name may not have"
        )
    return Route(agent=agent, platform=LOCAL, chat=name)
