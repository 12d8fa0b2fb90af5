"""Looking for questions to tell browsers of; what sends is loaded once a browser wants to know."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

import structlog

from clew.errors import StoreError
from clew.features.dashboard.push_subscriptions import list_subscriptions

if TYPE_CHECKING:
    from collections.abc import Callable

    from clew.features.dashboard.push_sender import PushSender
    from clew.store.contract import Store

log = structlog.get_logger(__name__)

#: Seconds between two looks, where somebody wants notices and where nobody does.
_INTERVAL: Final = 2.0
_IDLE_INTERVAL: Final = 20.0


async def watch_questions(store: Store, make_sender: Callable[[], PushSender]) -> None:
    """Tell browsers of new questions, for ever."""
    while True:
        is_wanted = False
        try:
            is_wanted = bool(await store.read(list_subscriptions))
            if is_wanted:
                await make_sender().tell_questions()
        except StoreError as error:
            log.info("store_failed", task="push", error=str(error))
        await asyncio.sleep(_INTERVAL if is_wanted else _IDLE_INTERVAL)
