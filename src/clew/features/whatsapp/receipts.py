"""Receipts: what WhatsApp has told of sent messages, by the key that each was sent with."""

from __future__ import annotations

import asyncio
import json
from collections import OrderedDict
from contextlib import suppress
from typing import TYPE_CHECKING, Final, TypeVar

from clew.features.whatsapp.codec import FAILED

if TYPE_CHECKING:
    from collections.abc import Iterable

    from clew.features.whatsapp.codec import Receipt
    from clew.gateway.channel import ChannelStorage

T = TypeVar("T")

#: Key in the channel storage.
_STORED: Final = "receipts"
#: Messages whose ids are remembered.
_MAX_KNOWN: Final = 300


class ReceiptBook:
    """The receipts of the last messages; arrivals outlive the process."""

    def __init__(self, storage: ChannelStorage) -> None:
        self._storage = storage
        #: The ids of messages that arrived at WhatsApp, and the last receipts, by key.
        self._arrived: OrderedDict[str, str] = OrderedDict()
        self._latest: OrderedDict[str, Receipt] = OrderedDict()
        self._waiting: dict[str, asyncio.Event] = {}
        self._lock = asyncio.Lock()

    async def load(self) -> None:
        """Read what an earlier process was told."""
        if (stored := await self._storage.get(_STORED)) is not None:
            self._arrived.update(json.loads(stored))

    async def record(self, receipts: Iterable[Receipt]) -> None:
        """
        Record receipts, before the webhook that tells them is answered.

        :raises StoreError: if they cannot be stored
        """
        is_new = False
        for receipt in receipts:
            _remember(self._latest, receipt.key, receipt)
            if receipt.state != FAILED and receipt.key not in self._arrived:
                _remember(self._arrived, receipt.key, receipt.message)
                is_new = True
            if (waiting := self._waiting.get(receipt.key)) is not None:
                waiting.set()
        if is_new:
            async with self._lock:
                await self._storage.put(_STORED, json.dumps(self._arrived))

    def find_message(self, key: str) -> str | None:
        """Return the id of the message of a key, if WhatsApp has told of it."""
        return self._arrived.get(key)

    def is_awaited(self, key: str) -> bool:
        return key in self._waiting

    async def wait_for(self, key: str, seconds: float) -> Receipt | None:
        """Return the last receipt of a key, which may come within ``seconds``."""
        if key not in self._latest:
            event = self._waiting.setdefault(key, asyncio.Event())
            with suppress(TimeoutError):
                await asyncio.wait_for(event.wait(), seconds)
            self._waiting.pop(key, None)
        return self._latest.get(key)


def _remember(known: OrderedDict[str, T], key: str, value: T) -> None:
    known[key] = value
    known.move_to_end(key)
    while len(known) > _MAX_KNOWN:
        known.popitem(last=False)
