"""
Checking a store, and repairing what can be repaired surely.

Gateways may run meanwhile. Everything is read in snapshots, which a turn under way cannot spoil;
each repair is a short transaction of its own that looks again before it changes anything.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing import get_context
from typing import TYPE_CHECKING

import structlog

from clew.errors import StoreDamaged, StoreError
from clew.store import upkeep
from clew.store.checks import chain, pages
from clew.store.checks.catalogue import CHECKS, count
from clew.store.checks.check import Check, Found, mend_again
from clew.store.checks.walking import walk_there

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Generator, Iterable
    from pathlib import Path

    from clew.core.ids import ConversationId
    from clew.store.checks.chain import Stretch
    from clew.store.contract import Store

log = structlog.get_logger(__name__)

#: With fewer entries another process takes longer to start than to do its part.
ALONE = 50_000
#: Entries that one process walks through at a time.
STRETCH = 50_000
#: Repairs can bring to light what was hidden by what they repaired; more often nothing new comes.
ROUNDS = 4

Say = Callable[[str], None]
_Looking = Awaitable[list[Found]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """Something that is not as it has to be, and what can be done about it."""

    check: str
    conversation: ConversationId | None
    seq: int | None
    detail: str
    #: What ``repair`` does, exactly; ``None`` where nothing is surely right.
    repair: str | None
    #: What a person can decide instead.
    decide: str | None
    #: It was repaired.
    repaired: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Report:
    """What a check of a store came to."""

    #: Rows that were there, by table; and how many checks were made.
    checked: dict[str, int]
    #: In the order of the checks.
    findings: tuple[Finding, ...]
    #: Checks that could not be made, since pages are damaged.
    unchecked: tuple[str, ...] = ()

    @property
    def clean(self) -> bool:
        """Nothing is wrong any more."""
        return not self.unchecked and all(finding.repaired for finding in self.findings)


@dataclass(slots=True)
class _Seen:
    """What one pass over the checks has found."""

    found: list[tuple[Check, Found]] = field(default_factory=list[tuple[Check, Found]])
    unchecked: list[str] = field(default_factory=list[str])
    damage: list[Found] = field(default_factory=list[Found])


class Fsck:
    """Checks one store. ``url`` and ``home`` are those with which other processes open it."""

    def __init__(
        self, store: Store, *, url: str, home: Path, say: Say, processes: int | None = None
    ) -> None:
        self._store, self._url, self._home = store, url, home
        self._say = say
        self._processes = os.cpu_count() or 1 if processes is None else processes

    async def examine(self) -> Report:
        """Look at everything; changes nothing."""
        checked = await self._checked()
        return _report(checked, await self._look(), ())

    async def repair(self) -> Report:
        """
        Look at everything, and repair what can be repaired surely.

        Nothing is repaired in a file whose pages are damaged.
        """
        checked = await self._checked()
        seen = first = await self._look()
        mended: dict[tuple[str, str], tuple[Check, Found]] = {}
        for _ in range(ROUNDS):
            sure = [each for each in seen.found if each[0].remedy(each[1]) is not None]
            if seen.damage or not sure:
                break
            self._say("repairing")
            done = [each for each in sure if await self._mend(*each)]
            await self._follow_up(done)
            mended |= {(check.name, found.subject): (check, found) for check, found in done}
            seen = await self._look_again(first)
        return _report(checked, seen, mended.values())

    async def _checked(self) -> dict[str, int]:
        try:
            rows = await self._store.read(count)
        except StoreDamaged:
            rows = {}
        return {**rows, "checks": len(CHECKS) + 1}

    async def _look(self) -> _Seen:
        """Every check: the pages, the statements and the hashes side by side."""
        seen = _Seen()
        damage, hashes, _ = await asyncio.gather(
            self._guarded(seen, pages.PAGES, self._store.read(pages.look)),
            self._guarded(seen, chain.CHAIN, self._hashes()),
            self._each(seen, [check for check in CHECKS if check is not chain.CHAIN]),
        )
        seen.damage += damage
        seen.found += [(chain.CHAIN, found) for found in hashes]
        return seen

    async def _look_again(self, first: _Seen) -> _Seen:
        """As ``_look``, without what takes long, unless something was wrong there."""
        seen = _Seen()
        broken = any(check is chain.CHAIN for check, _ in first.found)
        await self._each(seen, [c for c in CHECKS if broken or c is not chain.CHAIN])
        return seen

    async def _each(self, seen: _Seen, checks: Iterable[Check]) -> None:
        for check in checks:
            self._say(f"checking {check.name}")
            reading = self._store.read(check.look)
            seen.found += [(check, found) for found in await self._guarded(seen, check, reading)]

    async def _guarded(self, seen: _Seen, check: Check, reading: _Looking) -> list[Found]:
        """A page that cannot be read is a finding of its own, and ends only this check."""
        try:
            return await reading
        except StoreDamaged as error:
            seen.unchecked.append(check.name)
            if not any(found.detail == str(error) for found in seen.damage):
                seen.damage.append(pages.found(str(error)))
            return []

    async def _hashes(self) -> list[Found]:
        last = await self._store.read(chain.last_stored)
        starts = range(1, last + 1, STRETCH)
        stretches = [
            stretch
            async for stretch in self._walk([(s, min(s + STRETCH - 1, last)) for s in starts])
        ]
        return await self._store.read(chain.confirmed, chain.suspects(stretches))

    async def _walk(self, parts: list[tuple[int, int]]) -> AsyncIterator[Stretch]:
        alone = self._processes < 2 or not parts or parts[-1][1] < ALONE
        with _no_pool() if alone else _pool(self._processes) as pool:
            if pool is None:
                for first, last in parts:
                    yield await self._store.read(chain.walk, first, last)
                return
            loop = asyncio.get_running_loop()
            walks = [
                loop.run_in_executor(pool, walk_there, self._url, str(self._home), first, last)
                for first, last in parts
            ]
            for walk in walks:
                yield await walk

    async def _mend(self, check: Check, found: Found) -> bool:
        try:
            return await self._store.write(mend_again, check, found)
        except StoreError as error:
            # What stands in the way is a finding too, and may be repaired in this round.
            log.warning("not_repaired", check=check.name, what=found.subject, error=str(error))
            return False

    async def _follow_up(self, done: Iterable[tuple[Check, Found]]) -> None:
        """What a repair began goes on in slices, as it does without one."""
        names = {check.name for check, _ in done}
        if "search-index" in names:
            self._say("making the search index anew")
            await upkeep.catch_up(self._store)
        for check, found in done:
            if check.name == "deleted-rows" and found.conversation is not None:
                await upkeep.erase(self._store, found.conversation)


def _report(checked: dict[str, int], seen: _Seen, mended: Iterable[tuple[Check, Found]]) -> Report:
    order = {check.name: place for place, check in enumerate((pages.PAGES, *CHECKS))}
    left = [(pages.PAGES, found) for found in seen.damage] + seen.found
    again = {(check.name, found.subject) for check, found in left}
    gone = [each for each in mended if (each[0].name, each[1].subject) not in again]
    told = [(each, True) for each in gone] + [(each, False) for each in left]
    told.sort(key=lambda each: order[each[0][0].name])
    return Report(
        checked=checked,
        findings=tuple(
            _finding(check, found, repaired=repaired) for (check, found), repaired in told
        ),
        unchecked=tuple(seen.unchecked),
    )


def _finding(check: Check, found: Found, *, repaired: bool) -> Finding:
    repair = check.remedy(found)
    return Finding(
        check=check.name,
        conversation=found.conversation,
        seq=found.seq,
        detail=found.detail,
        repair=repair,
        decide=check.decide if repair is None else None,
        repaired=repaired,
    )


@contextmanager
def _pool(processes: int) -> Generator[ProcessPoolExecutor | None]:
    """Processes of our own; none where the machine does not let us have them."""
    try:
        # Not forked: this process has threads, and locks in their hands.
        pool = ProcessPoolExecutor(processes, mp_context=get_context("spawn"))
    except (OSError, ImportError) as error:  # no semaphores, as in some sandboxes
        log.info("no_processes", error=str(error))
        yield None
        return
    try:
        yield pool
    finally:
        pool.shutdown(cancel_futures=True)


@contextmanager
def _no_pool() -> Generator[None]:
    yield None
