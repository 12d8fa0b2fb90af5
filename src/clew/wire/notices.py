"""
Events as clients get them: the notification ``event``.

``seq`` is the last entry that was told, an ``entry`` event's own included: who comes again
subscribes ``after`` it and misses nothing. Text in ``delta`` and ``snapshot`` is provisional: any
later ``entry`` or ``turn_closed`` takes its place, ``retracted`` makes it void.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, get_args

from pydantic import Field, TypeAdapter

from clew.wire.records import Shape, StateShape


class Notice(Shape):
    """What every event carries; ``session`` is the one in which it happened."""

    conversation: str
    session: str
    seq: int


class EntryNotice(Notice):
    """An entry is stored."""

    type: Literal["entry"]
    kind: Literal["message", "attempt", "event"]
    turn: str | None
    role: Literal["user", "assistant", "tool"] | None
    text: str
    message: Any
    created_at: str


class DeltaNotice(Notice):
    """A piece of the response that is being made."""

    type: Literal["delta"]
    turn: str
    kind: Literal["text", "thinking"]
    text: str


class SnapshotNotice(Notice):
    """The text of the response that is being made, so far: for those who come late."""

    type: Literal["snapshot"]
    turn: str
    text: str


class RetractedNotice(Notice):
    """The pieces since the last entry are void: the request is made again."""

    type: Literal["retracted"]
    turn: str
    reason: str


class ToolNotice(Notice):
    """A tool call is about to run (``status`` is null), or was answered."""

    type: Literal["tool"]
    turn: str
    call: str
    tool: str
    args: str
    status: str | None


class TurnBegunNotice(Notice):
    """Somebody works on the turn, for the first time or again."""

    type: Literal["turn_begun"]
    turn: str


class TurnClosedNotice(Notice):
    """The turn has its outcome; every entry of it came before this."""

    type: Literal["turn_closed"]
    turn: str
    outcome: Literal["answered", "failed", "cancelled"] | None
    error: str | None
    code: str | None


class StateNotice(Notice):
    """
    What the conversation is doing and what waits in it: at first, then whenever it changes.

    Every entry that was stored when it was read is told before it; the last one is right.
    """

    type: Literal["state"]
    state: StateShape


class DeletedNotice(Notice):
    """The conversation is gone, and with it the subscription."""

    type: Literal["deleted"]


class EndedNotice(Notice):
    """The subscription has ended: subscribe again ``after`` this ``seq``."""

    type: Literal["ended"]
    reason: str


AnyNotice = (
    EntryNotice
    | DeltaNotice
    | SnapshotNotice
    | RetractedNotice
    | ToolNotice
    | TurnBegunNotice
    | TurnClosedNotice
    | StateNotice
    | DeletedNotice
    | EndedNotice
)
#: Every kind of event.
NOTICES: tuple[type[Notice], ...] = get_args(AnyNotice)

_ADAPTER: TypeAdapter[AnyNotice] = TypeAdapter(
    Annotated[AnyNotice, Field(discriminator="type")], config=None
)


def read_notice(params: object) -> AnyNotice | None:
    """An event as it was received; ``None`` for a kind that this program does not know."""
    if not isinstance(params, dict) or params.get("type") not in _TYPES:  # pyright: ignore[reportUnknownMemberType]
        return None
    return _ADAPTER.validate_python(params, extra="ignore")


_TYPES = frozenset(get_args(notice.model_fields["type"].annotation)[0] for notice in NOTICES)
