"""One connection to a PostgreSQL database, in one thread."""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Concatenate, LiteralString, ParamSpec, TypeVar

from clew.errors import StoreUnavailable
from clew.store.direct import Direct
from clew.store.postgres import attempts, opening
from clew.store.postgres.address import Address
from clew.store.postgres.attempts import Attempts
from clew.store.postgres.errors import translate
from clew.store.postgres.limits import Limits
from clew.store.postgres.link import Link
from clew.store.postgres.tx import Voided

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from clew.store.contract import Tx

P = ParamSpec("P")
T = TypeVar("T")

#: Between two statements another store is read or filled, which may take a while.
_LIMITS = Limits(pause=3600.0, pause_reading=3600.0)


class PostgresDirect(Direct):
    """The tables of the schema that the connection finds first, or of ``schema``."""

    dialect = "postgres"

    def __init__(self, url: str, *, schema: LiteralString | None = None) -> None:
        """
        Connect.

        :raises StoreUnusable: if the server or its database will not do
        :raises StoreUnavailable: if it does not answer now
        """
        address = Address(url)
        self.name = address.name
        self._schema: LiteralString | None = schema
        pids: set[int] = set()
        self._reader = Link(address, pids, pause=_LIMITS.pause_reading)
        self._writer = Link(address, pids, pause=_LIMITS.pause)
        try:
            opening.probe(self._writer, address)
        except Voided as void:
            raise StoreUnavailable(f"PostgreSQL at {self.name}: {translate(void.error)}") from void

    def read(self, job: Callable[Concatenate[Tx, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        with self._interruptible(self._reader) as tries:
            return attempts.read(
                self._reader, lambda t: job(self._there(t), *args, **kwargs), None, tries
            )

    def write(self, job: Callable[Concatenate[Tx, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        with self._interruptible(self._writer) as tries:
            result, _ = attempts.write(
                self._writer, lambda t: job(self._there(t), *args, **kwargs), None, tries
            )
        return result

    def close(self) -> None:
        self._reader.drop()
        self._writer.drop()

    def _there(self, t: Tx) -> Tx:
        if self._schema is not None:
            t.run(f"SET LOCAL search_path TO {self._schema}")
        return t

    @contextmanager
    def _interruptible(self, link: Link) -> Generator[Attempts]:
        try:
            yield Attempts(_LIMITS, time.monotonic())
        except KeyboardInterrupt:
            # In the middle of a statement: what its answer would be is nobody's affair any more.
            link.drop()
            raise
        finally:
            link.tidy()
