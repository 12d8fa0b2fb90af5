"""The proof that an owner lives: a session advisory lock on a connection of its own."""

from __future__ import annotations

import asyncio
import contextlib
import math
import time
from typing import TYPE_CHECKING

from clew.errors import StoreUnavailable
from clew.store.postgres.line import Line, answer
from clew.store.postgres.tx import lock_key

if TYPE_CHECKING:
    from clew.store.postgres.address import Address, Connection
    from clew.store.postgres.limits import Limits

_TAKE = b"SELECT pg_try_advisory_lock($1)"
_RELEASE = b"SELECT pg_advisory_unlock($1)"
_RELEASE_ALL = b"SELECT pg_advisory_unlock_all()"
_RETRY = 0.2


class Presence:
    """
    Holds the locks of this process's owners for as long as the server can be reached.

    A lock is gone as soon as its connection is: others then see the owner dead, and that is the
    truth, for its writes fail as well. The lock is taken again with the next connection.

    A server that was restarted knows no owner. Whoever lost its own lock with all the others leaves
    them time to come back (``in_doubt``), so that nobody takes over what a living process works on.
    """

    def __init__(self, address: Address, limits: Limits) -> None:
        self._limits = limits
        self._owners: dict[str, asyncio.Event] = {}
        self._held: set[str] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        #: Whose lock was held once, on any connection.
        self._proven: set[str] = set()
        #: When the connection was opened last, after another one.
        self._regained = -math.inf
        # The server notices a closed connection a little later; whoever saw us close must not
        # find us alive.
        self._line = Line("clew-postgres-owner", address, self._serve, farewell=_RELEASE_ALL)

    async def register(self, owner: str) -> None:
        """
        Return once the lock is held; also for an owner that was registered and may have lost it.

        :raises StoreUnavailable: the server cannot be reached, or another process holds the lock
        """
        if self._line.up and owner in self._held:
            return
        again = owner in self._owners
        taken = self._owners.setdefault(owner, asyncio.Event())
        taken.clear()
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
            self._line.start()
        self._line.nudge()
        try:
            async with asyncio.timeout(self._limits.patience):
                await taken.wait()
        except TimeoutError:
            if not again:
                self._owners.pop(owner, None)
            self._line.nudge()
            raise StoreUnavailable(
                f"the lock of owner {owner} cannot be taken: the server does not answer,"
                " or another process holds it"
            ) from None

    def in_doubt(self) -> bool:
        """Whether owners that seem dead may only have lost their connections, as we have."""
        if not self._proven:
            return False
        return not self._line.up or time.monotonic() - self._regained < self._limits.regain

    async def aclose(self) -> None:
        """Give the locks back."""
        await asyncio.to_thread(self._line.close)

    def _serve(self, connection: Connection, fresh: bool) -> float:
        if fresh:
            if self._proven:
                self._regained = time.monotonic()
            self._held.clear()
        else:
            connection.pgconn.consume_input()
        owners = dict(self._owners)
        for owner in self._held - owners.keys():
            _ask(connection, _RELEASE, owner)
        self._held &= owners.keys()
        for owner in owners.keys() - self._held:
            if _ask(connection, _TAKE, owner):
                self._held.add(owner)
                self._proven.add(owner)
        # One that cannot be taken again is still held by our connection before this one.
        for owner in self._proven & owners.keys():
            self._tell(owners[owner])
        # After a broken connection the server may believe in the old one for a while.
        return self._limits.pulse if len(self._held) == len(owners) else _RETRY

    def _tell(self, taken: asyncio.Event) -> None:
        if self._loop is not None:
            with contextlib.suppress(RuntimeError):
                # A closed loop: nobody waits any more.
                self._loop.call_soon_threadsafe(taken.set)


def _ask(connection: Connection, sql: bytes, owner: str) -> bool:
    key = lock_key(owner)
    signed = key - (1 << 64) if key >> 63 else key
    row = answer(connection, lambda link: link.execute(sql, (signed,)).fetchone())
    return row is not None and bool(row[0])
