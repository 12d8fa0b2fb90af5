"""Liveness of owners: each holds a session advisory lock on a dedicated connection."""

from __future__ import annotations

import asyncio
import contextlib
import math
import time
from typing import TYPE_CHECKING

from clew.errors import StoreUnavailable
from clew.store.postgres.persistent_connection import PersistentConnection, call_with_timeout
from clew.store.postgres.tx import advisory_lock_key

if TYPE_CHECKING:
    from clew.store.postgres.dsn import Connection, Dsn
    from clew.store.postgres.limits import Limits

_TAKE_LOCK = b"SELECT pg_try_advisory_lock($1)"
_RELEASE_LOCK = b"SELECT pg_advisory_unlock($1)"
_RELEASE_ALL = b"SELECT pg_advisory_unlock_all()"
_RETRY_SECONDS = 0.2


class PostgresLiveness:
    """
    Locks of this process's owners, held while the server can be reached.

    A lock is lost with its connection. Other processes then see the owner as dead, rightly,
    since its writes fail as well. The lock is taken again on the next connection.

    A restarted server knows no owner. A process that lost its own lock therefore gives the
    other owners time to renew theirs (``is_uncertain``), so that it does not take over the
    work of a living process.
    """

    def __init__(self, address: Dsn, limits: Limits) -> None:
        self._limits = limits
        self._owners: dict[str, asyncio.Event] = {}
        self._held: set[str] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        #: Owners whose lock was held once, on any connection.
        self._proven: set[str] = set()
        #: When the connection was last reopened.
        self._regained = -math.inf
        # The server notices a closed connection a little later; a process that saw us close must
        # not find us alive.
        self._connection = PersistentConnection(
            "clew-postgres-owner", address, self._update_locks, farewell=_RELEASE_ALL
        )

    async def register_owner(self, owner: str) -> None:
        """
        Return once the lock is held, also for an owner that may have lost it.

        :raises StoreUnavailable: if the server cannot be reached, or another process holds
            the lock
        """
        if self._connection.is_up and owner in self._held:
            return
        again = owner in self._owners
        taken = self._owners.setdefault(owner, asyncio.Event())
        taken.clear()
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
            self._connection.start()
        self._connection.wake()
        try:
            async with asyncio.timeout(self._limits.retry_timeout):
                await taken.wait()
        except TimeoutError:
            if not again:
                self._owners.pop(owner, None)
            self._connection.wake()
            raise StoreUnavailable(
                f"the lock of owner {owner} cannot be taken: the server does not answer,"
                " or another process holds it"
            ) from None

    def is_uncertain(self) -> bool:
        """Return true if owners that seem dead may only have lost their connections."""
        if not self._proven:
            return False
        return (
            not self._connection.is_up
            or time.monotonic() - self._regained < self._limits.liveness_grace
        )

    async def aclose(self) -> None:
        """Release the locks."""
        await asyncio.to_thread(self._connection.close)

    def _update_locks(self, connection: Connection, fresh: bool) -> float:
        if fresh:
            if self._proven:
                self._regained = time.monotonic()
            self._held.clear()
        else:
            connection.pgconn.consume_input()
        owners = dict(self._owners)
        for owner in self._held - owners.keys():
            _run_lock_statement(connection, _RELEASE_LOCK, owner)
        self._held &= owners.keys()
        for owner in owners.keys() - self._held:
            if _run_lock_statement(connection, _TAKE_LOCK, owner):
                self._held.add(owner)
                self._proven.add(owner)
        # A lock that cannot be taken again is still held by our previous connection.
        for owner in self._proven & owners.keys():
            self._signal_taken(owners[owner])
        # After a broken connection the server may keep the old one for a while.
        return self._limits.keepalive_interval if len(self._held) == len(owners) else _RETRY_SECONDS

    def _signal_taken(self, taken: asyncio.Event) -> None:
        if self._loop is not None:
            with contextlib.suppress(RuntimeError):
                # A closed loop: the caller is gone.
                self._loop.call_soon_threadsafe(taken.set)


def _run_lock_statement(connection: Connection, sql: bytes, owner: str) -> bool:
    key = advisory_lock_key(owner)
    signed = key - (1 << 64) if key >> 63 else key
    row = call_with_timeout(connection, lambda link: link.execute(sql, (signed,)).fetchone())
    return row == (True,)
