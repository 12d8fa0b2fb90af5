"""Files of releases of OpenCode before the database: one for each session, message and part."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from clew.core.payload import as_list, as_object, as_text
from clew.foreign.chat_messages import read_moment
from clew.foreign.folders import get_nested, read_json, read_text
from clew.foreign.jsonl import read_mtime
from clew.foreign.readers.opencode.records import OpenCodeMessage, StoredPart, make_session
from clew.record import Record

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from clew.foreign.readers.opencode.records import OpenCodeSession


class SessionFile(Record):
    """A session, and the folders with its messages and their parts."""

    session: OpenCodeSession
    messages: Path
    #: The folder that has one for each message.
    parts: Path


def list_files(folder: Path) -> list[SessionFile]:
    """Return all sessions that are in files, the oldest change first."""
    found = [
        SessionFile(session=told, messages=base / "message" / told.id, parts=base / "part")
        for base in (folder / "storage",)
        for file in sorted(base.glob("session/*/*.json"))
        if (told := _read_session(file)) is not None
    ]
    for base in sorted(folder.glob("project/*/storage/session")):
        found += [
            SessionFile(
                session=told,
                messages=base / "message" / told.id,
                parts=base / "part" / told.id,
            )
            for file in sorted(base.glob("info/*.json"))
            if (told := _read_session(file)) is not None
        ]
    return sorted(found, key=lambda one: (one.session.updated, one.session.id))


def _read_session(file: Path) -> OpenCodeSession | None:
    told = as_object(read_json(file))
    about = {
        "id": file.stem,
        "parent": told.get("parentID"),
        "title": told.get("title"),
        "created": get_nested(told, "time.created"),
        "updated": get_nested(told, "time.updated"),
    }
    return make_session(about, told.get("revert"), read_mtime(file))


def read_messages(file: SessionFile) -> list[OpenCodeMessage]:
    """Return the messages of a session, with their parts."""
    at, found = file.session.created, list[OpenCodeMessage]()
    for path in sorted(file.messages.glob("*.json")):
        data, raw = _read(path)
        at = read_moment(get_nested(data, "time.created"), at)
        parts = [*_read_parts(file.parts / path.stem), *_list_inner(data)]
        found.append(OpenCodeMessage(id=path.stem, at=at, data=data, parts=parts, raw=raw))
    return found


def read_first(file: SessionFile) -> int | None:
    """Return when the first message of a session was; ``None`` if there is none."""
    path = min(file.messages.glob("*.json"), default=None)
    at = None if path is None else get_nested(_read(path)[0], "time.created")
    return None if at is None else read_moment(at, 0)


def _read_parts(folder: Path) -> Iterator[StoredPart]:
    for path in sorted(folder.glob("*.json")):
        data, raw = _read(path)
        yield StoredPart(id=path.stem, data=data, raw=raw)


def _list_inner(data: dict[str, Any]) -> list[StoredPart]:
    """Return the parts that the first releases kept in their message."""
    return [
        StoredPart(id=f"{number:04}", data=as_object(one), raw="" if one else json.dumps(one))
        for number, one in enumerate(as_list(data.get("parts")))
    ]


def _read(path: Path) -> tuple[dict[str, Any], str]:
    data = as_object(read_json(path))
    return data, "" if data else as_text(read_text(path))
