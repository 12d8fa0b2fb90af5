"""Transcripts of Hermes Agent in files: from before the database, and beside it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from clew.core.payload import as_list, as_object, as_text
from clew.foreign.chat_messages import read_moment
from clew.foreign.conversations import ForeignEvent
from clew.foreign.folders import read_json
from clew.foreign.readers.hermes.rows import RowContext, StoredMessage, read_row

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def list_transcripts(folder: Path) -> dict[str, Path]:
    """Return the file of each session; of two, the one that is only added to."""
    found = {
        file.stem.removeprefix("session_"): file for file in sorted(folder.glob("session_*.json"))
    }
    found |= {file.stem: file for file in sorted(folder.glob("*.jsonl"))}
    return found


def read_created(path: Path) -> int:
    """Return when a transcript was begun, from the name of its session or of the file's time."""
    digits = "".join(path.stem.removeprefix("session_").split("_")[:2])
    if len(digits) == 14 and digits.isdecimal():
        day, time = digits[:8], digits[8:]
        iso = f"{day[:4]}-{day[4:6]}-{day[6:]}T{time[:2]}:{time[2:4]}:{time[4:]}"
        return read_moment(iso, 0)
    return int(path.stat().st_mtime * 1000)


def read_transcript(path: Path, context: RowContext) -> Iterator[StoredMessage]:
    """Yield the messages of a file; a line that is no JSON as an event with its text."""
    at = context.created_at
    for number, record in _read_records(path):
        row = as_object(record)
        name = f"{context.session}/{number}"
        if not row:
            yield _make_damage(record, context, name=name, at=at)
            continue
        stored = read_row(row, context, name=name, at=at)
        at = stored.item.at
        yield stored


def _read_records(path: Path) -> Iterator[tuple[int, Any]]:
    if path.suffix == ".json":
        told = as_object(read_json(path))
        if not told:
            yield 1, path.read_text(encoding="utf-8", errors="replace")
        if prompt := as_text(told.get("system_prompt")):
            yield 0, {"role": "system", "content": prompt}
        yield from enumerate(as_list(told.get("messages")), 1)
        return
    with path.open(encoding="utf-8", errors="replace") as file:
        for number, line in enumerate(file, 1):
            if line.strip():
                yield number, _parse(line)


def _parse(line: str) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return line.rstrip("\n")


def _make_damage(record: Any, context: RowContext, *, name: str, at: int) -> StoredMessage:
    event = ForeignEvent(
        id=name, at=at, kind="damaged", text="A line that is no message", payload=json.dumps(record)
    )
    return StoredMessage(item=event, key=(), session=context.session)
