"""Sessions of nanobot: one JSONL file each."""

from __future__ import annotations

import base64
import binascii
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from clew.core.entry import Role
from clew.core.payload import as_list, as_object, as_text
from clew.foreign.chat_messages import make_event, read_message, read_moment
from clew.foreign.conversations import (
    ForeignCompaction,
    ForeignFile,
    ForeignMessage,
)
from clew.foreign.folders import read_json
from clew.record import Record, replace

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from clew.foreign.conversations import ForeignItem

#: A hidden message of the user at the place of a summary begins with it.
_CHECKPOINT: Final = "Continue the active task from the working-memory checkpoint"
_NO_SUMMARY: Final = "(what came before is summarised in the remembered texts)"
_CHECKPOINT_SUFFIX: Final = ".checkpoint.json"


class NanobotSession(Record):
    """A session, read."""

    key: str
    title: str
    created_at: int
    updated_at: int
    items: Sequence[ForeignItem]
    #: The chat that wrote last, of a session that all chats share.
    last_channel: str = ""


def read_session(path: Path, media: Path) -> NanobotSession:
    """Return a session; ``media`` is the only folder from which files of messages are read."""
    return _Reader(path, media).read()


def read_key(path: Path, head: Mapping[str, Any]) -> str:
    """Return the key of a session: from its first line, or from the name of its file."""
    if key := as_text(head.get("key")):
        return key
    stem = path.stem
    try:
        decoded = base64.urlsafe_b64decode(stem + "=" * (-len(stem) % 4)).decode()
    except (ValueError, binascii.Error):
        decoded = ""
    if ":" in decoded and decoded.isprintable():
        return decoded
    return stem.replace("_", ":", 1)


def read_head(path: Path) -> dict[str, Any]:
    """Return the first line of a session; empty if it is none of these."""
    with path.open(encoding="utf-8", errors="replace") as file:
        head = as_object(_parse(file.readline()))
    return head if head.get("_type") == "metadata" else {}


def _parse(line: str) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return line.rstrip("\n")


class _Reader:
    def __init__(self, path: Path, media: Path) -> None:
        self._path, self._media = path, media
        self._head = read_head(path)
        self._about = as_object(self._head.get("metadata"))
        self._items: list[ForeignItem] = []
        self._messages = 0
        self._at = read_moment(self._head.get("created_at"), int(path.stat().st_mtime * 1000))
        self._boundary = self._find_boundary()

    def _find_boundary(self) -> int:
        for key in ("last_archived", "last_consolidated"):
            value = self._head.get(key)
            if isinstance(value, int) and value > 0:
                return value
        return 0

    def read(self) -> NanobotSession:
        created = self._at
        with self._path.open(encoding="utf-8", errors="replace") as file:
            for number, line in enumerate(file, 1):
                if line.strip():
                    self._read_line(number, line)
        for record in self._list_unfinished():
            self._add_message(record)
        if self._boundary and self._boundary == self._messages:
            self._compact("end")
        times = [item.at for item in self._items if isinstance(item, ForeignMessage)]
        return NanobotSession(
            key=read_key(self._path, self._head),
            title=as_text(self._about.get("title")),
            created_at=min([created, *times]),
            updated_at=read_moment(self._head.get("updated_at"), self._at),
            items=self._items,
            last_channel=as_text(self._about.get("last_channel")),
        )

    def _read_line(self, number: int, line: str) -> None:
        parsed = _parse(line)
        record = as_object(parsed)
        kind = record.get("_type")
        if kind == "metadata" and number == 1:
            return
        if kind is not None:
            text = "The state of a provider" if kind == "provider_state" else f"A record: {kind}"
            self._add_event(record, f"line-{number}", "provider-state", text)
        elif not record:
            self._add_event(parsed, f"line-{number}", "damaged", "A line that is no message")
            self._messages += 1
        else:
            self._add_message(record)

    def _add_event(self, record: object, name: str, kind: str, text: str) -> None:
        self._items.append(make_event(record, name=name, at=self._at, kind=kind, text=text))

    def _add_message(self, record: dict[str, Any]) -> None:
        name = str(self._messages + 1)
        is_checkpoint = bool(record.get("_hidden_history")) and as_text(
            record.get("content")
        ).startswith(_CHECKPOINT)
        if self._messages == self._boundary and self._boundary:
            self._compact(name)
        elif is_checkpoint:
            text = "The place of an earlier summary, which is not stored"
            self._add_event(record, name, "compaction", text)
        self._messages += 1
        if is_checkpoint:
            return
        item = read_message({**record, "id": name}, name=name, at=self._at)
        self._at = item.at
        if record.get("_command") and isinstance(item, ForeignMessage):
            text = f"A command: {item.text}"
            item = make_event(record, name=name, at=item.at, kind="command", text=text)
        if isinstance(item, ForeignMessage) and item.role is Role.USER:
            item = replace(item, files=[*item.files, *self._list_files(record)])
        self._items.append(item)

    def _compact(self, name: str) -> None:
        """Add the last summary, whose place the first line tells."""
        told = as_object(self._about.get("_last_summary"))
        summary = as_text(told.get("text")) or as_text(self._about.get("_last_summary"))
        self._items.append(
            ForeignCompaction(
                id=f"{name}:summary", at=self._at, summary=summary or _NO_SUMMARY, kept_from=None
            )
        )

    def _list_files(self, record: Mapping[str, Any]) -> Iterator[ForeignFile]:
        for value in as_list(record.get("media")):
            name = as_text(value)
            place = Path(name)
            content = None
            if place.is_absolute() and place.is_file() and place.is_relative_to(self._media):
                content = place.read_bytes()
            yield ForeignFile(name=place.name or name, media_type="", content=content)

    def _list_unfinished(self) -> Iterator[dict[str, Any]]:
        """Yield the messages of a turn that was not finished when it was stored last."""
        beside = as_object(read_json(self._path.with_name(self._path.stem + _CHECKPOINT_SUFFIX)))
        told = as_object(beside.get("checkpoint")) or as_object(
            self._about.get("runtime_checkpoint")
        )
        count_then = beside.get("base_message_count", self._messages)
        if not told or count_then != self._messages:
            return
        for record in (told.get("assistant_message"), *as_list(told.get("completed_tool_results"))):
            if message := as_object(record):
                yield message
