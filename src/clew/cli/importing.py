"""``clew sessions import``: taking in the conversations of an export."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

import click

from clew.cli.common import Globals, example, json_option, pass_globals, print_json
from clew.cli.progress import Bar
from clew.cli.reading import open_stored
from clew.cli.terminal import many, outputs
from clew.cli.verifying import FILE, opened, print_findings
from clew.core.exported.verify import verify_export
from clew.core.ids import IdGenerator
from clew.distribution import VERSION
from clew.engine.imports import ConversationImporter, ImportOutcome
from clew.errors import ClewError

if TYPE_CHECKING:
    from pathlib import Path

    from clew.cli.terminal import Output
    from clew.cli.verifying import Watched
    from clew.config import Settings
    from clew.core.exported.verify import ExportVerifier
    from clew.engine.imports import ImportResult

_TOLD: Final = {
    ImportOutcome.IMPORTED: "imported",
    ImportOutcome.EXTENDED: "gone on with",
    ImportOutcome.COPIED: "imported as copies",
    ImportOutcome.UNCHANGED: "known already",
    ImportOutcome.DELETED: "left out, since they were deleted here",
    ImportOutcome.FAILED: "not imported",
}


@click.command(
    "import",
    epilog=example("clew sessions import conversations.jsonl"),
)
@click.argument("path", metavar="FILE", type=FILE)
@click.option(
    "--deleted", "revive", is_flag=True, help="Also what was deleted here, as new conversations."
)
@click.option(
    "--routes",
    is_flag=True,
    help="Have names and chats lead here as they did there, where they lead nowhere yet.",
)
@json_option
@pass_globals
@click.pass_context
def import_(
    ctx: click.Context,
    program: Globals,
    *,
    path: Path,
    revive: bool,
    routes: bool,
    as_json: bool,
) -> None:
    """
    Take in the conversations of a JSONL export; what is here already is not taken in twice.

    The file is verified first. May be stopped at any time and used while a gateway runs; the same
    command goes on where it was.
    """
    _, notes = outputs()
    with opened(path, notes) as source:
        verified = verify_export(source)
        if not verified.is_clean:
            print_findings(verified, notes)
            raise ClewError(f"{path} is not as it was written: nothing was imported")
        taking = _Taking(source, verified, notes, revive=revive, routes=routes)
        asyncio.run(taking.run(program.settings()))
    if as_json:
        print_json({"items": taking.shapes(), "tombstones": taking.tombstones})
    else:
        taking.tell()
    ctx.exit(1 if taking.failed else 0)


class _Taking:
    """One file being taken in."""

    def __init__(
        self,
        source: Watched,
        verified: ExportVerifier,
        notes: Output,
        *,
        revive: bool,
        routes: bool,
    ) -> None:
        self._source, self._verified, self._notes = source, verified, notes
        self._revive, self._routes = revive, routes
        self._done: list[ImportResult] = []
        #: Marks of deletions that were new here.
        self.tombstones = 0

    @property
    def failed(self) -> bool:
        return any(one.outcome is ImportOutcome.FAILED for one in self._done)

    async def run(self, settings: Settings) -> None:
        progress = Bar(self._notes, "importing", total=self._verified.entries)
        try:
            async with (
                open_stored(settings) as store,
                ConversationImporter(
                    store, IdGenerator(_millis), version=VERSION
                ).register_owner() as imports,
            ):
                await self._take_in(imports, progress)
        except asyncio.CancelledError:
            progress.clear()
            every = len(self._verified.conversations)
            self._notes.write(
                f"stopped: {len(self._done)} of {many(every, 'conversation')} are in; the same "
                "command goes on from here\n"
            )
            raise
        progress.clear()

    async def _take_in(self, imports: ConversationImporter, progress: Bar) -> None:
        done = 0
        imports.on_entries = lambda entries: progress.show(done + entries)
        for outline in self._verified.conversations:
            taken = await imports.import_conversation(self._source, outline, revive=self._revive)
            if self._routes:
                await imports.claim_routes(self._source, outline, taken)
            self._done.append(taken)
            done += outline.entries
            progress.show(done)
        self.tombstones = await imports.import_tombstones(self._verified.tombstones)

    def shapes(self) -> list[dict[str, Any]]:
        return [
            {
                "conversation": one.conversation,
                "here": one.local_id,
                "result": one.outcome.value,
                "entries": one.entries,
                "note": one.note,
            }
            for one in self._done
        ]

    def tell(self) -> None:
        out, _ = outputs()
        for one in self._done:
            if one.outcome is ImportOutcome.COPIED:
                out.write(f"{one.conversation} is here as {one.local_id}\n")
            elif one.note is not None:
                out.write(f"{one.conversation}: {one.note}\n")
        counts = Counter(one.outcome for one in self._done)
        told = [f"{count} {_TOLD[result]}" for result, count in counts.items()]
        entries = sum(one.entries for one in self._done)
        out.write(f"{'; '.join(told) or 'no conversations'}; {entries} entries were new\n")


def _millis() -> int:
    return time.time_ns() // 1_000_000
