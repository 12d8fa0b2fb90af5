"""Files that are read as text before the model sees their message: recordings, pictures; pure."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from clew.core.attachments import MAX_TEXT_CHARS
from clew.core.text import sanitize_text, truncate_middle
from clew.record import Record

if TYPE_CHECKING:
    from collections.abc import Mapping

    from clew.core.side_answer import SideAnswer

#: Time that a message waits for the texts of its files; then it goes on without them.
MAX_WAIT: Final = timedelta(seconds=120)
#: What is said of a file whose text did not come in that time.
TOO_LATE: Final = "it was not made in time"

#: Keys of what a payload says about a file: what its text is, the text, why there is none.
_READ_AS, _TEXT, _UNREAD = "read_as", "text", "unread"


class FileReading(Record):
    """The result of reading one file: its text, or the reason why there is none."""

    text: str | None = None
    #: A clause for people and the model: "the service answered 500".
    unread: str | None = None
    #: The usage of the request, if one was answered.
    usage: SideAnswer | None = None


def mark_files(payload: str, read_as: Mapping[str, str]) -> str:
    """Return the payload of a message with what the text of each file will be, by attachment."""
    if not read_as:
        return payload
    told = json.loads(payload)
    for file in _list_files(told):
        if (name := read_as.get(file.get("attachment", ""))) is not None:
            file[_READ_AS] = name
    return json.dumps(told, ensure_ascii=False)


def list_waiting(payload: str) -> dict[str, dict[str, Any]]:
    """Return the files of a message whose text is still to be made, by attachment."""
    if f'"{_READ_AS}"' not in payload:
        return {}
    return {
        file["attachment"]: file
        for file in _list_files(json.loads(payload))
        if _READ_AS in file and _TEXT not in file and _UNREAD not in file
    }


def get_read_as(file: Mapping[str, Any]) -> str | None:
    """Return what the text of a file is: ``transcript``; ``None`` if it is not read."""
    return file.get(_READ_AS)


def add_readings(payload: str, readings: Mapping[str, FileReading]) -> str:
    """Return the payload of a message with the texts of its files; those it has stay."""
    waiting = list_waiting(payload)
    told = json.loads(payload)
    for file in _list_files(told):
        reading = readings.get(file.get("attachment", ""))
        if reading is None or file["attachment"] not in waiting:
            continue
        if reading.text is not None:
            file[_TEXT] = truncate_middle(sanitize_text(reading.text), MAX_TEXT_CHARS)
        else:
            file[_UNREAD] = sanitize_text(reading.unread or TOO_LATE)
    return json.dumps(told, ensure_ascii=False)


def forget_failures(payload: str) -> str:
    """Return the payload of a message that is sent again: files without a text are read again."""
    if f'"{_READ_AS}"' not in payload:
        return payload
    told = json.loads(payload)
    for file in _list_files(told):
        file.pop(_UNREAD, None)
    return json.dumps(told, ensure_ascii=False)


def was_read_as(payload: str, read_as: str) -> bool:
    """Return whether a message has a file that was read as this: a spoken message, for instance."""
    if f'"{_READ_AS}"' not in payload:
        return False
    files = _list_files(json.loads(payload))
    return any(file.get(_READ_AS) == read_as and _TEXT in file for file in files)


def _list_files(told: dict[str, Any]) -> list[dict[str, Any]]:
    return told.get("files") or []


def format_line(head: str, file: Mapping[str, Any]) -> str:
    """
    Return the line of a file, and below it its text.

    ``head`` is the line so far, without its last bracket.
    """
    name = file.get(_READ_AS)
    if name is None:
        return f"{head}]"
    if (text := file.get(_TEXT)) is None:
        return f"{head}, no {name}: {file.get(_UNREAD) or TOO_LATE}]"
    title = " ".join(file["name"].split())
    return f"{head}, {name} below]\n{text.strip()}\n[end of the {name} of {title}]"
