"""Bounded waits for what nothing announces."""

from __future__ import annotations

import asyncio
import inspect
import os
import time
from typing import TYPE_CHECKING, TypeVar, cast

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

T = TypeVar("T")

#: Seconds after which a wait fails: far more than a busy machine needs, less than the time limit
#: of a test, so that what fails is the wait, with its reason, and not the whole process.
PATIENCE = float(os.environ.get("CLEW_TEST_PATIENCE", "120"))

#: Each look costs what others need to get on: the longer a wait lasts, the rarer it looks.
_GROWTH, _LONGEST_PAUSE = 1.2, 0.1


async def wait_until(
    condition: Callable[[], Awaitable[T] | T],
    what: str = "",
    *,
    seconds: float = PATIENCE,
    pause: float = 0.01,
) -> T:
    """Return the first true value of ``condition``.

    Raises:
        AssertionError: it did not come true within ``seconds``; names ``what`` was waited for.

    """
    limit = asyncio.timeout(seconds)
    try:
        async with limit:
            # Nothing announces it: that is what this module is for.
            while not (found := await _value(condition)):
                await asyncio.sleep(pause)
                pause = min(_GROWTH * pause, _LONGEST_PAUSE)
            return found
    except TimeoutError:
        if not limit.expired():
            raise
    raise AssertionError(_complaint(condition, what, seconds))


def block_until(
    condition: Callable[[], T], what: str = "", *, seconds: float = PATIENCE, pause: float = 0.01
) -> T:
    """Return the first true value of ``condition``, where no event loop runs.

    Raises:
        AssertionError: as ``wait_until``.

    """
    end = time.monotonic() + seconds
    while not (found := condition()):
        if time.monotonic() > end:
            raise AssertionError(_complaint(condition, what, seconds))
        time.sleep(pause)
        pause = min(_GROWTH * pause, _LONGEST_PAUSE)
    return found


def _complaint(condition: Callable[[], object], what: str, seconds: float) -> str:
    awaited = what or getattr(condition, "__qualname__", repr(condition))
    return f"waited {seconds:g} s in vain for: {awaited}"


async def _value(condition: Callable[[], Awaitable[T] | T]) -> T:
    found = condition()
    if inspect.isawaitable(found):
        return await cast("Awaitable[T]", found)
    return found
