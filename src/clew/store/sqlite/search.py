"""The search index on SQLite: an FTS5 table without content whose rows are messages."""

from __future__ import annotations

from typing import TYPE_CHECKING, LiteralString, cast

from clew.errors import SearchNotReady, StoreError, StoreFull, StoreUnavailable
from clew.store.index import COLUMNS, VISIBLE, within_budget

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from clew.core.scope import Scope
    from clew.store.contract import Row, Tx, Value

#: As in ``0001_first.sqlite.sql``.
_CREATE: tuple[LiteralString, ...] = (
    """\
CREATE VIRTUAL TABLE search_index
    USING fts5(tokens, content = '', columnsize = 0, detail = none, tokenize = 'ascii')""",
    "INSERT INTO search_index (search_index, rank) VALUES ('secure-delete', 1)",
)
_PARTS: tuple[LiteralString, ...] = (
    "search_index_data",
    "search_index_idx",
    "search_index_config",
)
#: What the tables of a damaged index are called afterwards.
_SPARE: LiteralString = "search_damaged_"
#: A token of every row: an index that has it nowhere has lost its content.
_EVERY = "\ue000\ue000"
#: The tokenizer splits at ASCII punctuation, so that is stored full-width. Folded text has no
#: full-width characters of its own.
_WIDE = {code: code + 0xFEE0 for code in range(0x21, 0x7F) if not chr(code).isalnum()}
_FIRST_CHUNK, _CHUNK = 64, 500

_TAIL: LiteralString = f"""
    SELECT {COLUMNS} FROM entry e JOIN conversation c ON c.id = e.conversation_id
    WHERE e.n > (SELECT indexed FROM search_state) AND e.n < $2 AND {VISIBLE}
    ORDER BY e.n DESC LIMIT $3
"""
_FIND: LiteralString = f"""
    SELECT {COLUMNS}
    FROM search_index
    CROSS JOIN entry e ON e.n = search_index.rowid
    JOIN conversation c ON c.id = e.conversation_id
    WHERE search_index MATCH $4 AND search_index.rowid < $2 AND {VISIBLE}
    ORDER BY search_index.rowid DESC LIMIT $3
"""
_INDEXED: LiteralString = """
    SELECT n FROM entry WHERE n <= (SELECT indexed FROM search_state) AND kind = 'message'
"""
_HELD: LiteralString = "SELECT rowid FROM search_index WHERE search_index MATCH $1"
_FAULTS: tuple[tuple[LiteralString, str], ...] = (
    (f"SELECT count(*) FROM ({_INDEXED} EXCEPT {_HELD})", "messages are not in it"),
    (f"SELECT count(*) FROM ({_HELD} EXCEPT {_INDEXED})", "of its rows are of no message"),
)


class SqliteIndex:
    """``SearchIndex`` in one transaction."""

    def __init__(self, t: Tx) -> None:
        self._t = t

    def behind(self, most: int) -> int:
        row = self._t.one(
            """
            SELECT count(*) FROM (
                SELECT 1 FROM entry
                WHERE n > (SELECT indexed FROM search_state) AND kind = 'message' LIMIT $1
            )
            """,
            most,
        )
        return 0 if row is None else row[0]

    def tail(self, viewer: Scope, before: int) -> Iterator[Row]:
        return self._chunks(_TAIL, viewer, before)

    def find(self, tokens: Sequence[str], viewer: Scope, before: int) -> Iterator[Row]:
        found = False
        try:
            for row in self._chunks(_FIND, viewer, before, _match(tokens)):
                found = True
                yield row
            if not found:
                self._check_content()
        except StoreError as error:
            raise _damaged(error) from error

    def _chunks(
        self, sql: LiteralString, viewer: Scope, before: int, *more: Value
    ) -> Iterator[Row]:
        size = _FIRST_CHUNK
        while True:
            rows = self._t.all(sql, viewer, before, size, *more)
            yield from rows
            if len(rows) < size:
                return
            before, size = rows[-1][0], _CHUNK

    def _check_content(self) -> None:
        """An index whose root was overwritten may read as an empty one."""
        row = self._t.one(
            """
            SELECT 1 FROM entry
            WHERE n <= (SELECT indexed FROM search_state) AND kind = 'message' LIMIT 1
            """
        )
        if row and not self._t.one(
            "SELECT 1 FROM search_index WHERE search_index MATCH $1 LIMIT 1", _match([_EVERY])
        ):
            raise SearchNotReady(damaged=True)

    def take(self, limit: int) -> list[Row]:
        rows = within_budget(
            self._t.all(
                """
                SELECT e.n, c.scope, e.text
                FROM entry e JOIN conversation c ON c.id = e.conversation_id
                WHERE e.n > (SELECT indexed FROM search_state) AND e.kind = 'message'
                ORDER BY e.n LIMIT $1
                """,
                limit,
            )
        )
        if rows:
            self._t.run("UPDATE search_state SET indexed = $1", rows[-1][0])
        return rows

    def add(self, messages: Sequence[tuple[int, set[str]]]) -> None:
        self._change("INSERT INTO search_index (rowid, tokens) VALUES ($1, $2)", messages)

    def remove(self, messages: Sequence[tuple[int, set[str]]]) -> None:
        row = self._t.one("SELECT indexed FROM search_state")
        indexed = 0 if row is None else row[0]
        self._change(
            "INSERT INTO search_index (search_index, rowid, tokens) VALUES ('delete', $1, $2)",
            [(n, tokens) for n, tokens in messages if n <= indexed],
        )

    def _change(self, sql: LiteralString, messages: Sequence[tuple[int, set[str]]]) -> None:
        try:
            for n, tokens in messages:
                self._t.run(sql, n, _row(tokens))
            # Writes the changes to the tables now: a damaged one shows here, not in COMMIT.
            self._t.run("INSERT INTO search_index (search_index) VALUES ('flush')")
        except StoreError as error:
            raise _damaged(error) from error

    def faults(self) -> list[str]:
        found: list[str] = []
        # Damaged entries are none of the index's.
        self._t.one(f"SELECT count(*) FROM ({_INDEXED})")
        try:
            for part in ("search_index", *_PARTS):
                lines = [str(row[0]) for row in self._t.all(f"PRAGMA quick_check({part})")]
                found += [line for line in lines if line != "ok"]
            for sql, what in () if found else _FAULTS:
                row = self._t.one(sql, _match([_EVERY]))
                if row is not None and row[0]:
                    found.append(f"{row[0]} {what}")
        except StoreError as error:
            raise _damaged(error) from error
        return found

    def clear(self) -> None:
        # DROP TABLE asks the module first, which fails where one of its tables is missing. And a
        # statement that meets a damaged page spoils the transaction: the tables are only renamed.
        self._t.run("PRAGMA writable_schema = ON")
        try:
            self._t.run("DELETE FROM sqlite_schema WHERE name = 'search_index'")
        finally:
            self._t.run("PRAGMA writable_schema = RESET")
        for part in _PARTS:
            if self._t.one("SELECT 1 FROM sqlite_schema WHERE name = $1", part):
                self._t.run(f"ALTER TABLE {part} RENAME TO {self._spare_name()}")
        for sql in _CREATE:
            self._t.run(sql)
        self._t.run("UPDATE search_state SET indexed = 0")

    def _spare_name(self) -> LiteralString:
        taken = self.remains()
        names = (f"{_SPARE}{number}" for number in range(len(taken) + 1))
        return cast("LiteralString", next(name for name in names if name not in taken))

    def remains(self) -> list[LiteralString]:
        found = self._t.all(
            "SELECT name FROM sqlite_schema WHERE type = 'table' AND name LIKE $1", f"{_SPARE}%"
        )
        return [row[0] for row in found]

    def discard(self, remains: LiteralString) -> None:
        try:
            self._t.run(f"DROP TABLE {remains}")
        except StoreError as error:
            raise _damaged(error) from error


def _row(tokens: set[str]) -> str:
    return " ".join((*tokens, _EVERY)).translate(_WIDE)


def _match(tokens: Sequence[str]) -> str:
    return " ".join(f'"{token.translate(_WIDE)}"' for token in tokens)


def _damaged(error: StoreError) -> StoreError:
    """What an error of the index means: its statements are right, so what fails is the index."""
    if isinstance(error, StoreUnavailable | StoreFull):
        return error
    return SearchNotReady(damaged=True)
