"""Marks: short texts that a channel keeps over restarts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.store.transactions import settings

if TYPE_CHECKING:
    from clew.store.contract import Store


class Marks:
    """The marks of one channel."""

    def __init__(self, store: Store, scope: str) -> None:
        self._store, self._scope = store, scope

    async def get(self, name: str) -> str | None:
        """:raises StoreError: if it cannot be read"""
        return await self._store.read(settings.get_setting, self._scope, name)

    async def put(self, name: str, value: str) -> None:
        """:raises StoreError: if it was not stored"""
        await self._store.write(settings.put_setting, self._scope, name, value)
