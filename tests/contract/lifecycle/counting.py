"""A store that counts which rows are written."""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING, Concatenate, LiteralString, ParamSpec, TypeVar

from clew.store.contract import Store, Tx

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from clew.store.contract import Row, Value
    from clew.store.search_index import SearchIndex

T = TypeVar("T")
P = ParamSpec("P")

_WRITE = re.compile(r"\s*(?:INSERT INTO|UPDATE|DELETE FROM)\s+(\w+)")


class CountedStore(Store):
    """Passes everything on."""

    def __init__(self, inner: Store) -> None:
        self.inner = inner
        #: Rows written, by table, in transactions that were committed.
        self.written: Counter[str] = Counter()

    async def write(
        self, job: Callable[Concatenate[Tx, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        def counted(t: Tx) -> tuple[T, Counter[str]]:
            tx = _CountedTx(t)
            return job(tx, *args, **kwargs), tx.written

        result, written = await self.inner.write(counted)
        self.written += written
        return result

    async def read(
        self, job: Callable[Concatenate[Tx, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        return await self.inner.read(job, *args, **kwargs)

    def watch_changes(self) -> AsyncIterator[frozenset[str] | None]:
        return self.inner.watch_changes()

    async def register_owner(self, owner: str) -> None:
        await self.inner.register_owner(owner)

    async def check_available(self) -> None:
        await self.inner.check_available()

    async def aclose(self) -> None:
        await self.inner.aclose()


class _CountedTx(Tx):
    def __init__(self, real: Tx) -> None:
        self._real = real
        self.dialect = real.dialect
        self.written: Counter[str] = Counter()

    def _count(self, sql: str, rows: int) -> None:
        if rows and (match := _WRITE.match(sql)):
            self.written[match[1]] += rows

    @property
    def now(self) -> int:
        return self._real.now

    @property
    def search_index(self) -> SearchIndex:
        return self._real.search_index

    def execute(self, sql: LiteralString, *args: Value) -> int:
        rows = self._real.execute(sql, *args)
        self._count(sql, rows)
        return rows

    def fetch_one(self, sql: LiteralString, *args: Value) -> Row | None:
        row = self._real.fetch_one(sql, *args)
        self._count(sql, 0 if row is None else 1)
        return row

    def fetch_all(self, sql: LiteralString, *args: Value) -> list[Row]:
        rows = self._real.fetch_all(sql, *args)
        self._count(sql, len(rows))
        return rows

    def run_nested(self, job: Callable[[Tx], T]) -> T:
        return self._real.run_nested(lambda _: job(self))

    def is_alive(self, owner: str) -> bool:
        return self._real.is_alive(owner)

    def notify(self, topic: str) -> None:
        self._real.notify(topic)
