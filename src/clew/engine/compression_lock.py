"""The compression lock: of those who compact one conversation, one goes ahead."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from clew.store.transactions import locks

if TYPE_CHECKING:
    from clew.core.ids import SessionId
    from clew.store.contract import Store


class CompressionLock(Protocol):
    """
    One lock per conversation; its calls take any of the conversation's session ids.

    It saves work and no more: what it raises is logged, and compaction goes on without it.
    """

    async def try_acquire_compression_lock(self, session: SessionId, holder: str) -> bool:
        """Take the lock; ``False`` while another holds it."""
        ...

    async def get_compression_lock_holder(self, session: SessionId) -> str | None:
        """Who holds it now."""
        ...

    async def release_compression_lock(self, session: SessionId, holder: str) -> None:
        """Let it go, if this holder has it."""
        ...


class StoredLock:
    """The lock as a row of the store: it holds between processes and hosts."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def try_acquire_compression_lock(self, session: SessionId, holder: str) -> bool:
        return await self._store.write(locks.try_acquire_compression_lock, session, holder)

    async def get_compression_lock_holder(self, session: SessionId) -> str | None:
        return await self._store.read(locks.get_compression_lock_holder, session)

    async def release_compression_lock(self, session: SessionId, holder: str) -> None:
        await self._store.write(locks.release_compression_lock, session, holder)
