"""Search index on PostgreSQL: an array of hashed tokens per message, under a GIN index."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, LiteralString

from clew.errors import SearchNotReady, StoreDamaged
from clew.store.search_index import (
    MESSAGE_COLUMNS,
    VISIBLE_CONDITION,
    CandidateMessage,
    take_within_budget,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from clew.core.scope import Scope
    from clew.store.contract import Tx
    from clew.store.search_index import UnindexedMessage

# A GIN index knows no order, so what it finds is narrowed to blocks of neighbouring n, the newest
# first, then larger ones. Each message has a token per size of block; sizes are powers of two.
_BLOCKS = (10, 13, 16, 19)
_CHUNK = 200

# The second part is empty except during a rebuild of the index.
_UNINDEXED: LiteralString = """
    SELECT n FROM search_todo
    UNION ALL
    SELECT n FROM entry
    WHERE n > (SELECT indexed FROM search_state) AND n <= (SELECT target FROM search_state)
      AND kind = 'message'
"""
_TAIL: LiteralString = f"""
    SELECT {MESSAGE_COLUMNS}
    FROM entry e JOIN conversation c ON c.id = e.conversation_id
    WHERE e.n IN ({_UNINDEXED}) AND e.n < $2 AND {VISIBLE_CONDITION}
    ORDER BY e.n DESC LIMIT $3
"""
_TO_REBUILD: LiteralString = """
    SELECT n FROM entry
    WHERE n > (SELECT indexed FROM search_state) AND n <= (SELECT target FROM search_state)
      AND kind = 'message'
    ORDER BY n LIMIT $1
"""
# Materialized: with a small LIMIT the planner would scan all rows in the order of n.
_FIND: LiteralString = """
    WITH found AS MATERIALIZED (
        SELECT n FROM search_index
        WHERE tokens @> CAST($1 AS integer[]) AND tokens && CAST($2 AS integer[])
    )
    SELECT n FROM found WHERE n < $3 ORDER BY n DESC
"""
_FIND_ANYWHERE: LiteralString = """
    WITH found AS MATERIALIZED (
        SELECT n FROM search_index WHERE tokens @> CAST($1 AS integer[])
    )
    SELECT n FROM found WHERE n < $2 ORDER BY n DESC
"""
_ROWS: LiteralString = f"""
    SELECT {MESSAGE_COLUMNS}
    FROM entry e JOIN conversation c ON c.id = e.conversation_id
    WHERE e.n = ANY (CAST($2 AS bigint[])) AND {VISIBLE_CONDITION}
    ORDER BY e.n DESC
"""
_MESSAGES: LiteralString = "SELECT n FROM entry WHERE kind = 'message'"
_FAULTS: tuple[tuple[LiteralString, str], ...] = (
    (
        f"""
        SELECT count(*) FROM (
            {_MESSAGES} EXCEPT (SELECT n FROM search_index UNION ALL {_UNINDEXED})
        ) x
        """,
        "messages are not in it",
    ),
    (
        f"SELECT count(*) FROM (SELECT n FROM search_index EXCEPT {_MESSAGES}) x",
        "of its rows are of no message",
    ),
    (
        f"SELECT count(*) FROM (SELECT n FROM search_todo EXCEPT {_MESSAGES}) x",
        "rows that it waits for are of no message",
    ),
)


class PostgresSearchIndex:
    """``SearchIndex`` in one transaction."""

    def __init__(self, t: Tx) -> None:
        self._t = t

    def count_unindexed(self, most: int) -> int:
        return self._t.fetch_value(
            f"SELECT count(*) FROM (SELECT 1 FROM ({_UNINDEXED}) b LIMIT $1) c", most
        )

    def iter_unindexed(self, viewer: Scope, before: int) -> Iterator[CandidateMessage]:
        while True:
            rows = self._t.fetch_all(_TAIL, viewer, before, _CHUNK)
            for row in rows:
                message = CandidateMessage(*row)
                before = message.n
                yield message
            if len(rows) < _CHUNK:
                return

    def iter_matches(
        self, tokens: Sequence[str], viewer: Scope, before: int
    ) -> Iterator[CandidateMessage]:
        wanted = _format_array(_hash_token(token) for token in tokens)
        try:
            for numbers in self._iter_block_matches(wanted, before):
                for start in range(0, len(numbers), _CHUNK):
                    chunk = _format_array(numbers[start : start + _CHUNK])
                    found = self._t.fetch_all(_ROWS, viewer, chunk)
                    yield from (CandidateMessage(*row) for row in found)
        except StoreDamaged as error:
            raise SearchNotReady(damaged=True) from error

    def _iter_block_matches(self, wanted: str, before: int) -> Iterator[list[int]]:
        newest = self._t.fetch_value("SELECT max(n) FROM search_index")
        if newest is None:
            return
        before = min(before, newest + 1)
        for level, size in enumerate(_BLOCKS):
            block = (before - 1) >> size
            blocks = _format_array(
                _block_token(level, number) for number in (block, block - 1) if number >= 0
            )
            yield self._t.fetch_column(_FIND, wanted, blocks, before)
            before = max(block - 1, 0) << size
            if before <= 0:
                return
        yield self._t.fetch_column(_FIND_ANYWHERE, wanted, before)

    def claim_unindexed(self, limit: int) -> list[UnindexedMessage]:
        # One batch at a time: the row is the lock.
        ((indexed, target),) = self._t.fetch_all("SELECT indexed, target FROM search_state @LOCK")
        if indexed < target:
            # Locked: a concurrent deletion waits and finds them in the index, or they are gone.
            if messages := self._fetch_messages(_TO_REBUILD, limit, lock="FOR KEY SHARE OF e"):
                self._remove_from_todo(_format_array(each.n for each in messages))
                self._t.execute("UPDATE search_state SET indexed = $1", messages[-1].n)
                return messages
            self._t.execute("UPDATE search_state SET indexed = target")
        found = self._fetch_messages("SELECT n FROM search_todo ORDER BY n LIMIT $1", limit)
        # Rows missing here were deleted meanwhile, with their messages: do not add those.
        taken = self._remove_from_todo(_format_array(each.n for each in found))
        messages = [each for each in found if each.n in taken]
        if not messages:
            self._delete_orphans()  # or the maintenance would find them for ever
        return messages

    def _fetch_messages(
        self, which: LiteralString, limit: int, *, lock: LiteralString = ""
    ) -> list[UnindexedMessage]:
        return take_within_budget(
            self._t.fetch_all(
                f"""
                SELECT e.n, c.scope, e.text
                FROM ({which}) b
                JOIN entry e ON e.n = b.n JOIN conversation c ON c.id = e.conversation_id
                ORDER BY e.n {lock}
                """,
                limit,
            )
        )

    def _remove_from_todo(self, numbers: str) -> set[int]:
        """Remove messages from ``search_todo``; return which of them were there."""
        gone = self._t.fetch_column(
            "DELETE FROM search_todo WHERE n = ANY (CAST($1 AS bigint[])) RETURNING n", numbers
        )
        return set(gone)

    def add_messages(self, messages: Sequence[tuple[int, set[str]]]) -> None:
        if not messages:
            return
        try:
            self._t.execute(
                """
                INSERT INTO search_index (n, tokens)
                SELECT n, CAST(tokens AS integer[])
                FROM unnest(CAST($1 AS bigint[]), CAST($2 AS text[])) AS m (n, tokens)
                ON CONFLICT (n) DO NOTHING
                """,
                _format_array(n for n, _ in messages),
                _format_array(f'"{encode_tokens(n, tokens)}"' for n, tokens in messages),
            )
        except StoreDamaged as error:
            raise SearchNotReady(damaged=True) from error

    def remove_messages(self, messages: Sequence[tuple[int, set[str]]]) -> None:
        numbers = _format_array(n for n, _ in messages)
        # This one first: it waits for a batch that is adding them.
        self._remove_from_todo(numbers)
        self._t.execute("DELETE FROM search_index WHERE n = ANY (CAST($1 AS bigint[]))", numbers)

    def find_faults(self) -> list[str]:
        found: list[str] = []
        for sql, what in _FAULTS:
            if count := self._t.fetch_value(sql):
                found.append(f"{count} {what}")
        return found

    def clear(self) -> None:
        self._t.execute("TRUNCATE search_index")
        self._delete_orphans()
        self._t.execute(
            """
            UPDATE search_state SET indexed = 0, target = (SELECT COALESCE(max(n), 0) FROM entry)
            """
        )

    def _delete_orphans(self) -> None:
        self._t.execute(
            "DELETE FROM search_todo d WHERE NOT EXISTS (SELECT FROM entry e WHERE e.n = d.n)"
        )

    def find_leftover_tables(self) -> list[LiteralString]:
        return []

    def drop_leftover_table(self, remains: LiteralString) -> None:
        """Do nothing: there are no leftover tables on PostgreSQL."""


def _format_array(some: Iterable[object]) -> str:
    return "{" + ",".join(map(str, some)) + "}"


def _hash_token(token: str) -> int:
    return zlib.crc32(token.encode()) >> 1


def _block_token(level: int, number: int) -> int:
    # Below zero, where no hash is.
    return -(level << 29 | number) - 1


def encode_tokens(n: int, tokens: set[str]) -> str:
    """Return the index array of message ``n``, as a PostgreSQL array literal."""
    blocks = (_block_token(level, n >> size) for level, size in enumerate(_BLOCKS))
    return _format_array({*map(_hash_token, tokens), *blocks})
