"""Conversations of other systems, in words that all of them share."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from clew.record import Record

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clew.core.entry import Role
    from clew.core.route import Route


class ForeignCall(Record):
    """A tool call as the model requested it."""

    id: str
    name: str
    #: JSON, or what the model wrote instead.
    arguments: str


class ForeignResult(Record):
    """The result of a tool call."""

    call_id: str
    name: str
    text: str
    is_error: bool = False


class ForeignFile(Record):
    """A file of a message; ``content`` is ``None`` if the other system lost it."""

    name: str
    media_type: str
    content: bytes | None


class ForeignUsage(Record):
    """Tokens of one model request, and its cost in millionths of a dollar if known."""

    input_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    cost_micros: int | None = None


class ForeignSender(Record):
    """Person who wrote a message on a platform."""

    id: str
    name: str = ""


class ForeignMessage(Record):
    """
    One message.

    A USER message has text and files, an ASSISTANT message text, reasoning and calls, a TOOL
    message results.
    """

    #: Unique in its conversation, and the same at each reading.
    id: str
    role: Role
    #: Milliseconds since 1970.
    at: int
    text: str = ""
    reasoning: str = ""
    calls: Sequence[ForeignCall] = ()
    results: Sequence[ForeignResult] = ()
    files: Sequence[ForeignFile] = ()
    sender: ForeignSender | None = None
    #: Without it, unknown. ``provider:name`` or the name.
    model: str = ""
    usage: ForeignUsage | None = None


class ForeignEvent(Record):
    """Something that is no message: kept outside of the context, never dropped."""

    id: str
    at: int
    #: A word for it, such as ``damaged``, ``model-change``, ``system``.
    kind: str
    #: A sentence that people read.
    text: str
    #: As it was stored, if it was not only text.
    payload: str = "null"


class ForeignCompaction(Record):
    """The point at which the other system went on with a summary of what came before."""

    id: str
    at: int
    summary: str
    #: Id of the first message before it that stayed in the context; ``None``: none did.
    kept_from: str | None = None


ForeignItem: TypeAlias = ForeignMessage | ForeignEvent | ForeignCompaction


class ForeignConversation(Record):
    """One conversation, its items in order."""

    #: Unique in the system, and the same at each reading.
    id: str
    items: Sequence[ForeignItem]
    created_at: int
    title: str = ""
    #: The conversation that it was branched from, by its id in the system.
    branch_of: str | None = None
    #: The chats that lead to it, so that they go on here.
    routes: Sequence[Route] = ()
    #: The other system may still be writing to it: an unfinished step at its end is left for the
    #: next import.
    is_growing: bool = False


class ForeignProblem(Record):
    """Something that could not be read: where it is, and why."""

    place: str
    reason: str
