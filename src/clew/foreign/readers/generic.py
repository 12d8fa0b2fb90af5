"""
Conversations in the common form of messages: ChatML (OpenAI), ShareGPT, one of them per line.

::

    {"id": "trip", "title": "A trip", "messages": [{"role": "user", "content": "Hello"}, …]}
    {"conversations": [{"from": "human", "value": "Hello"}, …]}
    {"role": "user", "content": "Hello"}             one message per line: the file is one

A file is JSON (one conversation or a list) or JSONL; a folder is all its ``.json`` and ``.jsonl``.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, cast

from clew.core.payload import as_object, as_text
from clew.errors import UsageError
from clew.foreign.chat_messages import read_messages, read_moment
from clew.foreign.conversations import ForeignConversation, ForeignProblem
from clew.foreign.homes import PlainHome

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from clew.foreign.homes import Found

_SUFFIXES = (".json", ".jsonl")
_LISTS = ("messages", "conversations", "conversation", "turns")


def find_home(home: Path) -> Path | None:
    """Return nothing: such files have no usual place."""
    return None


def open_home(path: Path) -> GenericHome:
    """
    Open a file or a folder of files.

    :raises UsageError: if there is no such file
    """
    files = sorted(_list_files(path)) if path.is_dir() else [path]
    if not files:
        raise UsageError(f"there is no .json or .jsonl file in {path}")
    return GenericHome(path, files)


def _list_files(folder: Path) -> Iterator[Path]:
    return (one for one in folder.rglob("*") if one.suffix in _SUFFIXES and one.is_file())


class GenericHome(PlainHome):
    """Files of messages."""

    def __init__(self, path: Path, files: list[Path]) -> None:
        self._root = path if path.is_dir() else path.parent
        self._files = files
        self.description = f"{len(files)} file{'s' * (len(files) > 1)} of messages, {path}"

    def iter_conversations(self, *, since: int = 0) -> Iterator[Found]:
        """Yield the conversations file by file."""
        for file in self._files:
            for found in _read_file(file, str(file.relative_to(self._root))):
                if isinstance(found, ForeignProblem) or _last_use(found) >= since:
                    yield found


def _last_use(found: ForeignConversation) -> int:
    return max((item.at for item in found.items), default=found.created_at)


def _read_file(file: Path, name: str) -> Iterator[Found]:
    """Yield the conversations of a file; of lines one by one, since such files are large."""
    created = int(file.stat().st_mtime * 1000)
    loose: list[dict[str, Any]] = []
    for number, record in enumerate(_read_records(file, name), 1):
        said = as_object(record)
        if isinstance(record, ForeignProblem):
            yield record
        elif _find_messages(said) is not None:
            yield _make_conversation(said, f"{name}#{number}", created)
        elif "role" in said:
            loose.append(said)
        else:
            yield ForeignProblem(place=f"{name}, {number}", reason="it has no messages")
    if loose:
        yield _make_conversation({"messages": loose}, name, created)


def _read_records(file: Path, name: str) -> Iterator[Any]:
    if file.suffix != ".jsonl":
        try:
            found = json.loads(file.read_text(encoding="utf-8-sig", errors="replace"))
        except ValueError:
            pass  # JSONL under the other name
        else:
            yield from cast("list[Any]", found) if isinstance(found, list) else [found]
            return
    with file.open(encoding="utf-8-sig", errors="replace") as lines:
        yield from _read_lines(lines, name)


def _read_lines(lines: Iterable[str], name: str) -> Iterator[Any]:
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            yield json.loads(line)
        except ValueError:
            yield ForeignProblem(place=f"{name}, line {number}", reason="it is not JSON")


def _find_messages(record: dict[str, Any]) -> list[Any] | None:
    return next((record[key] for key in _LISTS if isinstance(record.get(key), list)), None)


def _make_conversation(record: dict[str, Any], name: str, created: int) -> ForeignConversation:
    begun = read_moment(record.get("created_at") or record.get("create_time"), created)
    items = read_messages(_find_messages(record) or [], at=begun)
    return ForeignConversation(
        id=as_text(record.get("id")) or name,
        title=as_text(record.get("title")),
        created_at=min([begun, *(item.at for item in items)]),
        items=items,
    )
