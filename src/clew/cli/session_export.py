"""``clew sessions export``: write conversations to a file."""

from __future__ import annotations

import asyncio
import os
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import click

from clew.cli.common import CliContext, format_examples, pass_cli_context
from clew.cli.output import get_outputs, pluralize
from clew.cli.progress import ProgressBar
from clew.cli.record_printer import add_list_hint, open_configured_store
from clew.config.introspection import iter_secret_texts
from clew.engine.export_documents import iter_pieces
from clew.engine.exports import ConversationExporter
from clew.errors import ClewError, NotFound, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence

    from clew.config import Settings
    from clew.engine.export_documents import ExportForm


@click.command(
    epilog=format_examples(
        "clew sessions export --all -o conversations.jsonl",
        "clew sessions export main --format html -o main.html",
    )
)
@click.argument("names", nargs=-1, metavar="[NAME|ID]...")
@click.option("--all", "everything", is_flag=True, help="Every conversation.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["jsonl", "markdown", "html"]),
    default="jsonl",
    show_default=True,
    help="jsonl can be verified and imported; the others are for people.",
)
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write it to FILE, whole or not at all, instead of standard output.",
)
@click.option("--force", is_flag=True, help="Overwrite FILE if it exists.")
@pass_cli_context
def export(
    program: CliContext,
    *,
    names: tuple[str, ...],
    everything: bool,
    form: ExportForm,
    output: Path | None,
    force: bool,
) -> None:
    """
    Write conversations to a file: for a backup, for another place, or to read.

    May be used while a gateway runs. Secrets of the settings are left out wherever they were said.
    """
    if everything == bool(names):
        raise UsageError("name the conversations to export, or pass --all")
    if output is not None and output.exists() and not force:
        raise UsageError(f"{output} exists already: name another file, or pass --force")
    asyncio.run(_export_async(program.load_settings(), names, form, output))


async def _export_async(
    settings: Settings, names: Sequence[str], form: ExportForm, output: Path | None
) -> None:
    _, notes = get_outputs()
    async with open_configured_store(settings) as store:
        exports = ConversationExporter(store, secrets=iter_secret_texts(settings))
        try:
            chosen = (
                await exports.resolve_names(names) if names else await exports.list_conversations()
            )
        except NotFound as error:
            raise add_list_hint(error) from error
        progress = ProgressBar(notes, "exporting", total=len(chosen))
        begun: Callable[[int], None] = progress.update if output else _ignore_progress
        pieces = iter_pieces(exports, chosen if names else None, form, on_conversation=begun)
        with open_export_file(output) as put:
            async for piece in pieces:
                put(piece)
        progress.clear_line()
        if output is not None:
            notes.print_dim(f"exported {pluralize(len(chosen), 'conversation')} to {output}")
        if exports.redacted_count:
            notes.write(
                f"clew: warning: {pluralize(exports.redacted_count, 'entry', 'entries')} "
                "contain a secret of the settings, which was left out\n"
            )


def _ignore_progress(_: int) -> None:
    pass


@contextmanager
def open_export_file(output: Path | None) -> Generator[Callable[[bytes], object]]:
    """Yield a function that writes a piece of the export; a file appears when it is whole."""
    if output is None:
        out, _ = get_outputs()
        # A terminal gets no control characters, whatever the messages contain.
        yield (lambda piece: out.write(piece.decode())) if out.is_terminal else _write_stdout
        sys.stdout.flush()
        out.raise_if_closed()
        return
    part = output.with_name(f".{output.name}.{os.getpid()}.part")
    try:
        with _open_private(part) as file:
            yield file.write
            file.flush()
            os.fsync(file.fileno())
        part.replace(output)
    except OSError as error:
        raise ClewError(f"{output} cannot be written: {error.strerror}") from error
    finally:
        part.unlink(missing_ok=True)


def _write_stdout(piece: bytes) -> None:
    sys.stdout.buffer.write(piece)


def _open_private(path: Path) -> BinaryIO:
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb")
