"""A JSON export of chats of Open WebUI."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from clew.core.payload import as_object
from clew.foreign.conversations import ForeignProblem
from clew.foreign.homes import PlainHome
from clew.foreign.json_arrays import BrokenArray, iter_array
from clew.foreign.readers.open_webui.chats import list_conversations, read_stored
from clew.record import replace

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from clew.foreign.conversations import ForeignFile
    from clew.foreign.homes import Found


class NoFiles:
    """Files of an export: it has only their names."""

    def fetch(self, name: str) -> ForeignFile | None:
        """Return nothing."""
        return None


class ExportHome(PlainHome):
    """The chats of an export, in its order."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.description = f"export of chats of Open WebUI, {path}"

    def iter_conversations(self, *, since: int = 0) -> Iterator[Found]:
        number = 0
        try:
            with self._path.open(encoding="utf-8-sig", errors="replace") as file:
                for number, record in enumerate(iter_array(file), 1):
                    yield from _read_record(as_object(record), number, since)
        except BrokenArray as error:
            place = f"{self._path.name}, after chat {number}"
            yield ForeignProblem(place=place, reason=f"{error}: export it again")


def _read_record(row: Mapping[str, Any], number: int, since: int) -> Iterator[Found]:
    if not row:
        yield ForeignProblem(place=f"chat {number}", reason="it is no chat")
        return
    stored = read_stored(row, as_object(row.get("chat")) or row)
    if stored.updated_at >= since:
        yield from list_conversations(replace(stored, id=stored.id or str(number)), NoFiles())
