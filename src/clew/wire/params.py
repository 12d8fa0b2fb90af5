"""Arguments of the methods. Unknown ones are an error: a typing mistake should be heard of."""

from __future__ import annotations

import base64
import binascii
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

#: Larger than every count, and no more than every database holds.
LARGEST_SEQ = 10**15 - 1

Name = Annotated[
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
Title = Annotated[str, Field(description="1 to 200 characters, unique within the scope.")]
Cursor = Annotated[str, Field(description="The next of the page before.")]
Seq = Annotated[int, Field(ge=0, le=LARGEST_SEQ)]
DoubleTextName = Literal["auto", "queue", "steer", "collect", "interrupt", "rollback", "reject"]


class Params(BaseModel):
    """The arguments of a call."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True, defer_build=True)


class NoParams(Params):
    """No arguments."""


class Named(Params):
    """A conversation."""

    conversation: Name


class UndeleteParams(Params):
    """A deleted conversation."""

    conversation: str = Field(
        min_length=1, max_length=2000, description="Its id, as `conversation.delete` answered."
    )


class ListParams(Params):
    """Which conversations; the last used come first."""

    query: str = Field(default="", description="A part of the title.")
    cursor: Cursor | None = None
    limit: int = Field(default=50, ge=1, le=200)
    adhoc: bool = Field(
        default=False, description="Also those of HTTP clients that resend all history."
    )


class OpenParams(Params):
    """Attach to a conversation; a NAME that is new gets one."""

    conversation: Name = "main"
    title: Title | None = Field(
        default=None,
        description="Given at once; where the conversation is new, after its first turn.",
    )


class NewParams(Params):
    """Start afresh under a name; the conversation that it leaves is kept."""

    name: NewName = "main"
    title: Title | None = None


class ResumeParams(Params):
    """Have a name lead to another conversation."""

    conversation: Name
    name: NewName = "main"


class RenameParams(Params):
    """Name a conversation; null takes the title away."""

    conversation: Name
    title: Title | None


class BranchParams(Params):
    """A copy of the context that goes its own way."""

    conversation: Name
    at: Seq | None = Field(default=None, description="Only up to this entry.")
    title: Title | None = None
    name: NewName | None = Field(default=None, description="Leads to the copy from now on.")


class RewindParams(Params):
    """Go back; the log keeps everything."""

    conversation: Name
    to: Seq = Field(description="Right after this entry; 0 is the beginning.")


class UndoParams(Params):
    """Take the last exchanges out of the context."""

    conversation: Name
    back: int = Field(default=1, ge=1, le=1000)


class SearchParams(Params):
    """Words to look for in everything that was said; newest first."""

    query: str = Field(min_length=1)
    cursor: Cursor | None = None
    limit: int = Field(default=20, ge=1, le=100)


class EntriesParams(Params):
    """A part of the log: above ``after``, or, with ``before``, the last ones below it."""

    conversation: Name
    after: Seq = 0
    before: Seq | None = None
    limit: int = Field(default=200, ge=1, le=1000)


class CompactParams(Params):
    """A compaction on demand, a look at what it would do, or the way back."""

    session_id: Name
    focus: str | None = Field(default=None, description="What the summary cares for most.")
    dry_run: bool = Field(default=False, description="Only say what would be done.")
    undo: bool = Field(default=False, description="Take back the compaction that opened the head.")


class Attachment(Params):
    """A file that comes with a message."""

    name: str = Field(min_length=1, max_length=255)
    media_type: str = Field(default="application/octet-stream", max_length=255)
    data: str = Field(description="The content in base64.")

    def content(self) -> bytes:
        """:raises ValueError: if ``data`` is no base64, in words for its sender"""
        try:
            return base64.b64decode(self.data, validate=True)
        except (binascii.Error, ValueError):
            raise ValueError(f"the content of {self.name!r} is no base64") from None


class SubmitParams(Params):
    """A message; any session id of the conversation means its head."""

    session_id: Name
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


class RespondParams(Params):
    """A person's word on a tool call."""

    approval: str
    approve: bool
    note: str | None = Field(default=None, max_length=2000)


class CancelParams(Params):
    """Take a waiting input back."""

    inbox_id: str


class EditParams(Params):
    """Change the text of a waiting message."""

    inbox_id: str
    text: str = Field(json_schema_extra={"pattern": r"\S"})


class RunParams(Params):
    """A chat command as a person types it: ``/title Rome``."""

    text: str = Field(min_length=1)
    conversation: Name = "main"


class CompleteParams(Params):
    """What may stand where the cursor is: a slash command, or a file behind ``@``."""

    text: str = Field(max_length=10_000)
    cursor: int | None = Field(default=None, ge=0, description="In characters; else the end.")
    folder: str | None = Field(default=None, description="Where files are looked for.")


class ConfigGetParams(Params):
    """A setting, a section, or all of them."""

    key: str | None = Field(default=None, description="section.key")


class ConfigSetParams(Params):
    """Write a setting into config.toml; null takes it out."""

    key: str = Field(description="section.key")
    value: Any


class ModelListParams(Params):
    """What may be chosen, and what a conversation has."""

    conversation: Name | None = None


class ModelSetParams(Params):
    """The model of a conversation, from its next message on."""

    conversation: Name
    model: str = Field(min_length=1, max_length=500)


class SubscribeParams(Params):
    """Hear what happens in a conversation from an entry on."""

    conversation: Name
    after: Seq = Field(default=0, description="The seq of the last event that was heard.")
    live: bool = Field(default=True, description="Also the text that is being made.")
