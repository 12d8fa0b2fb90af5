"""
SQLite files of other programs, read without a trace.

Nothing is created beside the file. In WAL mode that takes care: SQLite makes the files ``-wal`` and
``-shm`` even for a reader. So a file that nobody has open is read as immutable, and read again if
it changed meanwhile; one that was left with a WAL but no index of it is read from a copy.
"""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
import weakref
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar
from urllib.parse import quote

from clew.record import Record

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

T = TypeVar("T")

_HEADER: Final = b"SQLite format 3\0"
#: Position of the format version in the header, and its value for WAL mode.
_VERSION_AT, _WAL_VERSION = 18, 2
_PATIENCE: Final = 5.0
_ATTEMPTS: Final = 5


class _State(Record):
    """State of the files: if it is another after a read, what was read may be of two moments."""

    modified: int
    size: int
    has_wal: bool
    has_index: bool
    has_journal: bool


class ForeignDatabase:
    """A SQLite file of another program, opened anew for each read."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._copy: Path | None = None
        self._copied: _State | None = None

    def read(self, query: Callable[[sqlite3.Connection], T]) -> T:
        """
        Run a query on the file as it is at one moment.

        :raises sqlite3.Error: if it is locked or damaged
        :raises OSError: if the file cannot be read
        """
        for _ in range(_ATTEMPTS - 1):
            state = self._look()
            is_immutable = self._is_immutable(state)
            try:
                result = self._run(query, self._make_uri(state))
            except sqlite3.Error:
                if not is_immutable or state == self._look():
                    raise
            else:
                if not is_immutable or state == self._look():
                    return result
        return self._run(query, self._make_copy(self._look()))

    def _run(self, query: Callable[[sqlite3.Connection], T], uri: str) -> T:
        with closing(
            sqlite3.connect(uri, uri=True, timeout=_PATIENCE, isolation_level=None)
        ) as connection:
            connection.row_factory = sqlite3.Row
            connection.text_factory = _decode
            connection.execute("PRAGMA query_only = 1")
            connection.execute("BEGIN")
            return query(connection)

    def _look(self) -> _State:
        about = self.path.stat()
        return _State(
            modified=about.st_mtime_ns,
            size=about.st_size,
            has_wal=_is_filled(self._beside("-wal")),
            has_index=self._beside("-shm").exists(),
            has_journal=_is_filled(self._beside("-journal")),
        )

    def _beside(self, suffix: str) -> Path:
        return self.path.with_name(self.path.name + suffix)

    def _is_immutable(self, state: _State) -> bool:
        return not state.has_wal and not state.has_index and _is_in_wal_mode(self.path)

    def _make_uri(self, state: _State) -> str:
        if state.has_journal or (state.has_wal and not state.has_index):
            return self._make_copy(state)
        return _uri_of(self.path, "&immutable=1" if self._is_immutable(state) else "")

    def _make_copy(self, state: _State) -> str:
        if self._copy is None or state != self._copied:
            self._copy = Path(tempfile.mkdtemp(prefix="clew-import-"))
            weakref.finalize(self, shutil.rmtree, self._copy, ignore_errors=True)
            self._copied = state
            for suffix in ("", "-wal", "-journal"):
                file = self._beside(suffix)
                if file.exists():
                    shutil.copyfile(file, self._copy / file.name)
        # Written to once, to bring in what the WAL or the journal holds.
        copy = self._copy / self.path.name
        return f"file:{quote(str(copy))}"


def _uri_of(path: Path, more: str) -> str:
    return f"file:{quote(str(path.absolute()))}?mode=ro{more}"


def _is_filled(path: Path) -> bool:
    try:
        return path.stat().st_size > 0
    except OSError:
        return False


def is_sqlite(path: Path) -> bool:
    """Return whether a file begins as SQLite's do."""
    try:
        with path.open("rb") as file:
            return file.read(len(_HEADER)) == _HEADER
    except OSError:
        return False


def _is_in_wal_mode(path: Path) -> bool:
    with path.open("rb") as file:
        header = file.read(_VERSION_AT + 1)
    return len(header) > _VERSION_AT and header[_VERSION_AT] == _WAL_VERSION


def _decode(text: bytes) -> str:
    return text.decode("utf-8", "replace")


def list_columns(connection: sqlite3.Connection, table: str) -> frozenset[str]:
    """Return the names of a table's columns; none if there is no such table."""
    name = table.replace('"', '""')
    return frozenset(row["name"] for row in connection.execute(f'PRAGMA table_info("{name}")'))


def iter_rows(cursor: sqlite3.Cursor) -> Iterator[sqlite3.Row | sqlite3.Error]:
    """Yield the rows; where the file is damaged, the error as the last one."""
    while True:
        try:
            row: Any = cursor.fetchone()
        except sqlite3.Error as error:
            yield error
            return
        if row is None:
            return
        yield row


def explain_error(error: sqlite3.Error) -> str:
    """Return what is wrong with a file, and what helps."""
    text = str(error)
    if "locked" in text or "busy" in text:
        return "another program has locked it: stop that program, or try again"
    if "malformed" in text or "not a database" in text or "disk I/O" in text:
        return f"it is damaged ({text}): restore it from a backup of that program"
    return f"SQLite cannot read it: {text}"
