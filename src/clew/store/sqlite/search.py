"""Search index on SQLite: a contentless FTS5 table with a row per message."""

from __future__ import annotations

from typing import TYPE_CHECKING, LiteralString, cast

from clew.errors import SearchNotReady, StoreError, StoreFull, StoreUnavailable
from clew.store.search_index import (
    MESSAGE_COLUMNS,
    VISIBLE_CONDITION,
    CandidateMessage,
    take_within_budget,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from clew.core.scope import Scope
    from clew.store.contract import Tx, Value
    from clew.store.search_index import UnindexedMessage

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
#: Name prefix of the leftover tables of a damaged index.
_LEFTOVER_PREFIX: LiteralString = "search_damaged_"
#: A token of every row: an index without it has lost its content.
_SENTINEL = "\ue000\ue000"
#: The tokenizer splits at ASCII punctuation, so that is stored full-width. Folded text has no
#: full-width characters of its own.
_FULL_WIDTH = {code: code + 0xFEE0 for code in range(0x21, 0x7F) if not chr(code).isalnum()}
_FIRST_CHUNK, _CHUNK = 64, 500

_TAIL: LiteralString = f"""
    SELECT {MESSAGE_COLUMNS} FROM entry e JOIN conversation c ON c.id = e.conversation_id
    WHERE e.n > (SELECT indexed FROM search_state) AND e.n < $2 AND {VISIBLE_CONDITION}
    ORDER BY e.n DESC LIMIT $3
"""
_FIND: LiteralString = f"""
    SELECT {MESSAGE_COLUMNS}
    FROM search_index
    CROSS JOIN entry e ON e.n = search_index.rowid
    JOIN conversation c ON c.id = e.conversation_id
    WHERE search_index MATCH $4 AND search_index.rowid < $2 AND {VISIBLE_CONDITION}
    ORDER BY search_index.rowid DESC LIMIT $3
"""
_INDEXED_MESSAGES: LiteralString = """
    SELECT n FROM entry WHERE n <= (SELECT indexed FROM search_state) AND kind = 'message'
"""
_INDEX_ROWS: LiteralString = "SELECT rowid FROM search_index WHERE search_index MATCH $1"
_FAULTS: tuple[tuple[LiteralString, str], ...] = (
    (f"SELECT count(*) FROM ({_INDEXED_MESSAGES} EXCEPT {_INDEX_ROWS})", "messages are not in it"),
    (
        f"SELECT count(*) FROM ({_INDEX_ROWS} EXCEPT {_INDEXED_MESSAGES})",
        "of its rows are of no message",
    ),
)


class SqliteSearchIndex:
    """``SearchIndex`` in one transaction."""

    def __init__(self, t: Tx) -> None:
        self._t = t

    def count_unindexed(self, most: int) -> int:
        return self._t.fetch_value(
            """
            SELECT count(*) FROM (
                SELECT 1 FROM entry
                WHERE n > (SELECT indexed FROM search_state) AND kind = 'message' LIMIT $1
            )
            """,
            most,
        )

    def iter_unindexed(self, viewer: Scope, before: int) -> Iterator[CandidateMessage]:
        return self._fetch_chunks(_TAIL, viewer, before)

    def iter_matches(
        self, tokens: Sequence[str], viewer: Scope, before: int
    ) -> Iterator[CandidateMessage]:
        found = False
        try:
            for row in self._fetch_chunks(_FIND, viewer, before, _build_match(tokens)):
                found = True
                yield row
            if not found:
                self._check_not_emptied()
        except StoreError as error:
            raise _translate_index_error(error) from error

    def _fetch_chunks(
        self, sql: LiteralString, viewer: Scope, before: int, *more: Value
    ) -> Iterator[CandidateMessage]:
        size = _FIRST_CHUNK
        while True:
            rows = self._t.fetch_all(sql, viewer, before, size, *more)
            for row in rows:
                message = CandidateMessage(*row)
                before = message.n
                yield message
            if len(rows) < size:
                return
            size = _CHUNK

    def _check_not_emptied(self) -> None:
        """Raise if the index is empty: an overwritten root page can read as an empty index."""
        row = self._t.fetch_one(
            """
            SELECT 1 FROM entry
            WHERE n <= (SELECT indexed FROM search_state) AND kind = 'message' LIMIT 1
            """
        )
        if row and not self._has_rows():
            raise SearchNotReady(damaged=True)

    def _has_rows(self) -> bool:
        return self._t.exists(
            "SELECT 1 FROM search_index WHERE search_index MATCH $1 LIMIT 1",
            _build_match([_SENTINEL]),
        )

    def claim_unindexed(self, limit: int) -> list[UnindexedMessage]:
        messages = take_within_budget(
            self._t.fetch_all(
                """
                SELECT e.n, c.scope, e.text
                FROM entry e JOIN conversation c ON c.id = e.conversation_id
                WHERE e.n > (SELECT indexed FROM search_state) AND e.kind = 'message'
                ORDER BY e.n LIMIT $1
                """,
                limit,
            )
        )
        if messages:
            self._t.execute("UPDATE search_state SET indexed = $1", messages[-1].n)
        return messages

    def add_messages(self, messages: Sequence[tuple[int, set[str]]]) -> None:
        self._write_changes("INSERT INTO search_index (rowid, tokens) VALUES ($1, $2)", messages)

    def remove_messages(self, messages: Sequence[tuple[int, set[str]]]) -> None:
        indexed = self._t.fetch_value("SELECT indexed FROM search_state")
        self._write_changes(
            "INSERT INTO search_index (search_index, rowid, tokens) VALUES ('delete', $1, $2)",
            [(n, tokens) for n, tokens in messages if n <= indexed],
        )

    def _write_changes(self, sql: LiteralString, messages: Sequence[tuple[int, set[str]]]) -> None:
        try:
            for n, tokens in messages:
                self._t.execute(sql, n, _encode_tokens(tokens))
            # Write the changes to the tables now: damage shows here, not in COMMIT.
            self._t.execute("INSERT INTO search_index (search_index) VALUES ('flush')")
        except StoreError as error:
            raise _translate_index_error(error) from error

    def find_faults(self) -> list[str]:
        found: list[str] = []
        # Damage in the entries is not the index's.
        self._t.fetch_one(f"SELECT count(*) FROM ({_INDEXED_MESSAGES})")
        try:
            # Only a query notices that another connection has changed the index; the check
            # would look for pages that this one has seen before.
            self._has_rows()
            for part in ("search_index", *_PARTS):
                lines = self._t.fetch_column(f"PRAGMA quick_check({part})")
                found += [line for line in lines if line != "ok"]
            for sql, what in () if found else _FAULTS:
                if count := self._t.fetch_value(sql, _build_match([_SENTINEL])):
                    found.append(f"{count} {what}")
        except StoreError as error:
            raise _translate_index_error(error) from error
        return found

    def clear(self) -> None:
        # DROP TABLE calls the FTS5 module, which fails if one of its tables is missing. And a
        # statement that reads a damaged page voids the transaction: the tables are only renamed.
        self._t.execute("PRAGMA writable_schema = ON")
        try:
            self._t.execute("DELETE FROM sqlite_schema WHERE name = 'search_index'")
        finally:
            self._t.execute("PRAGMA writable_schema = RESET")
        for part in _PARTS:
            if self._t.fetch_one("SELECT 1 FROM sqlite_schema WHERE name = $1", part):
                self._t.execute(f"ALTER TABLE {part} RENAME TO {self._next_leftover_name()}")
        for sql in _CREATE:
            self._t.execute(sql)
        self._t.execute("UPDATE search_state SET indexed = 0")

    def _next_leftover_name(self) -> LiteralString:
        taken = self.find_leftover_tables()
        names = (f"{_LEFTOVER_PREFIX}{number}" for number in range(len(taken) + 1))
        return cast("LiteralString", next(name for name in names if name not in taken))

    def find_leftover_tables(self) -> list[LiteralString]:
        return self._t.fetch_column(
            "SELECT name FROM sqlite_schema WHERE type = 'table' AND name LIKE $1",
            f"{_LEFTOVER_PREFIX}%",
        )

    def drop_leftover_table(self, remains: LiteralString) -> None:
        try:
            self._t.execute(f"DROP TABLE {remains}")
        except StoreError as error:
            raise _translate_index_error(error) from error


def _encode_tokens(tokens: set[str]) -> str:
    return " ".join((*tokens, _SENTINEL)).translate(_FULL_WIDTH)


def _build_match(tokens: Sequence[str]) -> str:
    return " ".join(f'"{token.translate(_FULL_WIDTH)}"' for token in tokens)


def _translate_index_error(error: StoreError) -> StoreError:
    """
    Return the error to raise for an error of an index statement.

    The statements are correct, so what fails is the index.
    """
    if isinstance(error, StoreUnavailable | StoreFull):
        return error
    return SearchNotReady(damaged=True)
