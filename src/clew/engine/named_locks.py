"""Named locks, exclusive over all processes and hosts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.store.transactions import locks

if TYPE_CHECKING:
    from datetime import timedelta

    from clew.core.ids import OwnerId
    from clew.store.contract import Store


class NamedLocks:
    """The named locks of one process."""

    def __init__(self, store: Store, owner: OwnerId) -> None:
        self._store, self._owner = store, owner

    async def acquire(self, name: str, *, duration: timedelta) -> str | None:
        """
        Acquire or extend a lock; return ``None`` on success, else its holder, for people.

        It is free at once when its holder dies, and after ``duration`` if the holder hangs.
        """
        return await self._store.write(
            locks.acquire_process_lock, name, self._owner, duration=duration
        )

    async def release(self, name: str) -> None:
        """Release a lock if we hold it."""
        await self._store.write(locks.release_lock, name, self._owner)
