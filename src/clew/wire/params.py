"""Parameters of the methods; unknown ones are an error, so that typos are noticed."""

from __future__ import annotations

import base64
import binascii
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

#: Larger than any count, and within the range of every database.
LARGEST_SEQ = 10**15 - 1

ConversationName = Annotated[
    str,
    Field(
        min_length=1,
        max_length=2000,
        description="A NAME, a conversation's id, any of its session ids, or a route.",
    ),
]
NewName = Annotated[
    str, Field(min_length=1, max_length=2000, description="A NAME or a route, not an id.")
]
ConversationTitle = Annotated[
    str, Field(description="1 to 200 characters, unique within the scope.")
]
PageCursor = Annotated[str, Field(description="The `next` of the previous page.")]
EntrySeq = Annotated[int, Field(ge=0, le=LARGEST_SEQ)]
DoubleTextName = Literal["auto", "queue", "steer", "collect", "interrupt", "rollback", "reject"]


class Params(BaseModel):
    """Base of the parameters of a method."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, defer_build=True)


class NoParams(Params):
    """No parameters."""


class Named(Params):
    """A conversation."""

    conversation: ConversationName


class UndeleteParams(Params):
    """A deleted conversation."""

    conversation: str = Field(
        min_length=1, max_length=2000, description="Its id, as `conversation.delete` answered."
    )


class ListParams(Params):
    """Filter and page of the list of conversations, last used first."""

    query: str = Field(default="", description="A part of the title.")
    scope: str = Field(
        default="",
        description="The person or chat whose they are, as `conversation.scopes` has it.",
    )
    channel: str = Field(
        default="", description="A platform or the name of its account; `local` is this machine."
    )
    since: str = Field(default="", description="Used last at this time or later.")
    until: str = Field(default="", description="Used last before this time.")
    cursor: PageCursor | None = None
    limit: int = Field(default=50, ge=1, le=200)
    adhoc: bool = Field(
        default=False,
        description="Include the ad hoc conversations of HTTP clients that resend all history.",
    )


class OpenParams(Params):
    """The conversation to attach to; a new NAME gets one."""

    conversation: ConversationName = "main"
    title: ConversationTitle | None = Field(
        default=None,
        description="Given at once; where the conversation is new, after its first turn.",
    )


class NewParams(Params):
    """The name to give to a new conversation; the previous one is kept."""

    name: NewName = "main"
    title: ConversationTitle | None = None


class ResumeParams(Named):
    """The conversation that a name leads to from now on."""

    name: NewName = "main"


class RenameParams(Named):
    """A new title; null removes it."""

    title: ConversationTitle | None


class BranchParams(Named):
    """An independent copy of the context."""

    at: EntrySeq | None = Field(default=None, description="Only up to this entry.")
    title: ConversationTitle | None = None
    name: NewName | None = Field(default=None, description="A name for the copy.")


class RewindParams(Named):
    """The entry to rewind to; the log keeps everything."""

    to: EntrySeq = Field(description="Right after this entry; 0 is the beginning.")


class UndoParams(Named):
    """The number of exchanges to remove from the context."""

    back: int = Field(default=1, ge=1, le=1000)


class SearchParams(Params):
    """Words to search for in all messages; newest first."""

    query: str = Field(min_length=1)
    scope: str = Field(default="", description="Only in conversations of this person or chat.")
    cursor: PageCursor | None = None
    limit: int = Field(default=20, ge=1, le=100)


class EntriesParams(Named):
    """A range of entries: after ``after``, or with ``before`` the last ones before it."""

    after: EntrySeq = 0
    before: EntrySeq | None = None
    limit: int = Field(default=200, ge=1, le=1000)


class CallParams(Named):
    """A tool call, by the turn and the id that its entry has."""

    turn: str = Field(min_length=1, max_length=100)
    call: str = Field(min_length=1, max_length=1000)


class ExportParams(Named):
    """A conversation, and the form of its export."""

    format: Literal["html", "markdown", "json"] = Field(
        default="html",
        description="`json` is one record on each line, which can be verified and imported.",
    )


class CompactParams(Params):
    """A manual compaction, a preview of it, or its undo."""

    session_id: ConversationName
    focus: str | None = Field(
        default=None, description="The subject on which the summary should focus."
    )
    dry_run: bool = Field(default=False, description="Only report what would be done.")
    undo: bool = Field(default=False, description="Undo the compaction that opened the head.")


class Attachment(Params):
    """A file sent with a message."""

    name: str = Field(min_length=1, max_length=255)
    media_type: str = Field(default="application/octet-stream", max_length=255)
    data: str = Field(description="The content in base64.")

    def decode_content(self) -> bytes:
        """
        Return the decoded content.

        :raises ValueError: if ``data`` is not base64, with a message for its sender
        """
        try:
            return base64.b64decode(self.data, validate=True)
        except (binascii.Error, ValueError):
            raise ValueError(f"the content of {self.name!r} is no base64") from None


class SubmitParams(Params):
    """A message; any session id of the conversation refers to its head."""

    session_id: ConversationName
    text: str = Field(json_schema_extra={"pattern": r"\S"})
    attachments: list[Attachment] | None = Field(default=None, max_length=20)
    double_text: DoubleTextName | None = Field(
        default=None, description="What happens while a turn is unfinished; else the setting."
    )
    key: str | None = Field(
        default=None,
        min_length=1,
        max_length=255,
        description="Sent again with the same key, the message is stored once; kept for 7 days.",
    )


class ResultParams(Params):
    """The input whose outcome is awaited."""

    inbox_id: str


class WaitParams(Params):
    """An accepted message, and how long to wait for its answer."""

    inbox_id: str = Field(description="As `prompt.submit` answered.")
    seconds: int = Field(default=30, ge=0, le=60)


class RespondParams(Params):
    """A person's decision on a tool call."""

    approval: str
    approve: bool
    note: str | None = Field(
        default=None, max_length=2000, description="Why not; the model is told."
    )
    keep: Literal["hour", "always"] | None = Field(
        default=None,
        description="Allow the approval's `offer` for an hour in the conversation, or always.",
    )


class RevokeParams(Params):
    """A grant."""

    grant: str = Field(min_length=1, max_length=200)


class CancelParams(Params):
    """The pending input to cancel."""

    inbox_id: str


class EditParams(Params):
    """A new text for a pending message."""

    inbox_id: str
    text: str = Field(json_schema_extra={"pattern": r"\S"})


class RunParams(Params):
    """A chat command as a person types it: ``/title Rome``."""

    text: str = Field(min_length=1)
    conversation: ConversationName = "main"


class CompleteParams(Params):
    """The text to complete: a slash command, or a file after ``@``."""

    text: str = Field(max_length=10_000)
    cursor: int | None = Field(default=None, ge=0, description="In characters; else the end.")
    folder: str | None = Field(default=None, description="Where files are looked for.")


class ConfigGetParams(Params):
    """A setting, a section, or all of them."""

    key: str | None = Field(default=None, description="section.key")


class ConfigSetParams(Params):
    """A setting to write to config.toml; null removes it."""

    key: str = Field(description="section.key")
    value: Any


class ModelListParams(Params):
    """The conversation whose current model is returned."""

    conversation: ConversationName | None = None


class ModelSetParams(Named):
    """The model of a conversation, from its next message on."""

    model: str = Field(min_length=1, max_length=500)


class SubscribeParams(Named):
    """The conversation and the entry after which its events are sent."""

    after: EntrySeq = Field(default=0, description="The seq of the last event that was received.")
    live: bool = Field(default=True, description="Include the text that is being generated.")
