"""Stores for tests of what happens to a store as a whole."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Concatenate, ParamSpec, TypeVar

from clew.store.copying.copy import CopySource, compare_tables
from clew.store.opening import open_store, open_sync_store
from tests.integration import rich_store

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from clew.store.contract import Tx

P = ParamSpec("P")
T = TypeVar("T")

#: Tables that a restore clears, whose states become unknown, or in which it stores its time.
FORGOTTEN = ["client", "delivery", "delivery_chunk", "lease", "lock", "owner", "setting"]


def silent(_what: str, _done: int, _total: int) -> None:
    """Ignore events."""


def write(
    url: str, home: Path, job: Callable[Concatenate[Tx, P], T], *args: P.args, **kwargs: P.kwargs
) -> T:
    """Open a store, run one job, and close it."""

    async def run() -> T:
        async with await open_store(url, home=home) as store:
            return await store.write(job, *args, **kwargs)

    return asyncio.run(run())


def fill(url: str, home: Path) -> None:
    """Make a store with something in every table; its processes are gone."""
    write(url, home, rich_store.fill)


def read(
    url: str, home: Path, job: Callable[Concatenate[Tx, P], T], *args: P.args, **kwargs: P.kwargs
) -> T:
    """Read from a store that is there."""
    with open_sync_store(url, home=home) as direct:
        return direct.read(job, *args, **kwargs)


def differing(one: str, other: str, home: Path) -> list[str]:
    """The tables in which two stores are not the same."""

    def compared(t: Tx) -> list[str]:
        source = CopySource(t=t, name=ours.name)
        return compare_tables(source, theirs, tell=silent)

    with open_sync_store(one, home=home) as ours, open_sync_store(other, home=home) as theirs:
        return ours.read(compared)
