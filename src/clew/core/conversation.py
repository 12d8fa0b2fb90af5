"""Conversations: lasting threads of talk."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime

    from clew.core.ids import ConversationId, SessionId
    from clew.core.scope import Scope


#: How long a deleted conversation can be brought back, unless a setting says otherwise.
UNDELETE_FOR = timedelta(minutes=10)


class TitledBy(enum.Enum):
    """Who gave a title; an automatic one never replaces a person's."""

    PERSON = "person"
    MODEL = "model"


@dataclass(frozen=True, kw_only=True, slots=True)
class Conversation:
    """The lasting thread: an append-only log of entries, and one head session."""

    id: ConversationId
    scope: Scope
    title: str | None
    titled_by: TitledBy | None
    #: Opened for a caller that resends its history; left out of lists unless asked for.
    adhoc: bool
    #: The conversation (or file) that a branch or an import came from, and its seq.
    origin: str | None
    origin_seq: int | None
    head: SessionId
    #: Entries so far; also the seq of the last one.
    last_seq: int
    created_at: datetime
    updated_at: datetime
