"""
Checking a store, and repairing what can be repaired surely.

Gateways may run meanwhile. Everything is read in snapshots, which a turn under way cannot spoil;
each repair is a short transaction of its own that looks again before it changes anything.
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
from clew.store import upkeep
from clew.store.checks import chain, context, pages
from clew.store.checks.catalogue import CHECKS, count_rows
from clew.store.checks.check import MAX_VIOLATIONS, Check, Violation, repair_if_confirmed
from clew.store.checks.walking import walk_in_subprocess

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from clew.core.ids import ConversationId
    from clew.store.checks.chain import LogSegment
    from clew.store.contract import Store

log = structlog.get_logger(__name__)

#: With fewer entries another process takes longer to start than to do its part.
ALONE = 50_000
#: Entries that one process walks through at a time.
STRETCH = 50_000

Say = Callable[[str], None]
T = TypeVar("T")
_Key = tuple[str, str | None, str]
#: Checks that are made in one walk over the entries.
_OF_THE_LOG = (chain.HASH_CHAIN, context.CONTEXT)


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

    found: list[tuple[Check, Violation]] = field(default_factory=list[tuple[Check, Violation]])
    unchecked: list[str] = field(default_factory=list[str])
    damage: list[Violation] = field(default_factory=list[Violation])


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
        mended: dict[_Key, tuple[Check, Violation]] = {}
        tried: set[_Key] = set()
        while not seen.damage:
            done = await self._mend_all(seen.found, tried)
            if not done:
                break
            mended |= {_key(*each): each for each in done}
            # A repair can bring to light what was hidden by what it repaired.
            seen = await self._look_again(first)
        return _report(checked, seen, mended.values())

    async def _checked(self) -> dict[str, int]:
        try:
            rows = await self._store.read(count_rows)
        except StoreDamaged:
            rows = {}
        return {**rows, "checks": len(CHECKS) + 1}

    async def _look(self) -> _Seen:
        """Every check: the pages, the statements and the hashes side by side."""
        seen = _Seen()
        damage, _, _ = await asyncio.gather(
            self._guarded(seen, pages.PAGES, self._store.read(pages.find_damaged_pages)),
            self._through_the_log(seen),
            self._each(seen, [check for check in CHECKS if check not in _OF_THE_LOG]),
        )
        seen.damage += damage or ()
        return seen

    async def _look_again(self, first: _Seen) -> _Seen:
        """As ``_look``, without what takes long, unless something was wrong there."""
        seen = _Seen()
        looked = {check.name for check, _ in first.found}
        again = [c for c in CHECKS if c not in _OF_THE_LOG or c.name in looked]
        await self._each(seen, again)
        return seen

    async def _each(self, seen: _Seen, checks: Iterable[Check]) -> None:
        for check in checks:
            self._say(f"checking {check.name}")
            reading = self._store.read(check.find)
            found = await self._guarded(seen, check, reading)
            seen.found += [(check, each) for each in found or ()]

    async def _guarded(self, seen: _Seen, check: Check, reading: Awaitable[T]) -> T | None:
        """A page that cannot be read is a finding of its own, and ends only this check."""
        try:
            return await reading
        except StoreDamaged as error:
            seen.unchecked.append(check.name)
            if not any(found.detail == str(error) for found in seen.damage):
                seen.damage.append(pages.page_violation(str(error)))
            return None

    async def _through_the_log(self, seen: _Seen) -> None:
        """The checks that look at every entry, in one walk."""
        whole = await self._guarded(seen, chain.HASH_CHAIN, self._walked())
        if whole is None:
            seen.unchecked.append(context.CONTEXT.name)
            return
        confirming = self._store.read(chain.confirm_broken, whole.broken)
        found = await self._guarded(seen, chain.HASH_CHAIN, confirming) or []
        seen.found += [(chain.HASH_CHAIN, each) for each in found]
        confirming = self._store.read(context.find_unpaired_after_walk, whole.unpaired)
        found = await self._guarded(seen, context.CONTEXT, confirming) or []
        seen.found += [(context.CONTEXT, each) for each in found]

    async def _walked(self) -> LogSegment:
        last = await self._store.read(chain.last_entry_number)
        parts = [(s, min(s + STRETCH - 1, last)) for s in range(1, last + 1, STRETCH)]
        if self._processes < 2 or last < ALONE:
            return chain.join_segments(
                [await self._store.read(chain.walk_segment, *part) for part in parts]
            )
        shares = [parts[n :: self._processes] for n in range(self._processes)]
        walks = [walk_in_subprocess(self._url, self._home, share) for share in shares if share]
        found = zip_longest(*await asyncio.gather(*walks))
        return chain.join_segments(
            stretch for some in found for stretch in some if stretch is not None
        )

    async def _mend_all(
        self, found: list[tuple[Check, Violation]], tried: set[_Key]
    ) -> list[tuple[Check, Violation]]:
        """Repair what is sure, each once; what was repaired."""
        self._say("repairing")
        done: list[tuple[Check, Violation]] = []
        for check in dict.fromkeys(check for check, _ in found):
            some = [each for other, each in found if other is check]
            while new := [
                f for f in some if check.describe_repair(f) and _key(check, f) not in tried
            ]:
                tried |= {_key(check, each) for each in new}
                done += [(check, each) for each in new if await self._mend(check, each)]
                # No check tells more than so many at once.
                some = [] if len(some) < MAX_VIOLATIONS else await self._store.read(check.find)
        await self._follow_up(done)
        return done

    async def _mend(self, check: Check, found: Violation) -> bool:
        try:
            return await self._store.write(repair_if_confirmed, check, found)
        except StoreError as error:
            # What stands in the way is a finding too, and may be repaired in this round.
            log.warning("not_repaired", check=check.name, what=found.subject, error=str(error))
            return False

    async def _follow_up(self, done: Iterable[tuple[Check, Violation]]) -> None:
        """What a repair began goes on in slices, as it does without one."""
        names = {check.name for check, _ in done}
        if "search-index" in names:
            self._say("making the search index anew")
            await upkeep.update_index(self._store)
        for check, found in done:
            if check.name == "deleted-rows" and found.conversation is not None:
                await upkeep.erase_conversation(self._store, found.conversation)


def _key(check: Check, found: Violation) -> _Key:
    return check.name, found.conversation, found.subject


def _report(
    checked: dict[str, int], seen: _Seen, mended: Iterable[tuple[Check, Violation]]
) -> Report:
    order = {check.name: place for place, check in enumerate((pages.PAGES, *CHECKS))}
    left = [(pages.PAGES, found) for found in seen.damage] + seen.found
    again = {_key(*each) for each in left}
    gone = [each for each in mended if _key(*each) not in again]
    told = [(each, True) for each in gone] + [(each, False) for each in left]
    told.sort(key=lambda each: order[each[0][0].name])
    return Report(
        checked=checked,
        findings=tuple(
            _finding(check, found, repaired=repaired) for (check, found), repaired in told
        ),
        unchecked=tuple(seen.unchecked),
    )


def _finding(check: Check, found: Violation, *, repaired: bool) -> Finding:
    repair = check.describe_repair(found)
    return Finding(
        check=check.name,
        conversation=found.conversation,
        seq=found.seq,
        detail=found.detail,
        repair=repair,
        decide=check.manual_fix if repair is None else None,
        repaired=repaired,
    )
