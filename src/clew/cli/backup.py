"""``clew backup``, ``clew restore`` and ``clew migrate-store``: copies of the whole store."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from clew.cli.common import CliContext, format_examples, json_option, pass_cli_context, print_json

if TYPE_CHECKING:
    from collections.abc import Mapping

    from clew.cli.output import Output
    from clew.config.settings import Settings
    from clew.store.backup.create import BackupInfo
    from clew.store.backup.restore import RestoreResult
    from clew.store.copying.migrate_store import MigrationResult

FILE_ARGUMENT: Final = click.argument("file", type=click.Path(path_type=Path))


@click.command(
    epilog=format_examples(
        "clew backup clew.backup", "clew backup /mnt/disk/clew.backup --keep 7 --json"
    )
)
@FILE_ARGUMENT
@click.option(
    "--keep",
    type=click.IntRange(1, 1000),
    default=2,
    show_default=True,
    help="How many to keep: FILE, FILE.1 …",
)
@click.option(
    "--verify", "only_verify", is_flag=True, help="Only check that the backup at FILE is whole."
)
@json_option
@pass_cli_context
def backup(program: CliContext, file: Path, *, keep: int, only_verify: bool, as_json: bool) -> None:
    """
    Copy the whole store to FILE, while anything runs.

    The copy is verified before an older one at FILE becomes FILE.1. With two or more kept, only
    what the oldest of them does not have is written (SQLite). "clew restore FILE" brings it back,
    into either database.
    """
    settings = program.load_settings()
    if only_verify:
        _verify(settings, file, as_json=as_json)
        return
    from clew.cli.logs import logs_to_stderr  # noqa: PLC0415  (help needs no store)
    from clew.cli.output import get_outputs  # noqa: PLC0415
    from clew.cli.progress import stage_progress  # noqa: PLC0415
    from clew.store.backup.create import create_backup  # noqa: PLC0415

    out, notes = get_outputs()
    with logs_to_stderr(settings), stage_progress(notes) as drawn:
        taken = create_backup(
            settings.store.url, home=settings.home, file=file, keep=keep, tell=drawn.update
        )
    if as_json:
        print_json(_backup_json(taken))
    else:
        _print_backup(taken, out, notes)


@click.command(
    epilog=format_examples(
        "clew restore clew.backup", "clew restore clew.backup.1 --replace --json"
    )
)
@FILE_ARGUMENT
@click.option(
    "--replace",
    is_flag=True,
    help="Replace a store that is not empty; the old one is kept under another name.",
)
@json_option
@pass_cli_context
def restore(program: CliContext, file: Path, *, replace: bool, as_json: bool) -> None:
    """
    Make the store what it was when FILE was made by "clew backup".

    FILE is verified first, and nothing is touched while a gateway runs. Turns that were under way
    go on when Clew is started next; what was not delivered then counts as perhaps delivered.
    """
    settings = program.load_settings()
    from clew.cli.logs import logs_to_stderr  # noqa: PLC0415  (help needs no store)
    from clew.cli.output import get_outputs  # noqa: PLC0415
    from clew.cli.progress import stage_progress  # noqa: PLC0415
    from clew.config import ensure_home  # noqa: PLC0415
    from clew.store.backup.restore import restore_backup as bring_back  # noqa: PLC0415

    ensure_home(settings)
    out, notes = get_outputs()
    with logs_to_stderr(settings), stage_progress(notes) as drawn:
        restored = bring_back(
            settings.store.url, home=settings.home, file=file, replace=replace, tell=drawn.update
        )
    if as_json:
        print_json(_restore_json(restored))
    else:
        _print_restore(restored, out, notes)


@click.command(
    epilog=format_examples("clew migrate-store sqlite:///clew.db postgresql://clew@db.example/clew")
)
@click.argument("source", metavar="SRC")
@click.argument("target", metavar="DST")
@json_option
@pass_cli_context
def migrate_store(program: CliContext, source: str, target: str, *, as_json: bool) -> None:
    """
    Copy the store at SRC into the empty one at DST: from SQLite to PostgreSQL, or back.

    Both are URLs as in store.url. Stop the gateway first. All rows are read again on both sides
    before DST can be used; what was interrupted goes on when the command is given again. SRC stays
    as it is.
    """
    settings = program.load_settings()
    from clew.cli.logs import logs_to_stderr  # noqa: PLC0415  (help needs no store)
    from clew.cli.output import get_outputs  # noqa: PLC0415
    from clew.cli.progress import stage_progress  # noqa: PLC0415
    from clew.config import ensure_home  # noqa: PLC0415
    from clew.store.copying.migrate_store import migrate_store  # noqa: PLC0415

    ensure_home(settings)
    out, notes = get_outputs()
    with logs_to_stderr(settings), stage_progress(notes) as drawn:
        moved = migrate_store(source, target, home=settings.home, tell=drawn.update)
    if as_json:
        print_json(_migration_json(moved))
    else:
        _print_migration(moved, out, notes)


def _verify(settings: Settings, file: Path, *, as_json: bool) -> None:
    from clew.cli.logs import logs_to_stderr  # noqa: PLC0415  (help needs no store)
    from clew.cli.output import get_outputs  # noqa: PLC0415
    from clew.cli.progress import stage_progress  # noqa: PLC0415
    from clew.store.backup.verify import verify_backup  # noqa: PLC0415

    out, notes = get_outputs()
    with logs_to_stderr(settings), stage_progress(notes) as drawn:
        found = verify_backup(file, tell=drawn.update)
    if as_json:
        print_json(
            {
                "file": str(found.file),
                "taken_at": found.taken_at.isoformat() if found.taken_at else None,
                "size": found.size,
                "counts": found.counts,
                "repairable": found.repairable,
            }
        )
        return
    out.write(f"{found.file} is whole: {_format_counts(found.counts)}\n")
    _print_repairable(found.repairable, notes)


def _print_repairable(repairable: list[str], notes: Output) -> None:
    if repairable:
        notes.print_dim(f"clew fsck --repair would repair: {'; '.join(repairable[:3])}")


def _backup_json(taken: BackupInfo) -> dict[str, Any]:
    pages = taken.pages
    return {
        "file": str(taken.file),
        "taken_at": taken.taken_at.isoformat(),
        "size": taken.size,
        "pages": None if pages is None else {"all": pages.count, "written": pages.written},
        "counts": taken.counts,
        "older": [str(path) for path in taken.older],
        "repairable": taken.repairable,
    }


def _print_backup(taken: BackupInfo, out: Output, notes: Output) -> None:
    out.write(f"{taken.file}: {_format_counts(taken.counts)}\n")
    if taken.pages is not None:
        notes.print_dim(f"{taken.pages.written:,} of {taken.pages.count:,} pages were written")
    if taken.older:
        notes.print_dim(f"the previous backup is {taken.older[0]}")
    _print_repairable(taken.repairable, notes)


def _restore_json(restored: RestoreResult) -> dict[str, Any]:
    return {
        "file": str(restored.file),
        "taken_at": restored.taken_at.isoformat() if restored.taken_at else None,
        "store": restored.store,
        "counts": restored.counts,
        "replaced": restored.previous_store,
        "running_turns": restored.unfinished_work.running,
        "unknown_deliveries": restored.unfinished_work.unknown,
    }


def _print_restore(restored: RestoreResult, out: Output, notes: Output) -> None:
    out.write(f"{restored.store}: {_format_counts(restored.counts)}\n")
    if restored.taken_at is not None:
        notes.print_dim(f"as of {restored.taken_at.astimezone():%Y-%m-%d %H:%M:%S}")
    if restored.previous_store is not None:
        notes.print_dim(f"the previous store is now {restored.previous_store}")
    if restored.unfinished_work.running:
        notes.print_dim(
            f"turns that continue at the next start: {restored.unfinished_work.running}"
        )
    if restored.unfinished_work.unknown:
        notes.print_dim(
            f"messages that may have been delivered: {restored.unfinished_work.unknown}"
        )
    notes.print_dim(
        "people have the access that they had then (clew pair list); browsers log in again"
    )


def _migration_json(moved: MigrationResult) -> dict[str, Any]:
    return {
        "source": moved.source,
        "target": moved.target,
        "counts": moved.counts,
        "resumed": moved.resumed,
        "running_turns": moved.unfinished_work.running,
    }


def _print_migration(moved: MigrationResult, out: Output, notes: Output) -> None:
    out.write(f"{moved.target}: {_format_counts(moved.counts)}\n")
    notes.print_dim(f"every row matches {moved.source}, which is unchanged")
    notes.print_dim("set store.url to use the new one")


def _format_counts(counts: Mapping[str, int]) -> str:
    from clew.cli.output import pluralize  # noqa: PLC0415  (help needs no output)

    entries = pluralize(counts["entry"], "entry", "entries")
    return f"{pluralize(counts['conversation'], 'conversation')} with {entries}"
