"""
Consistency checks of a store, and repairs that are certainly right.

Gateways may run meanwhile. Everything is read in snapshots, which a running turn cannot
disturb; each repair is a short transaction of its own that checks again before it changes
anything.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import TYPE_CHECKING, TypeVar

import structlog

from clew.errors import StoreDamaged, StoreError
from clew.record import Record
from clew.store import maintenance
from clew.store.checks import chain, context, pages
from clew.store.checks.check import MAX_VIOLATIONS, Check, Violation, repair_if_confirmed
from clew.store.checks.parallel_walk import walk_in_subprocess
from clew.store.checks.registry import CHECKS, count_rows
from clew.store.feature_migrations import list_feature_tables

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from clew.core.ids import ConversationId
    from clew.store.checks.chain import LogSegment
    from clew.store.contract import Store
    from clew.store.feature_schema import FeatureSchema

log = structlog.get_logger(__name__)

#: With fewer entries another process takes longer to start than to do its share.
PARALLEL_MIN_ENTRIES = 50_000
#: Entries that one process checks at a time.
RANGE_SIZE = 50_000

StatusCallback = Callable[[str], None]
T = TypeVar("T")
_FindingKey = tuple[str, str | None, str]
#: Checks that share one walk over the entries.
_LOG_CHECKS = (chain.HASH_CHAIN, context.CONTEXT)


class FsckFinding(Record):
    """A violated invariant and its possible repair."""

    check: str
    conversation: ConversationId | None
    seq: int | None
    detail: str
    #: The exact action of ``repair``; ``None`` where none is certainly right.
    repair: str | None
    #: The decision that a person can make instead.
    decide: str | None
    #: It was repaired.
    repaired: bool = False


class FsckReport(Record):
    """The result of checking a store."""

    #: Rows by table, and the number of checks.
    checked: dict[str, int]
    #: In the order of the checks.
    findings: tuple[FsckFinding, ...]
    #: Checks that damaged pages made impossible.
    unchecked: tuple[str, ...] = ()
    #: Tables of features that are not loaded, with the feature: their checks did not run.
    left_alone: tuple[tuple[str, str], ...] = ()

    @property
    def is_clean(self) -> bool:
        """Return whether nothing is wrong any more."""
        return not self.unchecked and all(finding.repaired for finding in self.findings)


@dataclass(slots=True)
class _PassResult:
    """The findings of one pass over the checks."""

    found: list[tuple[Check, Violation]] = field(default_factory=list[tuple[Check, Violation]])
    unchecked: list[str] = field(default_factory=list[str])
    damage: list[Violation] = field(default_factory=list[Violation])


class StoreChecker:
    """
    The checker of one store.

    ``url`` and ``home`` are those with which other processes open it. ``features`` are the
    schemas of the loaded features, with their checks.
    """

    def __init__(
        self,
        store: Store,
        *,
        url: str,
        home: Path,
        say: StatusCallback,
        processes: int | None = None,
        features: Sequence[FeatureSchema] = (),
    ) -> None:
        self._store, self._url, self._home = store, url, home
        self._report_progress = say
        self._features = {schema.feature for schema in features}
        self._checks = (*CHECKS, *(check for schema in features for check in schema.checks))
        self._processes = os.cpu_count() or 1 if processes is None else processes

    async def find_problems(self) -> FsckReport:
        """Run every check; change nothing."""
        checked = await self._count_rows()
        return await self._build_report(checked, await self._run_all_checks(), ())

    async def repair_problems(self) -> FsckReport:
        """
        Run every check and make the repairs that are certainly right.

        Nothing is repaired in a file with damaged pages.
        """
        checked = await self._count_rows()
        seen = first = await self._run_all_checks()
        mended: dict[_FindingKey, tuple[Check, Violation]] = {}
        tried: set[_FindingKey] = set()
        while not seen.damage:
            done = await self._repair_all(seen.found, tried)
            if not done:
                break
            mended |= {_make_key(*each): each for each in done}
            # A repair can reveal problems that its finding had hidden.
            seen = await self._rerun_checks(first)
        return await self._build_report(checked, seen, mended.values())

    async def _build_report(
        self,
        checked: dict[str, int],
        seen: _PassResult,
        mended: Iterable[tuple[Check, Violation]],
    ) -> FsckReport:
        order = {check.name: place for place, check in enumerate((pages.PAGES, *self._checks))}
        left = [(pages.PAGES, found) for found in seen.damage] + seen.found
        again = {_make_key(*each) for each in left}
        gone = [each for each in mended if _make_key(*each) not in again]
        told = [(each, True) for each in gone] + [(each, False) for each in left]
        told.sort(key=lambda each: order[each[0][0].name])
        return FsckReport(
            checked=checked,
            findings=tuple(
                _build_finding(check, found, repaired=repaired) for (check, found), repaired in told
            ),
            unchecked=tuple(seen.unchecked),
            left_alone=await self._list_left_alone(),
        )

    async def _list_left_alone(self) -> tuple[tuple[str, str], ...]:
        try:
            tables = await self._store.read(list_feature_tables)
        except StoreDamaged:
            return ()
        return tuple(
            (table.name, table.feature) for table in tables if table.feature not in self._features
        )

    async def _count_rows(self) -> dict[str, int]:
        try:
            rows = await self._store.read(count_rows)
        except StoreDamaged:
            rows = {}
        return {**rows, "checks": len(self._checks) + 1}

    async def _run_all_checks(self) -> _PassResult:
        """Run every check: the pages, the statements and the hashes concurrently."""
        seen = _PassResult()
        damage, _, _ = await asyncio.gather(
            self._guard_damage(seen, pages.PAGES, self._store.read(pages.find_damaged_pages)),
            self._check_log(seen),
            self._run_checks(seen, [check for check in self._checks if check not in _LOG_CHECKS]),
        )
        seen.damage += damage or ()
        return seen

    async def _rerun_checks(self, first: _PassResult) -> _PassResult:
        """Run the checks again, except slow ones that found nothing in the first pass."""
        seen = _PassResult()
        looked = {check.name for check, _ in first.found}
        again = [c for c in self._checks if c not in _LOG_CHECKS or c.name in looked]
        await self._run_checks(seen, again)
        return seen

    async def _run_checks(self, seen: _PassResult, checks: Iterable[Check]) -> None:
        for check in checks:
            self._report_progress(f"checking {check.name}")
            reading = self._store.read(check.find)
            found = await self._guard_damage(seen, check, reading)
            seen.found += [(check, each) for each in found or ()]

    async def _guard_damage(
        self, seen: _PassResult, check: Check, reading: Awaitable[T]
    ) -> T | None:
        """Record an unreadable page as a finding of its own; it ends only this check."""
        try:
            return await reading
        except StoreDamaged as error:
            seen.unchecked.append(check.name)
            if not any(found.detail == str(error) for found in seen.damage):
                seen.damage.append(pages.page_violation(str(error)))
            return None

    async def _check_log(self, seen: _PassResult) -> None:
        """Run the checks that read every entry, in one walk."""
        whole = await self._guard_damage(seen, chain.HASH_CHAIN, self._walk_log())
        if whole is None:
            seen.unchecked.append(context.CONTEXT.name)
            return
        confirming = self._store.read(chain.confirm_broken, whole.broken)
        found = await self._guard_damage(seen, chain.HASH_CHAIN, confirming) or []
        seen.found += [(chain.HASH_CHAIN, each) for each in found]
        confirming = self._store.read(context.find_unpaired_after_walk, whole.unpaired)
        found = await self._guard_damage(seen, context.CONTEXT, confirming) or []
        seen.found += [(context.CONTEXT, each) for each in found]

    async def _walk_log(self) -> LogSegment:
        last = await self._store.read(chain.last_entry_number)
        parts = [(s, min(s + RANGE_SIZE - 1, last)) for s in range(1, last + 1, RANGE_SIZE)]
        if self._processes < 2 or last < PARALLEL_MIN_ENTRIES:
            return chain.join_segments(
                [await self._store.read(chain.walk_segment, *part) for part in parts]
            )
        shares = [parts[n :: self._processes] for n in range(self._processes)]
        walks = [walk_in_subprocess(self._url, self._home, share) for share in shares if share]
        found = zip_longest(*await asyncio.gather(*walks))
        return chain.join_segments(
            stretch for some in found for stretch in some if stretch is not None
        )

    async def _repair_all(
        self, found: list[tuple[Check, Violation]], tried: set[_FindingKey]
    ) -> list[tuple[Check, Violation]]:
        """Make each certain repair once; return the repaired findings."""
        self._report_progress("repairing")
        done: list[tuple[Check, Violation]] = []
        for check in dict.fromkeys(check for check, _ in found):
            some = [each for other, each in found if other is check]
            while new := [
                f for f in some if check.describe_repair(f) and _make_key(check, f) not in tried
            ]:
                tried |= {_make_key(check, each) for each in new}
                done += [(check, each) for each in new if await self._repair_one(check, each)]
                # A check returns at most so many findings at once.
                some = [] if len(some) < MAX_VIOLATIONS else await self._store.read(check.find)
        await self._finish_repairs(done)
        return done

    async def _repair_one(self, check: Check, found: Violation) -> bool:
        try:
            return await self._store.write(repair_if_confirmed, check, found)
        except StoreError as error:
            # The obstacle is a finding, too, and may be repaired in this round.
            log.warning("not_repaired", check=check.name, what=found.subject, error=str(error))
            return False

    async def _finish_repairs(self, done: Iterable[tuple[Check, Violation]]) -> None:
        """Finish in slices what a repair began, as maintenance would."""
        names = {check.name for check, _ in done}
        if "search-index" in names:
            self._report_progress("rebuilding the search index")
            await maintenance.update_index(self._store)
        for check, found in done:
            if check.name == "deleted-rows" and found.conversation is not None:
                await maintenance.erase_conversation(self._store, found.conversation)


def _make_key(check: Check, found: Violation) -> _FindingKey:
    return check.name, found.conversation, found.subject


def _build_finding(check: Check, found: Violation, *, repaired: bool) -> FsckFinding:
    repair = check.describe_repair(found)
    return FsckFinding(
        check=check.name,
        conversation=found.conversation,
        seq=found.seq,
        detail=found.detail,
        repair=repair,
        decide=check.manual_fix if repair is None else None,
        repaired=repaired,
    )
