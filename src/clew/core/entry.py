"""Entries: the numbered, hash-chained records of a conversation."""

from __future__ import annotations

import enum
import hashlib
from typing import TYPE_CHECKING, Final

from msgspec.json import Encoder

from clew.record import Record

if TYPE_CHECKING:
    from datetime import datetime

    from clew.core.ids import ConversationId, EntryId, SessionId, TurnId

_encode: Final = Encoder().encode

#: The ``prev_hash`` of a conversation's first entry.
GENESIS = bytes(32)


#: Key of the metadata of a user's message that no person wrote: the kind and id of its cause.
CAUSE_KEY = "clew_cause"
#: A pattern of SQL for such messages: within a text, the quotation marks would be escaped.
CAUSED_PATTERN = f'%"{CAUSE_KEY}":%'

#: Format of an entry that tells people something, outside of the context.
NOTICE_FORMAT = "clew/notice"


class EntryKind(enum.Enum):
    MESSAGE = "message"  #: part of the context
    ATTEMPT = "attempt"  #: a model request that failed or was cut: outside the context
    EVENT = "event"  #: something that happened: outside the context


class Role(enum.Enum):
    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"


class NewEntry(Record):
    """Entry before it is numbered."""

    id: EntryId
    kind: EntryKind = EntryKind.MESSAGE
    role: Role | None
    #: Displayed and searchable text.
    text: str
    #: Ids of the tool calls that this message requests, and of those that it answers.
    calls: tuple[str, ...] = ()
    answers: tuple[str, ...] = ()
    #: Names the shape of ``message``, for example ``pydantic-ai/2``.
    format: str
    #: The message as JSON, stored and hashed to the letter.
    message: str


class Entry(Record):
    """Numbered record of a conversation's log."""

    conversation_id: ConversationId
    seq: int
    id: EntryId
    session_id: SessionId
    turn_id: TurnId | None
    kind: EntryKind
    role: Role | None
    text: str
    calls: tuple[str, ...]
    answers: tuple[str, ...]
    format: str
    message: str
    created_at: datetime
    prev_hash: bytes
    hash: bytes

    @property
    def is_caused(self) -> bool:
        """Return whether it is a message of the user that no person wrote."""
        return self.role is Role.USER and f'"{CAUSE_KEY}":' in self.message


def chain_hash(prev_hash: bytes, fields: tuple[str | int | None, ...]) -> bytes:
    """
    Return the sha256 of the previous entry's hash and this entry's fields as JSON.

    ``fields``: conversation id, seq, id, session id, turn id, kind, role, text, calls and
    answers (each as stored JSON), format, message, created_at in milliseconds.
    """
    # On the path of each append: the encoder of the standard library takes six times as long, and
    # writes the same bytes.
    return hashlib.sha256(prev_hash + _encode(fields)).digest()


def make_notice(id: EntryId, text: str) -> NewEntry:
    """Return an entry that tells people something, outside of the context."""
    return NewEntry(
        id=id, kind=EntryKind.EVENT, role=None, text=text, format=NOTICE_FORMAT, message="null"
    )
