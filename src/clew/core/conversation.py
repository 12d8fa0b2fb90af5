"""Conversations: durable threads of messages."""

from __future__ import annotations

import enum
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from clew.record import Record

if TYPE_CHECKING:
    from datetime import datetime

    from clew.core.ids import ConversationId, SessionId
    from clew.core.scope import Scope


#: Setting of a conversation: the system that it was imported from, and its id there.
IMPORTED_FROM: Final = "imported_from"
#: Default time during which a deleted conversation can be restored.
UNDELETE_FOR = timedelta(minutes=10)


class TitledBy(enum.Enum):
    """Author of a title; an automatic title never replaces a person's."""

    PERSON = "person"
    MODEL = "model"


class Conversation(Record):
    """Append-only log of entries with one head session."""

    id: ConversationId
    scope: Scope
    title: str | None
    titled_by: TitledBy | None
    #: Opened for a caller that resends its history; hidden from lists by default.
    adhoc: bool
    #: The conversation (or file) that a branch or an import came from, and its seq.
    origin: str | None
    origin_seq: int | None
    head: SessionId
    #: Entries so far; also the seq of the last one.
    last_seq: int
    created_at: datetime
    updated_at: datetime


class ConversationFilter(Record):
    """Which conversations are listed, besides those that are not visible anyway."""

    #: A person or a chat.
    scope: str = ""
    #: A platform, or the name of one of its accounts.
    channel: str = ""
    #: When they were used last, in milliseconds.
    since: int = 0
    until: int = 2**62


#: Nothing is left out.
ALL_CONVERSATIONS = ConversationFilter()
