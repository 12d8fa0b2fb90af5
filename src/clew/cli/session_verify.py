"""``clew sessions verify``: check that an export is unchanged."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final

import click

from clew.cli.common import format_examples, json_option, print_json
from clew.cli.output import get_outputs, pluralize
from clew.cli.progress import ProgressBar
from clew.core.export_format.verify import verify_export as verify_lines
from clew.errors import ClewError

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

    from clew.cli.output import Output
    from clew.core.export_format.verify import ExportVerifier

#: Findings that are printed; more are only counted.
_MAX_PRINTED: Final = 50
EXPORT_FILE_TYPE: Final = click.Path(exists=True, dir_okay=False, readable=True, path_type=Path)


class ProgressReader:
    """A file read from its beginning, with a progress bar."""

    def __init__(self, file: BinaryIO, progress: ProgressBar) -> None:
        self._file, self._progress = file, progress

    def seek(self, offset: int, /) -> int:
        return self._file.seek(offset)

    def readline(self) -> bytes:
        return self._file.readline()

    def __iter__(self) -> Iterator[bytes]:
        done = 0
        for line in self._file:
            done += len(line)
            self._progress.update(done)
            yield line


@contextmanager
def open_export(path: Path, notes: Output) -> Generator[ProgressReader]:
    """
    Open an export.

    :raises ClewError: if the file cannot be read
    """
    try:
        with path.open("rb") as file:
            progress = ProgressBar(notes, f"verifying {path.name}", total=path.stat().st_size)
            yield ProgressReader(file, progress)
            progress.clear_line()
    except OSError as error:
        raise ClewError(f"{path} cannot be read: {error.strerror}") from error


@click.command(epilog=format_examples("clew sessions verify conversations.jsonl"))
@click.argument("path", metavar="FILE", type=EXPORT_FILE_TYPE)
@click.option(
    "--against",
    metavar="EARLIER",
    type=EXPORT_FILE_TYPE,
    help="Also check that everything in this earlier export is still there, or marked as deleted.",
)
@json_option
@click.pass_context
def verify(ctx: click.Context, *, path: Path, against: Path | None, as_json: bool) -> None:
    """
    Find out whether a JSONL export is unchanged: nothing changed, lost or moved.

    Needs no store and no settings. Exits 1 if something is found.
    """
    out, notes = get_outputs()
    earlier = None if against is None else _verify_file(against, notes)
    if earlier is not None and not earlier.is_clean:
        print_findings(earlier, notes)
        raise ClewError(
            f"{against} was changed or cut off after the export: nothing can be compared with it"
        )
    verified = _verify_file(path, notes, earlier)
    if as_json:
        print_json(_verification_json(verified))
    else:
        print_findings(verified, out)
        _print_summary(verified, out, notes)
    ctx.exit(0 if verified.is_clean else 1)


def _verify_file(
    path: Path, notes: Output, earlier: ExportVerifier | None = None
) -> ExportVerifier:
    with open_export(path, notes) as source:
        return verify_lines(source, earlier=earlier)


def _verification_json(verified: ExportVerifier) -> dict[str, Any]:
    return {
        "clean": verified.is_clean,
        "checked": {
            "lines": verified.line_count,
            "conversations": len(verified.conversations),
            "entries": verified.entries,
            "tombstones": len(verified.tombstones),
        },
        "conversations": [
            {"id": one.conversation, "entries": one.entries, "last_hash": one.last_hash.hex()}
            for one in verified.conversations
        ],
        "findings": [
            {
                "line": one.line,
                "conversation": one.conversation,
                "seq": one.seq,
                "detail": one.detail,
            }
            for one in verified.findings
        ],
        "more": verified.omitted_findings,
    }


def print_findings(verified: ExportVerifier, out: Output) -> None:
    """Print one line per finding."""
    for finding in verified.findings[:_MAX_PRINTED]:
        out.write(f"{finding}\n")
    left = len(verified.findings) - _MAX_PRINTED + verified.omitted_findings
    if left > 0:
        out.write(f"and {left} more\n")


def _print_summary(verified: ExportVerifier, out: Output, notes: Output) -> None:
    if not verified.is_clean:
        found = len(verified.findings) + verified.omitted_findings
        notes.print_dim(
            f"{pluralize(found, 'finding')} in {pluralize(verified.line_count, 'line')}"
        )
        return
    out.write(
        f"unchanged: {pluralize(len(verified.conversations), 'conversation')}, "
        f"{pluralize(verified.entries, 'entry', 'entries')}, "
        f"{pluralize(len(verified.tombstones), 'mark')} of deletions\n"
    )
    withheld = sum(one.withheld for one in verified.conversations)
    if withheld:
        notes.print_dim(f"secrets were left out of {pluralize(withheld, 'conversation')}")
