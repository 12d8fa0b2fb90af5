"""What the methods give back."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import ConfigDict

from clew.wire.records import (
    ApprovalShape,
    CompactedShape,
    ConversationShape,
    LineShape,
    QueuedShape,
    Shape,
    StateShape,
    UsageShape,
)


class Opened(Shape):
    """The conversation that this client is attached to now."""

    conversation: ConversationShape
    state: StateShape


class Status(Shape):
    """A conversation, what it is doing, and what it has used."""

    conversation: ConversationShape
    state: StateShape
    usage: UsageShape


class Closed(Shape):
    """This client has left; ``ends`` says whether the session ends with that."""

    conversation: str
    ends: bool


class DeletedShape(Shape):
    """Until ``undo_until`` it can be brought back; null where it is gone for good."""

    deleted: str
    undo_until: str | None


class WentBack(Shape):
    """The session in which the conversation goes on."""

    conversation: str
    session: str


class Undone(Shape):
    """What the person had said before what was taken out."""

    conversation: str
    session: str
    text: str


class Submitted(Shape):
    """A message that is stored and will have an outcome."""

    inbox_id: str
    conversation: str
    #: The head when it was accepted; events name the session that it is answered in.
    session: str
    #: Inputs that stand before it.
    position: int


class Retried(Undone):
    """The message that stands in the line again."""

    inbox_id: str


class Interrupted(Shape):
    """Whether a turn was running, and ends now."""

    stopping: bool


class Compaction(CompactedShape):
    """What was done, or with ``dry_run`` would be: then with what goes and what stays."""

    goes: list[LineShape] | None = None
    stays: list[LineShape] | None = None


class Queue(Shape):
    items: list[QueuedShape]


class Cancelled(Shape):
    """False: it was consumed already."""

    cancelled: bool


class Edited(Shape):
    """False: it was consumed already, and has the text that it had."""

    edited: bool


class Approvals(Shape):
    items: list[ApprovalShape]


class CommandShape(Shape):
    """A chat command; a control command answers at once, also while a turn runs."""

    name: str
    aliases: list[str]
    arguments: str
    help: str
    control: bool


class Commands(Shape):
    items: list[CommandShape]


class CommandReply(Shape):
    """What a person is told, and where the talk goes on."""

    text: str
    conversation: str | None
    #: A message that was handed in again.
    inbox_id: str | None


class Completion(Shape):
    """A text that may take the place of what stands from ``start`` to the cursor."""

    text: str
    kind: Literal["command", "file", "folder"]
    help: str


class Completions(Shape):
    """In characters: what stands from ``start`` to ``end`` is replaced."""

    start: int
    end: int
    items: list[Completion]


class SettingShape(Shape):
    """A value as it may be shown (secrets are hidden), and where it comes from."""

    key: str
    value: Any
    origin: str


class SettingList(Shape):
    items: list[SettingShape]
    #: The file that config.set writes.
    file: str


class SettingWritten(Shape):
    """The file has the value; ``restart``: it holds after the next start. ``note`` says so."""

    key: str
    file: str
    restart: bool
    note: str


class Models(Shape):
    """``current`` is the conversation's, else the first of the settings."""

    items: list[str]
    current: str


class AgentShape(Shape):
    """The agent behind this connection; ``offline``: the built-in script answers, no model."""

    version: str
    model: str
    offline: bool
    #: Names; what a tool server offers is named as a whole.
    tools: list[str]
    #: The folder with its settings and data, on the server.
    home: str


class Subscribed(Shape):
    """
    Events follow, the first of them for the entry after ``after``.

    ``seq`` is the last entry when the subscription began: once an event carries it, the client is
    up to date.
    """

    conversation: str
    session: str
    after: int
    seq: int


class Unsubscribed(Shape):
    """Whether there was a subscription."""

    unsubscribed: bool


class Description(Shape):
    """An OpenRPC document."""

    model_config = ConfigDict(extra="allow")

    openrpc: str
    info: dict[str, Any]
    methods: list[dict[str, Any]]
    components: dict[str, Any]
