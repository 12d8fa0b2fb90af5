"""
Channel events and outbound messages, independent of the platform.

A ``Route`` is the address: platform, kind of chat, chat, thread.
"""

from __future__ import annotations

import enum
import json
import re
from dataclasses import asdict, fields
from typing import TYPE_CHECKING, Any

from clew.core.file_reading import format_line, get_read_as
from clew.core.quotation import OwnLine, Quoted, clean_name, format_message, format_unsupported
from clew.core.sent_files import SentFile
from clew.record import Record

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from clew.core.route import Route

#: The kinds of chats that a route names.
DM = "dm"
GROUP = "group"
CHANNEL = "channel"


class MessageSender(Record):
    """Person, identified by the platform's permanent user id."""

    id: str
    #: Display name: for people and the model, never for identification.
    name: str = ""
    #: ``False`` where a chat or channel posts under its own name and the author is unknown.
    person: bool = True


class IncomingFile(Record):
    """File of a message that is still on the platform."""

    #: The channel's key to fetch it, valid after a restart.
    id: str
    name: str
    media_type: str = "application/octet-stream"
    #: Bytes, where the platform says.
    size: int | None = None


class MessageReceived(Record):
    """Message received on a channel."""

    #: Unique id of the event, the same on each redelivery.
    event: str
    route: Route
    sender: MessageSender
    #: The platform's id of the message.
    message: str
    #: The sender's own text only: commands and consent are read from nothing else.
    text: str
    #: Other content, one line each: ``[contact Bob]``; ``OwnLine`` where nobody else wrote it.
    lines: tuple[str, ...] = ()
    #: Quoted text by others, or by the sender at another time.
    quoted: tuple[Quoted, ...] = ()
    #: Types of content that the channel does not know.
    unsupported: tuple[str, ...] = ()
    files: tuple[IncomingFile, ...] = ()
    #: True if it addresses the agent: always in a direct message, else by a mention, a reply to
    #: the agent, or a command for it.
    addressed: bool = True
    sent_at: datetime

    @property
    def may_command(self) -> bool:
        """Return whether its text may be a command: its author is known, and it has no files."""
        return self.sender.person and not self.files

    @property
    def has_foreign_text(self) -> bool:
        """Return whether it holds text that its sender may not have written."""
        passed_on = any(not isinstance(line, OwnLine) for line in self.lines)
        return bool(self.files) or passed_on or any(one.is_foreign for one in self.quoted)

    @property
    def agent_text(self) -> str:
        """Return the text that the agent reads."""
        lines = (*self.lines, *map(format_unsupported, self.unsupported))
        return format_message(self.text, lines, self.quoted)


class MessageEdited(MessageReceived):
    """Message as edited by its sender; ``event`` identifies the edit."""

    #: Event of the original message.
    original: str

    @classmethod
    def from_message(cls, heard: MessageReceived, *, at: object) -> MessageEdited:
        """Return the edit of a message; ``at`` distinguishes it from other edits."""
        told: dict[str, Any] = {one.name: getattr(heard, one.name) for one in fields(heard)}
        told |= {"event": f"{heard.event}:{at}", "original": heard.event}
        return cls(**told)

    @property
    def as_new_message(self) -> MessageReceived:
        """Return the message as if it had been received in this form first."""
        told: dict[str, Any] = {
            one.name: getattr(self, one.name) for one in fields(MessageReceived)
        }
        told["event"] = self.original
        return MessageReceived(**told)


class MessageDeleted(Record):
    """Message deleted by its sender."""

    event: str
    route: Route
    #: Event of the deleted message.
    original: str


class ButtonPressed(Record):
    """Press of a button under one of the agent's messages."""

    event: str
    route: Route
    sender: MessageSender
    #: The message that the button belongs to.
    message: str
    #: The button's data.
    data: str


class ChatMigrated(Record):
    """Change of a chat's id."""

    event: str
    route: Route
    to: Route


ChannelEvent = MessageReceived | MessageEdited | MessageDeleted | ButtonPressed | ChatMigrated


class IgnoredEvent(Record):
    """Platform event that does not concern the agent."""

    #: Short description, the same for all of its kind: "service: pinned_message".
    kind: str


class Button(Record):
    """Button under a message."""

    label: str
    #: Returned with the press: at most 64 bytes.
    data: str


class ChatNotice(enum.StrEnum):
    """Fixed notice of Clew to a chat; ``clew.wording`` has its text."""

    BUSY = "busy"  #: the message was rejected, since another turn is unfinished
    ROUNDS_WITHOUT_PERSON = "rounds_without_person"
    UNATTENDED_TOKENS_SPENT = "unattended_tokens_spent"
    EXPIRED = "expired"  #: a new conversation; details: id of the one before, why it ended
    UNFINISHED = "unfinished"  #: no answer follows the preview
    #: How to refuse a call with a reason; details: the number of the question, its tool.
    REASON = "reason"


class TextDocument(Record):
    """A text file to send before a message."""

    #: Such as ``call-1.txt``.
    name: str
    text: str
    #: The text in place of file and message, if the file cannot be sent.
    otherwise: str

    def to_chunk(self) -> dict[str, str]:
        """Return the part of it that a channel sends."""
        return {"name": self.name, "text": self.text}


class OutboundMessage(Record):
    """Message to send, before it is formatted for a platform."""

    text: str = ""
    #: The text to show if ``text`` is empty.
    notice: ChatNotice | None = None
    #: Values for the text of the notice.
    details: tuple[str, ...] = ()
    #: True if the text is Markdown; else it is shown verbatim.
    markup: bool = True
    #: Under the last message of it.
    buttons: tuple[Button, ...] = ()
    #: The platform's id of the message that it replies to, where replies are supported.
    reply_to: str | None = None
    #: Only to replace the preview of this turn's answer; where
    #: there was none, nothing is sent.
    instead_of: str | None = None
    #: Sent first; only channels with the capability ``documents`` are given one.
    document: TextDocument | None = None
    #: Sent after the text, each as a chunk of its own; ``render`` leaves them out.
    files: tuple[SentFile, ...] = ()


def verbatim(text: str) -> OutboundMessage:
    """Return a message that is shown as it is written."""
    return OutboundMessage(text=text, markup=False)


def dump_message(message: OutboundMessage) -> str:
    """Serialize a message for storage until it is delivered."""
    told = asdict(message)
    if message.notice is None:
        del told["notice"], told["details"]
    if message.document is None:
        del told["document"]
    if not message.files:
        del told["files"]
    return json.dumps(told, ensure_ascii=False)


def load_message(body: str) -> OutboundMessage:
    """Deserialize a message written by ``dump_message``."""
    told = json.loads(body)
    buttons = tuple(Button(**button) for button in told.pop("buttons"))
    if "notice" in told:
        told |= {"notice": ChatNotice(told["notice"]), "details": tuple(told["details"])}
    if "document" in told:
        told["document"] = TextDocument(**told["document"])
    if "files" in told:
        told["files"] = tuple(SentFile(**file) for file in told["files"])
    return OutboundMessage(buttons=buttons, **told)


#: Characters that some reader treats as a line end.
_BREAKS = r"\n\r\v\f\x1c-\x1e\x85\u2028\u2029"
#: Start of a line that imitates another sender's prefix.
_IMITATION = re.compile(
    rf"(?:^|(?<=[{_BREAKS}]))(?!> )(?=[^{_BREAKS}]{{1,60}} \([^()\s]{{1,64}}\): )"
)


def prefix_sender(text: str, sender: MessageSender, route: Route) -> str:
    """Return the agent's text, prefixed with the sender where people share a conversation."""
    if route.kind == DM or route.user is not None or not text:
        return text
    # Neither name nor text may imitate another sender.
    name = clean_name(sender.name, longest=40) or "somebody"
    return f"{name} ({sender.id}): {_IMITATION.sub('  ', text)}"


class InlineFile(Record):
    """File whose content the model receives, right after the line that names it."""

    line: str
    #: Of its content, in hex.
    sha256: str
    name: str
    #: Display kind, see ``clew.core.attachments``.
    kind: str
    size: int


def split_file_parts(text: str, payload: str) -> list[str | InlineFile]:
    """Return the agent's view of a message: its text, and a part for each file."""
    if '"files"' not in payload:
        return [text]
    files: list[dict[str, Any]] = json.loads(payload).get("files") or []
    said = [text] if text else []
    return [*said, *(make_file_part(file) for file in files)]


def strip_file_lines(text: str, payload: str) -> str:
    """Return the text that the sender wrote, without the lines for its files."""
    lines = [
        item if isinstance(item, str) else item.line
        for item in (split_file_parts("", payload) if '"files"' in payload else ())
    ]
    return text.removesuffix("\n".join(lines)).removesuffix("\n") if lines else text


def unfetched_files(payload: str) -> list[IncomingFile]:
    """Return the files of a message that are not fetched yet."""
    told: list[dict[str, Any]] = json.loads(payload).get("files") or []
    return [
        IncomingFile(
            id=file["file"],
            name=file["name"],
            media_type=file["media_type"],
            size=file["size"],
        )
        for file in told
        if "file" in file
    ]


def make_file_part(file: Mapping[str, Any]) -> str | InlineFile:
    """Return the part of a message for a file that its payload describes."""
    if not file.get("shown_as"):
        return _file_line(file)
    return InlineFile(
        line=_file_line(file),
        sha256=file["sha256"],
        name=file["name"],
        kind=file["shown_as"],
        size=file["size"],
    )


def _file_line(file: Mapping[str, Any]) -> str:
    what = f"{' '.join(file['name'].split())}, {file['media_type']}"
    if attachment := file.get("attachment"):
        # Old records, from before inline files, lack this key.
        by_name = file.get("shown_as", "") is None and get_read_as(file) is None
        named = ", told by name only" if by_name else ""
        return format_line(f"[file {attachment}: {what}, {file['size']:,} bytes{named}", file)
    return f"[file {what}: {file.get('missing') or 'it could not be fetched in time'}]"
