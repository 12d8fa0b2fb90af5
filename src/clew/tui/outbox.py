"""Outbox of texts that the server has not confirmed yet: in order, each sent once."""

from __future__ import annotations

import asyncio
from itertools import count
from typing import TYPE_CHECKING

from clew.record import Record
from clew.tui.state.view import PendingText
from clew.wire.errors import CallFailed, ErrorCode

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable


class _Item(Record):
    shown: PendingText
    #: It may switch the conversation for the texts sent after it.
    may_switch: bool
    deliver: Callable[[], Awaitable[None]]


class Outbox:
    """
    Queue that delivers one text after the other.

    ``changed`` receives the unconfirmed texts after each change. ``refused`` receives a
    text that the server rejected, and why; the later ones are still sent.
    """

    def __init__(
        self,
        *,
        changed: Callable[[tuple[PendingText, ...]], None],
        refused: Callable[[str, str], None],
    ) -> None:
        self._changed, self._refused = changed, refused
        self._items: list[_Item] = []
        self._filled = asyncio.Event()
        self._numbers = count(1)

    @property
    def unsent(self) -> tuple[str, ...]:
        """Return the unconfirmed texts, oldest first."""
        return tuple(item.shown.text for item in self._items)

    @property
    def may_switch_conversation(self) -> bool:
        """Return whether an unconfirmed command may switch the conversation."""
        return any(item.may_switch for item in self._items)

    def add_text(
        self, text: str, deliver: Callable[[], Awaitable[None]], *, leads_on: bool = False
    ) -> None:
        """Queue a text; ``deliver`` submits it, and raises if it is rejected."""
        shown = PendingText(number=next(self._numbers), text=text)
        self._items.append(_Item(shown=shown, may_switch=leads_on, deliver=deliver))
        self._notify_changed()
        self._filled.set()

    async def run(self) -> None:
        """Deliver queued texts until cancelled."""
        while True:
            await self._filled.wait()
            item = self._items[0]
            reason, keep = await _deliver_item(item)
            # Removed only now: until then it is shown as being sent.
            del self._items[0]
            if not self._items:
                self._filled.clear()
            self._notify_changed()
            if reason:
                self._refused("" if keep else item.shown.text, reason)

    def _notify_changed(self) -> None:
        self._changed(tuple(item.shown for item in self._items))


async def _deliver_item(item: _Item) -> tuple[str, bool]:
    """Return why a text was rejected ("" if it was not), and whether it may be stored."""
    try:
        await item.deliver()
    except CallFailed as error:
        return str(error), error.code == ErrorCode.DISCONNECTED
    except OSError as error:
        return str(error), False
    return "", False
