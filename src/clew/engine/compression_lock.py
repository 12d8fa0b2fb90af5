"""The compression lock: one compaction per conversation at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from clew.store.transactions import locks

if TYPE_CHECKING:
    from clew.core.ids import SessionId
    from clew.store.contract import Store


class CompressionLock(Protocol):
    """
    One lock per conversation; its calls take any of the conversation's session ids.

    It only saves work: an error is logged, and compaction continues without the lock.
    """

    async def try_acquire_compression_lock(self, session: SessionId, holder: str) -> bool:
        """Acquire the lock; return ``False`` while another holder has it."""
        ...

    async def get_compression_lock_holder(self, session: SessionId) -> str | None:
        """Return the current holder of the lock."""
        ...

    async def release_compression_lock(self, session: SessionId, holder: str) -> None:
        """Release the lock if this holder has it."""
        ...


class StoreCompressionLock:
    """The lock as a row of the store, shared between processes and hosts."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def try_acquire_compression_lock(self, session: SessionId, holder: str) -> bool:
        return await self._store.write(locks.try_acquire_compression_lock, session, holder)

    async def get_compression_lock_holder(self, session: SessionId) -> str | None:
        return await self._store.read(locks.get_compression_lock_holder, session)

    async def release_compression_lock(self, session: SessionId, holder: str) -> None:
        await self._store.write(locks.release_compression_lock, session, holder)
