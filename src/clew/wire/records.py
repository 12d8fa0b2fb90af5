"""
Records as clients get them: the models behind ``shapes``, the same for HTTP and JSON-RPC.

Moments are text in UTC, to the millisecond: ``2026-01-31T12:00:00.000Z``.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict


class Shape(BaseModel):
    """What a client gets."""

    # Built when it is first used: importing all of them costs next to nothing.
    model_config = ConfigDict(strict=True, extra="forbid", defer_build=True)


class SessionShape(Shape):
    """A view on the log that fits a context window; ``predecessor`` and reasons are its lineage."""

    id: str
    predecessor: str | None
    opened_at: str
    opened_by: str
    #: The last entry before it opened.
    opened_seq: int = 0
    ended_at: str | None
    end_reason: str | None
    messages: int


class OriginShape(Shape):
    """Where a branch or an import came from."""

    id: str
    seq: int | None


class ConversationShape(Shape):
    """A lasting thread of talk; ``entries`` is the seq of its last entry."""

    id: str
    title: str | None
    head_session: str
    scope: str
    entries: int
    created_at: str
    updated_at: str
    routes: list[str]
    origin: OriginShape | None
    sessions: list[SessionShape]


class ConversationList(Shape):
    items: list[ConversationShape]
    next: str | None


class EntryShape(Shape):
    """One numbered thing of the log; ``message`` is it as the model library has it."""

    seq: int
    kind: Literal["message", "attempt", "event"]
    session: str
    turn: str | None
    role: Literal["user", "assistant", "tool"] | None
    text: str
    message: Any
    created_at: str


class EntryList(Shape):
    items: list[EntryShape]
    next: str | None


class HitShape(Shape):
    """A message that was looked for."""

    conversation: str
    seq: int
    role: Literal["user", "assistant", "tool"]
    title: str | None
    snippet: str
    created_at: str


class HitList(Shape):
    items: list[HitShape]
    next: str | None


class CompactedShape(Shape):
    """What came of a compaction; ``note`` is the summary, or why nothing was done."""

    moved: bool
    session: str
    messages_before: int
    messages_after: int
    tokens_before: int
    tokens_after: int
    note: str


class LineShape(Shape):
    """One message of a context; ``seq`` is none for what stands for others."""

    seq: int | None
    role: str
    text: str
    tokens: int
    message: Any


class TurnShape(Shape):
    """A turn that is not done: running, or waiting for a person's word."""

    id: str
    state: Literal["running", "waiting"]
    #: It was asked to stop.
    stopping: bool
    started_at: str


class QueuedShape(Shape):
    """An input that waits; only messages can be edited."""

    inbox_id: str
    kind: Literal["message", "command", "expiry", "completion"]
    text: str
    double_text: Literal["queue", "steer", "collect", "interrupt", "rollback", "reject"]
    received_at: str


class ApprovalShape(Shape):
    """A tool call that waits for a person's word; ``args`` is the JSON that would run."""

    id: str
    turn: str
    call: str
    tool: str
    args: str
    state: Literal["open", "approved", "denied", "expired"]
    asked_at: str
    expires_at: str
    answered_by: str | None
    note: str | None


class SpanShape(Shape):
    """The entries from ``first`` to ``last``, both included."""

    first: int
    last: int


class StateShape(Shape):
    """What a conversation is doing, and what waits in it."""

    title: str | None
    head_session: str
    #: The head has ended; the next message opens its successor.
    closed: bool
    model: str
    turn: TurnShape | None
    queue: list[QueuedShape]
    approvals: list[ApprovalShape]
    #: Entries that somebody went back over: they are kept, and out of the conversation.
    taken_back: list[SpanShape]


class UsageShape(Shape):
    """What was used so far; ``cost`` in US dollars where the price is known."""

    input_tokens: int
    cached_tokens: int
    output_tokens: int
    cost: float | None
    #: The context of the next message, an estimate, and what the model takes at most.
    context_tokens: int
    context_window: int | None
