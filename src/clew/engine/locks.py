"""Named rights of a process: one at a time, over all processes and hosts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.store.transactions import locks

if TYPE_CHECKING:
    from datetime import timedelta

    from clew.core.ids import OwnerId
    from clew.store.contract import Store


class Rights:
    """What one process alone may do."""

    def __init__(self, store: Store, owner: OwnerId) -> None:
        self._store, self._owner = store, owner

    async def take(self, name: str, *, duration: timedelta) -> str | None:
        """
        Take or extend a right; ``None`` if we have it now, else who has, for people.

        It is free at once when the process that has it dies, and after ``duration`` if it hangs.
        """
        return await self._store.write(
            locks.acquire_process_lock, name, self._owner, duration=duration
        )

    async def leave(self, name: str) -> None:
        """Let a right go, if we have it."""
        await self._store.write(locks.release_lock, name, self._owner)
