"""The run of ``clew import``: a look at everything, then the import."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from clew.cli.move_in_extras import (
    MovedExtra,
    take_jobs,
    take_memory,
    take_people,
    take_settings,
    take_skills,
)
from clew.cli.move_in_scan import FoundSystem, scan_home
from clew.cli.output import get_outputs, pluralize
from clew.cli.progress import RateLine
from clew.cli.record_printer import open_configured_store
from clew.clock import now_millis
from clew.core.ids import IdGenerator
from clew.core.scope import LOCAL, scope_of
from clew.distribution import VERSION
from clew.engine.imports import ConversationImporter, ExportSection, ImportOutcome, ImportResult
from clew.foreign.conversations import ForeignProblem
from clew.foreign.encoding import encode_conversation
from clew.record import Record

if TYPE_CHECKING:
    from clew.cli.common import CliContext
    from clew.cli.output import Output
    from clew.config import Settings
    from clew.core.scope import Scope
    from clew.foreign.conversations import ForeignConversation
    from clew.foreign.homes import ForeignHome
    from clew.store.contract import Store

_RESULT_TEXTS: Final = {
    ImportOutcome.IMPORTED: "imported",
    ImportOutcome.EXTENDED: "extended",
    ImportOutcome.COPIED: "imported as copies, because they went on differently here",
    ImportOutcome.UNCHANGED: "known already",
    ImportOutcome.DELETED: "skipped, because they were deleted here",
    ImportOutcome.FAILED: "not imported",
}


class MoveInOptions(Record):
    """Choice of what is taken over, and its owner here."""

    system: str
    since: int
    #: ``None``: of the chat that leads to it, else local.
    into: Scope | None
    only: frozenset[str]
    people: bool
    settings: bool
    routes: bool


class TakenOver:
    """Outcomes of one run."""

    def __init__(self) -> None:
        self.outcomes: Counter[ImportOutcome] = Counter()
        self.entries = 0
        self.notes: list[str] = []
        self.extras: list[MovedExtra] = []

    @property
    def has_failures(self) -> bool:
        return bool(self.outcomes[ImportOutcome.FAILED])

    def add(self, origin: str, result: ImportResult) -> None:
        self.outcomes[result.outcome] += 1
        self.entries += result.entries
        if result.outcome is ImportOutcome.FAILED:
            self.notes.append(f"{origin}: {result.note}")

    def as_dict(self) -> dict[str, Any]:
        """Return it as programs get it."""
        return {
            "conversations": {one.value: count for one, count in self.outcomes.items()},
            "entries": self.entries,
            "notes": self.notes,
            **{extra.kind: extra.as_dict() for extra in self.extras},
        }

    def print_summary(self) -> None:
        """Print it for people."""
        out, notes = get_outputs()
        told = [f"{count:,} {_RESULT_TEXTS[one]}" for one, count in self.outcomes.items()]
        out.write(f"conversations: {'; '.join(told) or 'none'}; {self.entries:,} entries new\n")
        for extra in self.extras:
            if extra.added or extra.known:
                out.write(f"{extra.kind}: {extra.added:,} new, {extra.known:,} known already\n")
            for problem in extra.problems:
                notes.write(f"{extra.kind}: left out: {problem}\n")
        for note in self.notes:
            notes.write(f"{note}\n")
        if any(extra.kind == "jobs" and extra.added for extra in self.extras):
            notes.write("jobs are paused: `clew cron list` shows them, `clew cron resume` each\n")


class MoveIn:
    """One run; it may be stopped anywhere and repeated."""

    def __init__(
        self, program: CliContext, home: ForeignHome, options: MoveInOptions, notes: Output
    ) -> None:
        self._program, self._home, self._options, self._notes = program, home, options, notes
        self._found: FoundSystem | None = None
        self.taken = TakenOver()

    def scan(self) -> FoundSystem:
        """Count what there is."""
        line = RateLine(self._notes, "reading", "messages", total=self._home.count_messages())
        options = self._options
        self._found = scan_home(
            self._home, since=options.since, only=options.only, on_messages=line.update
        )
        line.clear_line()
        return self._found

    async def take_over(self) -> None:
        """Write it; what is known already is not written again."""
        settings = self._program.load_settings()
        async with open_configured_store(settings) as store:
            try:
                if "conversations" in self._options.only:
                    await self._take_conversations(store)
                await self._take_extras(store, settings)
            except asyncio.CancelledError:
                count = pluralize(self.taken.outcomes.total(), "conversation")
                self._notes.write(f"stopped after {count}; the same command goes on from here\n")
                raise

    async def _take_conversations(self, store: Store) -> None:
        total = None if self._found is None else self._found.messages + self._found.events
        line = RateLine(self._notes, "importing", "entries", total=total)
        done = 0
        imports = ConversationImporter(
            store,
            IdGenerator(now_millis),
            version=VERSION,
            on_entries=lambda entries: line.update(done + entries),
        )
        async with imports.register_owner():
            for found in self._home.iter_conversations(since=self._options.since):
                if isinstance(found, ForeignProblem):
                    continue  # shown by the scan
                done += await self._take_conversation(imports, found)
                line.update(done)
        line.clear_line()

    async def _take_conversation(
        self, imports: ConversationImporter, found: ForeignConversation
    ) -> int:
        scope = self._options.into or (scope_of(found.routes[0]) if found.routes else LOCAL)
        encoded = encode_conversation(self._options.system, found, scope=scope)
        section = ExportSection(
            lambda: iter(encoded.records),
            conversation=encoded.records[0][1]["id"],
            entries=encoded.entries,
        )
        result = await imports.import_conversation(section)
        if self._options.routes and found.routes:
            await imports.claim_routes(section, result)
        self.taken.add(found.id, result)
        return section.entries

    async def _take_extras(self, store: Store, settings: Settings) -> None:
        found, options, extras = self._found, self._options, self.taken.extras
        assert found is not None
        if found.memory:
            extras.append(await take_memory(store, found.memory, into=options.into))
        if found.skills:
            extras.append(await asyncio.to_thread(take_skills, settings, found.skills))
        if found.jobs:
            extras.append(await take_jobs(store, settings, options.system, found.jobs))
        if found.people and options.people:
            by = f"clew import {options.system}"
            extras.append(await take_people(store, settings, found.people, by=by))
        elif found.people:
            count = pluralize(len(found.people), "person", "people")
            self.taken.notes.append(f"{count} had access there: --people grants it here")
        if found.settings and options.settings:
            extras.append(take_settings(settings, found.settings))
