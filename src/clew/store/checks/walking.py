"""A walk over a part of the log in a process of its own, so that every core takes part."""

from __future__ import annotations

import asyncio
from pathlib import Path

from clew.store.checks.chain import Stretch, walk
from clew.store.opening import open_store


def walk_there(url: str, home: str, first: int, last: int) -> Stretch:
    """``walk`` over a store that is opened for it."""
    return asyncio.run(_walk(url, Path(home), first, last))


async def _walk(url: str, home: Path, first: int, last: int) -> Stretch:
    async with await open_store(url, home=home, upgrade=False) as store:
        return await store.read(walk, first, last)
