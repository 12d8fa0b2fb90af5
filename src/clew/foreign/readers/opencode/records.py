"""Records of OpenCode, the same in its database and in the files of older releases."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from clew.core.payload import as_object, as_text
from clew.foreign.chat_messages import read_moment
from clew.record import Record

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

_UNTITLED: Final = re.compile(r"(?:New|Child) session - \d{4}-")


class StoredPart(Record):
    """A part of a message; ``data`` is empty if it is no JSON object."""

    id: str
    data: dict[str, Any]
    raw: str = ""


class OpenCodeMessage(Record):
    """A message with its parts; ``data`` is empty if it is no JSON object."""

    id: str
    at: int
    data: dict[str, Any]
    parts: Sequence[StoredPart]
    raw: str = ""


class OpenCodeSession(Record):
    """A session without its messages."""

    id: str
    title: str
    parent: str | None
    created: int
    updated: int
    #: Where it is taken back to: all from this message on, or from this part of it.
    revert: str = ""
    revert_part: str = ""


def make_session(told: Mapping[str, Any], revert: object, created: int) -> OpenCodeSession:
    """Return a session from what is told of it."""
    back, title = as_object(revert), as_text(told.get("title"))
    created = read_moment(told.get("created"), created)
    return OpenCodeSession(
        id=as_text(told.get("id")),
        title="" if _UNTITLED.match(title) else title,
        parent=as_text(told.get("parent")) or None,
        created=created,
        updated=read_moment(told.get("updated"), created),
        revert=as_text(back.get("messageID")),
        revert_part=as_text(back.get("partID")),
    )


def find_sources(sessions: Iterable[OpenCodeSession], begun: Mapping[str, int]) -> dict[str, str]:
    """
    Return the session that each one was forked from.

    A fork begins with copies of messages that are older than itself.

    :param begun: the time of the first message of each session
    """
    known = list(sessions)
    first = {
        begun[one.id]: one.id for one in known if one.id in begun and one.created <= begun[one.id]
    }
    return {
        one.id: first[begun[one.id]]
        for one in known
        if one.created > begun.get(one.id, one.created) and begun[one.id] in first
    }
