"""What a person has sent and the server has not confirmed yet: kept, in order, sent once."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING

from clew.tui.state.view import Sending
from clew.wire.errors import CallFailed, ErrorCode

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable


@dataclass(frozen=True, kw_only=True, slots=True)
class _Item:
    shown: Sending
    #: It may lead to another conversation, where what is sent after it belongs.
    leads_on: bool
    deliver: Callable[[], Awaitable[None]]


class Outbox:
    """
    Delivers one text after the other.

    ``changed`` gets what is still on its way after each change. ``refused`` gets a text that the
    server did not take, and why; the texts behind it go on.
    """

    def __init__(
        self,
        *,
        changed: Callable[[tuple[Sending, ...]], None],
        refused: Callable[[str, str], None],
    ) -> None:
        self._changed, self._refused = changed, refused
        self._items: list[_Item] = []
        self._filled = asyncio.Event()
        self._numbers = count(1)

    @property
    def unsent(self) -> tuple[str, ...]:
        """The texts that are not confirmed, oldest first."""
        return tuple(item.shown.text for item in self._items)

    @property
    def leads_on(self) -> bool:
        """Whether something is on its way that may lead to another conversation."""
        return any(item.leads_on for item in self._items)

    def add(
        self, text: str, deliver: Callable[[], Awaitable[None]], *, leads_on: bool = False
    ) -> None:
        """Take a text over; ``deliver`` hands it in, and raises where it is refused."""
        shown = Sending(number=next(self._numbers), text=text)
        self._items.append(_Item(shown=shown, leads_on=leads_on, deliver=deliver))
        self._tell()
        self._filled.set()

    async def run(self) -> None:
        """Deliver what is added, until cancelled."""
        while True:
            await self._filled.wait()
            item = self._items[0]
            reason, keep = await _outcome(item)
            # Removed only now: until then it is shown as on its way.
            del self._items[0]
            if not self._items:
                self._filled.clear()
            self._tell()
            if reason:
                self._refused("" if keep else item.shown.text, reason)

    def _tell(self) -> None:
        self._changed(tuple(item.shown for item in self._items))


async def _outcome(item: _Item) -> tuple[str, bool]:
    """Return why a text was not taken, "" if it was; and whether it may have been all the same."""
    try:
        await item.deliver()
    except CallFailed as error:
        return str(error), error.code == ErrorCode.DISCONNECTED
    except OSError as error:
        return str(error), False
    return "", False
