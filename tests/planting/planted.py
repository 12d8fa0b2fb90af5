"""Planting faults in a store, and what is found there."""

from __future__ import annotations

from collections import Counter
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from clew.engine.fsck import StoreChecker
from clew.store.opening import open_store
from tests.planting.harm import harm
from tests.planting.story import Story

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterable, Sequence
    from pathlib import Path

    from clew.engine.fsck import FsckReport
    from tests.planting.faults import Fault

#: A conversation that nothing is done to.
WELL = "well"


async def tell(url: str, home: Path, faults: Sequence[Fault]) -> None:
    """A store with the stories of these faults, and one more."""
    async with await open_store(url, home=home) as store:
        for story in (Story(name=WELL), *(fault.told for fault in faults)):
            await store.write(story.tell)
        for fault in faults:
            if fault.story == "marked":
                await store.write(fault.told.mark_deleted)
            elif fault.story == "deleted":
                await store.write(fault.told.delete)


def plant(url: str, home: Path, faults: Iterable[Fault]) -> None:
    harm(url, home, [sql for fault in faults for sql in fault.statements(url)])


@asynccontextmanager
async def opened(url: str, home: Path, *, processes: int = 1) -> AsyncGenerator[StoreChecker]:
    async with await open_store(url, home=home) as store:
        yield StoreChecker(store, url=url, home=home, say=_silent, processes=processes)


def _silent(_: str) -> None: ...


def expected(faults: Iterable[Fault]) -> Counter[tuple[str, str | None]]:
    """Each finding as its check and its conversation."""
    return Counter(
        (check, None if fault.everywhere else fault.told.id)
        for fault in faults
        for check in fault.finds
    )


def found(report: FsckReport, faults: Iterable[Fault]) -> Counter[tuple[str, str | None]]:
    """The same of what was found; of a fault that is everywhere it counts that it was found."""
    everywhere = {check for fault in faults if fault.everywhere for check in fault.finds}
    return Counter(
        (finding.check, None if finding.check in everywhere else finding.conversation)
        for finding in report.findings
    )
