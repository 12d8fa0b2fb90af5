"""Persistent storage of a channel: short texts by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.store.transactions import settings

if TYPE_CHECKING:
    from clew.store.contract import Store


class StoreChannelStorage:
    """The protocol ``ChannelStorage`` over the store, for one channel."""

    def __init__(self, store: Store, scope: str) -> None:
        self._store, self._scope = store, scope

    async def get(self, name: str) -> str | None:
        """
        Return the text of this name; ``None`` if there is none.

        :raises StoreError: if it cannot be read
        """
        return await self._store.read(settings.get_setting, self._scope, name)

    async def put(self, name: str, value: str) -> None:
        """
        Store a text under this name.

        :raises StoreError: if it was not stored
        """
        await self._store.write(settings.put_setting, self._scope, name, value)
