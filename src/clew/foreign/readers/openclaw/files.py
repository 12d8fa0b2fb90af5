"""Sessions of OpenClaw in the files of releases before its databases."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from clew.core.payload import as_object, as_text
from clew.foreign.folders import read_json
from clew.foreign.jsonl import iter_lines, list_changed, read_mtime
from clew.foreign.readers.openclaw.store import StoredSession

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from clew.foreign.jsonl import JsonLine

#: Beside a session, and none: how its runs went.
_NOT_SESSIONS: Final = ".trajectory.jsonl"
_PARENTS: Final = ("parentSessionKey", "spawnedBy")


def list_session_files(folder: Path, since: int) -> list[Path]:
    """Return the files of sessions, also of those that were reset, the oldest first."""
    found = folder.glob("agents/*/sessions/*.jsonl")
    reset = folder.glob("agents/*/sessions/*.jsonl.reset.*")
    kept = [file for file in (*found, *reset) if not file.name.endswith(_NOT_SESSIONS)]
    return list_changed(kept, since)


class SessionFiles:
    """Reader of session files, with the chats that lead to them."""

    def __init__(self) -> None:
        self._keys: dict[Path, Mapping[str, Any]] = {}

    def read(self, file: Path) -> StoredSession:
        """
        Return the session of a file.

        :raises OSError: if it cannot be read
        """
        name = file.name.partition(".jsonl")[0]
        lines = list(iter_lines(file))
        key, about = self._find_key(file.parent, name)
        return StoredSession(
            id=name,
            key=key if file.suffix == ".jsonl" else "",
            at=read_mtime(file),
            source=self._find_source(file.parent, name, about, lines),
            lines=lines,
        )

    def _list_keys(self, folder: Path) -> Mapping[str, Any]:
        if folder not in self._keys:
            self._keys[folder] = as_object(read_json(folder / "sessions.json"))
        return self._keys[folder]

    def _find_key(self, folder: Path, name: str) -> tuple[str, Mapping[str, Any]]:
        for key, told in self._list_keys(folder).items():
            about = as_object(told)
            if about.get("sessionId") == name:
                return key, about
        return "", {}

    def _find_source(
        self, folder: Path, name: str, about: Mapping[str, Any], lines: Sequence[JsonLine]
    ) -> str | None:
        """Return the session that one was forked from, or was started by."""
        head = (as_text(line.data.get("parentSession")) for line in lines[:1])
        keys = self._list_keys(folder)
        parents: Iterator[str] = (
            as_text(as_object(keys.get(as_text(about.get(key)))).get("sessionId"))
            for key in _PARENTS
        )
        found = next(filter(None, (*head, *parents)), "")
        source = found.replace("\\", "/").rpartition("/")[2].partition(".jsonl")[0]
        return source if source and source != name else None
