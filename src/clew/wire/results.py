"""Results of the methods."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import ConfigDict

from clew.wire.models import (
    ApprovalShape,
    CompactedShape,
    ConversationShape,
    GrantShape,
    LineShape,
    QueuedShape,
    StateShape,
    UsageShape,
    WireModel,
)


class Opened(WireModel):
    """The conversation to which this client is now attached."""

    conversation: ConversationShape
    state: StateShape


class Status(Opened):
    """A conversation with its state and usage."""

    usage: UsageShape


class Closed(WireModel):
    """This client is detached; ``ends`` is true if that ends the session."""

    conversation: str
    ends: bool


class DeletedShape(WireModel):
    """A deletion; it can be undone until ``undo_until``, or never if that is null."""

    deleted: str
    undo_until: str | None


class WentBack(WireModel):
    """The session in which the conversation continues."""

    conversation: str
    session: str


class Undone(WentBack):
    """The session that continues, and the text of the message that was removed."""

    text: str


class Submitted(WireModel):
    """A stored message that will get an outcome."""

    inbox_id: str
    conversation: str
    #: The head when it was accepted; events name the session in which it is answered.
    session: str
    #: The number of inputs ahead of it.
    position: int


class InputResult(WireModel):
    """The outcome of an input, and the text for its sender."""

    inbox_id: str
    conversation: str
    #: The conversation's last entry by then: once an event carries it, all of the turn was told.
    seq: int
    outcome: Literal["turn", "merged", "steered", "executed", "cancelled", "rejected"]
    #: The turn that answered it; null for a command, a cancelled or a rejected input.
    turn: str | None
    turn_outcome: Literal["answered", "failed", "cancelled"] | None
    #: The answer or the failure, or the reply to a command.
    text: str
    #: The kind of failure of the turn.
    code: str | None
    #: Why it was cancelled or rejected.
    note: str | None
    #: The answer reached the limit of the model's output.
    cut: bool


class MessageAnswer(WireModel):
    """The answer to a message, or what keeps it."""

    inbox_id: str
    conversation: str
    #: `waiting`: `approvals` must be answered first. `done`: there will be nothing more.
    state: Literal["queued", "running", "waiting", "done"]
    turn: str | None
    #: The answer; with `error` what went wrong; empty until it is done.
    text: str
    #: Why there is no answer, for programs.
    error: str | None
    approvals: list[ApprovalShape]


class Retried(Undone):
    """The message that was queued again."""

    inbox_id: str


class Interrupted(WireModel):
    """True if a turn was running, and is stopping now."""

    stopping: bool


class CallShape(WireModel):
    """Facts of a tool call; ``why`` says why it ran or did not."""

    tool: str
    effect: Literal["pure", "idempotent", "once", "ask"]
    #: How often it was started.
    runs: int
    status: str | None
    why: str | None
    started_at: str
    finished_at: str | None


class ExportShape(WireModel):
    """A file that has an export."""

    file_name: str
    media_type: str
    content: str


class Compaction(CompactedShape):
    """The result of a compaction, or with ``dry_run`` a preview with its messages."""

    goes: list[LineShape] | None = None
    stays: list[LineShape] | None = None


class Queue(WireModel):
    items: list[QueuedShape]


class Cancelled(WireModel):
    """False if it was consumed already."""

    cancelled: bool


class Edited(WireModel):
    """False if it was consumed already, with its old text."""

    edited: bool


class Approvals(WireModel):
    items: list[ApprovalShape]


class Grants(WireModel):
    items: list[GrantShape]


class CommandShape(WireModel):
    """A chat command; a control command is answered at once, even during a turn."""

    name: str
    aliases: list[str]
    arguments: str
    help: str
    control: bool


class Commands(WireModel):
    items: list[CommandShape]


class CommandReply(WireModel):
    """The reply to a command, and the conversation that continues."""

    text: str
    conversation: str | None
    #: A message that was submitted again.
    inbox_id: str | None


class Completion(WireModel):
    """A text that can replace the input from ``start`` to the cursor."""

    text: str
    kind: Literal["command", "file", "folder"]
    help: str


class Completions(WireModel):
    """Completions of the text from ``start`` to ``end``, in characters."""

    start: int
    end: int
    items: list[Completion]


class SettingShape(WireModel):
    """A value as it may be shown (secrets are hidden), and its origin."""

    key: str
    value: Any
    origin: str


class SettingList(WireModel):
    items: list[SettingShape]
    #: The file that config.set writes.
    file: str


class SettingWritten(WireModel):
    """The file has the value; with ``restart`` it applies after the next start."""

    key: str
    file: str
    restart: bool
    note: str


class Models(WireModel):
    """The configured models; ``current`` is the conversation's, else the first."""

    items: list[str]
    current: str


class AgentShape(WireModel):
    """The agent of this server; ``offline``: a built-in script answers, not a model."""

    version: str
    model: str
    offline: bool
    #: Names; the tools of a tool server count as one.
    tools: list[str]
    #: The folder with its settings and data, on the server.
    home: str


class Subscribed(WireModel):
    """
    The start of a subscription; the first event is for the entry after ``after``.

    ``seq`` is the last entry when the subscription started: once an event carries it, the
    client is up to date.
    """

    conversation: str
    session: str
    after: int
    seq: int


class Unsubscribed(WireModel):
    """True if there was a subscription."""

    unsubscribed: bool


class Description(WireModel):
    """An OpenRPC document."""

    model_config = ConfigDict(extra="allow")

    openrpc: str
    info: dict[str, Any]
    methods: list[dict[str, Any]]
    components: dict[str, Any]
