"""
Models of the events that clients get: the notification ``event``.

``seq`` is the last entry sent, an ``entry`` event's own included: a client that subscribes
again ``after`` it misses nothing. Text in ``delta`` and ``snapshot`` is provisional: any
later ``entry`` or ``turn_closed`` replaces it, ``retracted`` invalidates it.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, get_args

from pydantic import Field, TypeAdapter

from clew.wire.models import FileShape, StateShape, WireModel


class Notice(WireModel):
    """Common fields of all events; ``session`` is the one in which the event occurred."""

    conversation: str
    session: str
    seq: int


class EntryNotice(Notice):
    """An entry was stored."""

    type: Literal["entry"]
    kind: Literal["message", "attempt", "event"]
    turn: str | None
    role: Literal["user", "assistant", "tool"] | None
    text: str
    message: Any
    created_at: str
    #: Only of answers with files.
    files: list[FileShape] | None = None


class DeltaNotice(Notice):
    """A piece of the current response."""

    type: Literal["delta"]
    turn: str
    kind: Literal["text", "thinking"]
    text: str


class SnapshotNotice(Notice):
    """The text of the current response so far, for clients that join late."""

    type: Literal["snapshot"]
    turn: str
    text: str


class RetractedNotice(Notice):
    """The pieces since the last entry are invalid: the request is repeated."""

    type: Literal["retracted"]
    turn: str
    reason: str


class ToolNotice(Notice):
    """A tool call is about to run (``status`` is null), or has its result."""

    type: Literal["tool"]
    turn: str
    call: str
    tool: str
    args: str
    status: str | None


class TurnBegunNotice(Notice):
    """Work on the turn starts, or resumes."""

    type: Literal["turn_begun"]
    turn: str


class TurnClosedNotice(Notice):
    """The turn has its outcome; all its entries were sent before."""

    type: Literal["turn_closed"]
    turn: str
    outcome: Literal["answered", "failed", "cancelled"] | None
    error: str | None
    code: str | None
    #: Where turns are traced.
    trace: str | None = None


class StateNotice(Notice):
    """
    The state of the conversation: sent at first, then on every change.

    Every entry stored when it was read is sent before it; the last one is authoritative.
    """

    type: Literal["state"]
    state: StateShape


class DeletedNotice(Notice):
    """The conversation was deleted, which ends the subscription."""

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
#: Every type of event.
NOTICE_TYPES: tuple[type[Notice], ...] = get_args(AnyNotice)

_NOTICE_ADAPTER: TypeAdapter[AnyNotice] = TypeAdapter(
    Annotated[AnyNotice, Field(discriminator="type")], config=None
)


def parse_notice(params: object) -> AnyNotice | None:
    """Parse a received event; return ``None`` for a type that this program does not know."""
    if not isinstance(params, dict) or params.get("type") not in _KNOWN_TYPES:  # pyright: ignore[reportUnknownMemberType]
        return None
    return _NOTICE_ADAPTER.validate_python(params, extra="ignore")


_KNOWN_TYPES = frozenset(
    get_args(notice.model_fields["type"].annotation)[0] for notice in NOTICE_TYPES
)
