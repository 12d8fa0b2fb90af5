"""``clew sessions import``: import the conversations of an export."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

import click

from clew.cli.common import CliContext, format_examples, json_option, pass_cli_context, print_json
from clew.cli.output import get_outputs, pluralize
from clew.cli.progress import ProgressBar
from clew.cli.record_printer import open_configured_store
from clew.cli.session_verify import EXPORT_FILE_TYPE, open_export, print_findings
from clew.core.export_format.verify import verify_export
from clew.core.ids import IdGenerator
from clew.distribution import VERSION
from clew.engine.imports import ConversationImporter, ImportOutcome, open_section
from clew.errors import ClewError

if TYPE_CHECKING:
    from pathlib import Path

    from clew.cli.output import Output
    from clew.cli.session_verify import ProgressReader
    from clew.config import Settings
    from clew.core.export_format.verify import ExportVerifier
    from clew.engine.imports import ImportResult

_RESULT_TEXTS: Final = {
    ImportOutcome.IMPORTED: "imported",
    ImportOutcome.EXTENDED: "extended",
    ImportOutcome.COPIED: "imported as copies",
    ImportOutcome.UNCHANGED: "known already",
    ImportOutcome.DELETED: "skipped, because they were deleted here",
    ImportOutcome.FAILED: "not imported",
}


@click.command(
    "import",
    epilog=format_examples("clew sessions import conversations.jsonl"),
)
@click.argument("path", metavar="FILE", type=EXPORT_FILE_TYPE)
@click.option(
    "--deleted",
    "revive",
    is_flag=True,
    help="Also import what was deleted here, as new conversations.",
)
@click.option(
    "--routes",
    is_flag=True,
    help="Restore the names and chats of the conversations, unless they lead elsewhere here.",
)
@json_option
@pass_cli_context
@click.pass_context
def import_sessions(
    ctx: click.Context,
    program: CliContext,
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
    _, notes = get_outputs()
    with open_export(path, notes) as source:
        verified = verify_export(source)
        if not verified.is_clean:
            print_findings(verified, notes)
            raise ClewError(f"{path} was changed or cut off after the export: nothing was imported")
        taking = _ImportRun(source, verified, notes, revive=revive, routes=routes)
        asyncio.run(taking.run(program.load_settings()))
    if as_json:
        print_json({"items": taking.result_items(), "tombstones": taking.tombstones})
    else:
        taking.print_summary()
    ctx.exit(1 if taking.has_failures else 0)


class _ImportRun:
    """The import of one file."""

    def __init__(
        self,
        source: ProgressReader,
        verified: ExportVerifier,
        notes: Output,
        *,
        revive: bool,
        routes: bool,
    ) -> None:
        self._source, self._verified, self._notes = source, verified, notes
        self._revive, self._routes = revive, routes
        self._done: list[ImportResult] = []
        self._done_entries = 0
        #: Number of deletion marks that were new to this store.
        self.tombstones = 0

    @property
    def has_failures(self) -> bool:
        return any(one.outcome is ImportOutcome.FAILED for one in self._done)

    async def run(self, settings: Settings) -> None:
        progress = ProgressBar(self._notes, "importing", total=self._verified.entries)
        try:
            async with (
                open_configured_store(settings) as store,
                ConversationImporter(
                    store,
                    IdGenerator(_now_millis),
                    version=VERSION,
                    on_entries=lambda entries: progress.update(self._done_entries + entries),
                ).register_owner() as imports,
            ):
                await self._import_conversations(imports, progress)
        except asyncio.CancelledError:
            progress.clear_line()
            every = len(self._verified.conversations)
            self._notes.write(
                f"stopped: {len(self._done)} of {pluralize(every, 'conversation')} are "
                "imported; the same command continues from here\n"
            )
            raise
        progress.clear_line()

    async def _import_conversations(
        self, imports: ConversationImporter, progress: ProgressBar
    ) -> None:
        for outline in self._verified.conversations:
            section = open_section(self._source, outline)
            taken = await imports.import_conversation(section, revive=self._revive)
            if self._routes:
                await imports.claim_routes(section, taken)
            self._done.append(taken)
            self._done_entries += outline.entries
            progress.update(self._done_entries)
        self.tombstones = await imports.import_tombstones(self._verified.tombstones)

    def result_items(self) -> list[dict[str, Any]]:
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

    def print_summary(self) -> None:
        out, _ = get_outputs()
        for one in self._done:
            if one.outcome is ImportOutcome.COPIED:
                out.write(f"{one.conversation} is here as {one.local_id}\n")
            elif one.note is not None:
                out.write(f"{one.conversation}: {one.note}\n")
        counts = Counter(one.outcome for one in self._done)
        told = [f"{count} {_RESULT_TEXTS[result]}" for result, count in counts.items()]
        entries = sum(one.entries for one in self._done)
        out.write(f"{'; '.join(told) or 'no conversations'}; {entries} entries were new\n")


def _now_millis() -> int:
    return time.time_ns() // 1_000_000
