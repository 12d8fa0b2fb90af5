"""
Models of the records that clients get, the same for HTTP and JSON-RPC.

Timestamps are text in UTC with milliseconds: ``2026-01-31T12:00:00.000Z``.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict


class WireModel(BaseModel):
    """Base of everything that clients get."""

    # Built on first use, so that importing the models costs next to nothing.
    model_config = ConfigDict(strict=True, extra="forbid", defer_build=True)


class SessionShape(WireModel):
    """A view of the log that fits a context window, with its predecessor and reasons."""

    id: str
    predecessor: str | None
    opened_at: str
    opened_by: str
    #: The last entry before it opened.
    opened_seq: int = 0
    ended_at: str | None
    end_reason: str | None
    messages: int


class OriginShape(WireModel):
    """The source of a branch or an import."""

    id: str
    seq: int | None


class ConversationShape(WireModel):
    """A conversation; ``entries`` is the seq of its last entry."""

    id: str
    title: str | None
    head_session: str
    scope: str
    entries: int
    created_at: str
    updated_at: str
    routes: list[str]
    origin: OriginShape | None
    #: The system that it was imported from, and its id there: ``hermes:20260105``.
    imported_from: str | None = None
    sessions: list[SessionShape]


class ScopeShape(WireModel):
    """A person or a chat, with the number of their conversations."""

    scope: str
    conversations: int
    updated_at: str


class ScopeList(WireModel):
    items: list[ScopeShape]


class RelativeShape(WireModel):
    """A conversation that another was branched from, or that was; ``seq`` is where."""

    id: str
    seq: int | None
    title: str | None
    created_at: str


class LineageSessionShape(WireModel):
    """A session; ``summary`` is what a compaction left of the messages before it."""

    id: str
    opened_at: str
    opened_by: str
    #: The last entry before it opened.
    opened_seq: int
    ended_at: str | None
    end_reason: str | None
    summary: str | None
    #: The first of the newest entries that stay as they are beside the summary.
    kept_from: int | None


class LineageShape(WireModel):
    """The origin of a conversation, its sessions in order, and its branches."""

    conversation: str
    origin: RelativeShape | None
    sessions: list[LineageSessionShape]
    branches: list[RelativeShape]


class ConversationList(WireModel):
    items: list[ConversationShape]
    next: str | None


class FileShape(WireModel):
    """A file that is sent with an answer; ``path`` answers with its content."""

    id: str
    name: str
    media_type: str
    size: int
    sha256: str
    caption: str
    path: str


class EntryShape(WireModel):
    """An entry of the log; ``message`` is in the model library's format."""

    seq: int
    kind: Literal["message", "attempt", "event"]
    session: str
    turn: str | None
    role: Literal["user", "assistant", "tool"] | None
    text: str
    message: Any
    created_at: str
    #: Only of answers with files.
    files: list[FileShape] | None = None


class EntryList(WireModel):
    items: list[EntryShape]
    next: str | None


class HitShape(WireModel):
    """A message found by a search."""

    conversation: str
    seq: int
    role: Literal["user", "assistant", "tool"]
    title: str | None
    snippet: str
    created_at: str


class HitList(WireModel):
    items: list[HitShape]
    next: str | None


class CompactedShape(WireModel):
    """The result of a compaction; ``note`` is the summary, or why nothing was done."""

    moved: bool
    session: str
    messages_before: int
    messages_after: int
    tokens_before: int
    tokens_after: int
    note: str


class LineShape(WireModel):
    """A message of a context; ``seq`` is null if it replaces others."""

    seq: int | None
    role: str
    text: str
    tokens: int
    message: Any


class TurnShape(WireModel):
    """An unfinished turn: running, or waiting for approval."""

    id: str
    state: Literal["running", "waiting"]
    #: A stop was requested.
    stopping: bool
    started_at: str


class QueuedShape(WireModel):
    """A pending input; only messages can be edited."""

    inbox_id: str
    kind: Literal["message", "command", "expiry", "completion"]
    text: str
    double_text: Literal["queue", "steer", "collect", "interrupt", "rollback", "reject"]
    received_at: str


class ApprovalShape(WireModel):
    """A tool call that needs approval; ``args`` is the JSON to run."""

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
    #: The reason for the question.
    why: str | None = None
    #: The pattern that `keep` would allow; null if it can be allowed once only.
    offer: str | None = None
    #: Shown with the arguments, such as the diff of a write.
    preview: str | None = None


class GrantShape(WireModel):
    """Grant of a person for more than one call."""

    id: str
    #: The calls that it covers, in words.
    says: str
    tool: str
    scope: str
    #: Only there; null for all of the scope.
    conversation: str | None
    by: str
    created_at: str
    #: Null for never.
    expires_at: str | None
    revoked_at: str | None


class SpanShape(WireModel):
    """The entries from ``first`` to ``last``, both included."""

    first: int
    last: int


class StateShape(WireModel):
    """The state of a conversation and its pending inputs and approvals."""

    title: str | None
    head_session: str
    #: The head has ended; the next message opens its successor.
    closed: bool
    model: str
    turn: TurnShape | None
    queue: list[QueuedShape]
    approvals: list[ApprovalShape]
    #: Rewound entries: still in the log, no longer in the context.
    taken_back: list[SpanShape]


class UsageShape(WireModel):
    """The usage so far; ``cost`` in US dollars if the price is known."""

    input_tokens: int
    cached_tokens: int
    output_tokens: int
    cost: float | None
    #: The estimated context of the next message, and the limit of the model.
    context_tokens: int
    context_window: int | None
