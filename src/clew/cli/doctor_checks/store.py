"""Checks of the store: integrity, schema version, open processes, leftovers."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final

from clew.cli.doctor_checks.channels import check_deliveries
from clew.cli.output import pluralize
from clew.cli.record_printer import format_time
from clew.clock import SystemClock
from clew.core.byte_size import format_size
from clew.core.doctor_finding import fail, ok, warn
from clew.distribution import VERSION
from clew.errors import ClewError, StoreDamaged, StoreError
from clew.store import health, vacuum
from clew.store.migrate import find_pending_migrations
from clew.store.opening import open_store, sqlite_path
from clew.store.sqlite.filesystems import detect_filesystem
from clew.store.sqlite.integrity import quick_check
from clew.store.sqlite.opening import JOURNAL_LIMIT, reject_old_sqlite, sqlite_version
from clew.store.transactions.locks import list_process_locks
from clew.store.transactions.owners import list_living_owners

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from clew.config import Settings
    from clew.core.doctor_finding import DoctorFinding
    from clew.store.contract import Store
    from clew.store.transactions.owners import OwnerRecord

#: Seconds for the integrity check of a file.
INTEGRITY_CHECK_SECONDS: Final = 3.0
#: Clocks that differ by more are not synchronised.
_MAX_CLOCK_SKEW: Final = timedelta(seconds=5)
#: An entry further in the future was stored before a clock was set back.
_FUTURE_TOLERANCE: Final = timedelta(minutes=1)
_RESTORE_HINT: Final = "stop everything that uses it, keep a copy, and restore a backup"


async def check_store(settings: Settings) -> AsyncIterator[DoctorFinding]:
    """Run all checks of the store; a failure skips the checks that depend on it."""
    file = sqlite_path(settings.store.url, home=settings.home)
    if file is not None:
        try:
            reject_old_sqlite(sqlite_version())
        except ClewError as error:
            yield fail("sqlite", str(error))
            return
        yield ok("sqlite", f"version {sqlite_version()}")
        if not file.exists():
            yield ok("store", f"{file} does not exist yet: the first command creates it")
            return
    try:
        opened = await open_store(settings.store.url, home=settings.home, upgrade=False)
    except ClewError as error:
        yield _store_failure(error)
        return
    async with opened as found:
        try:
            async for finding in _check_open_store(found, file, settings):
                yield finding
        except StoreError as error:
            yield _store_failure(error)


def _store_failure(error: ClewError) -> DoctorFinding:
    return fail("store", str(error), fix=_RESTORE_HINT if isinstance(error, StoreDamaged) else None)


async def _check_open_store(
    store: Store, file: Path | None, settings: Settings
) -> AsyncIterator[DoctorFinding]:
    await store.check_available()
    due = await store.read(find_pending_migrations)
    if due:
        yield warn(
            "store",
            f"it can be read and written; its schema lacks {', '.join(due)}",
            fix="stop every process of an older version of Clew, then run any command",
        )
    else:
        yield ok("store", "it can be read and written, and its schema is up to date")
    if file is None:
        async for finding in _check_server(store):
            yield finding
    else:
        async for finding in _check_file(store, file):
            yield finding
    if not due:
        yield await check_clocks(store)
        async for finding in check_processes(store):
            yield finding
        yield await check_search_index(store)
        yield await check_disk_usage(store)
        for finding in await check_deliveries(store, settings):
            yield finding


async def _check_file(store: Store, file: Path) -> AsyncIterator[DoctorFinding]:
    found = await store.read(quick_check, seconds=INTEGRITY_CHECK_SECONDS)
    if found:
        yield fail("integrity", f"{file} is damaged: {'; '.join(found)}", fix=_RESTORE_HINT)
    elif found is None:
        part = (
            f"no fault found in the part that was checked within {INTEGRITY_CHECK_SECONDS:.0f} "
            "seconds"
        )
        yield ok("integrity", f"{part}; clew fsck looks at everything")
    else:
        yield ok("integrity", "the file is intact; clew fsck checks its content")
    yield await check_journal(store, file)
    yield check_file_size(file)


async def check_journal(store: Store, file: Path) -> DoctorFinding:
    """Check the journal mode, which depends on the file system or was set by hand."""
    # Opening the store already refuses network file systems.
    kind = detect_filesystem(file) or "unknown"
    mode = await store.read(health.read_journal_mode)
    if mode == "wal":
        return ok("journal", f"write-ahead log, on {kind}, a local file system")
    return warn(
        "journal",
        f"rollback journal ({mode}), on {kind}: a long read, such as a backup, blocks writing",
        fix="put the store on a local disk of this machine, or use PostgreSQL; on a local disk: "
        "stop Clew, then run PRAGMA journal_mode = WAL on the file",
    )


def check_file_size(file: Path) -> DoctorFinding:
    """Check the sizes of the database file and its write-ahead log."""
    log = file.with_name(f"{file.name}-wal")
    wal = log.stat().st_size if log.exists() else 0
    detail = (
        f"{format_size(file.stat().st_size)}, and {format_size(wal)} of log not written back yet"
    )
    if wal <= 2 * JOURNAL_LIMIT:
        return ok("size", detail)
    return warn(
        "size",
        detail,
        fix="stop the process that has been reading the store for long, such as a backup or a "
        "debugger",
    )


async def check_disk_usage(store: Store) -> DoctorFinding:
    """Report the disk space used by each kind of data."""
    found = await store.read(vacuum.measure_disk_usage)
    rest = found.total - found.index - found.blobs - (found.free or 0)
    parts = [
        f"conversations {format_size(max(rest, 0))}",
        f"search index {format_size(found.index)}",
        f"{pluralize(found.attachments, 'attachment')} {format_size(found.blobs)}",
    ]
    if found.free is not None:
        parts.append(f"free {format_size(found.free)}")
    return ok("room", ", ".join(parts))


async def _check_server(store: Store) -> AsyncIterator[DoctorFinding]:
    found = await store.read(health.read_server_info)
    yield ok("postgresql", f"version {found.version}, the database has {format_size(found.size)}")
    if not found.syncs:
        yield warn(
            "durability",
            "the server's fsync is off: a power cut can destroy everything",
            fix="set fsync = on in postgresql.conf",
        )
    if found.standbys:
        yield ok("stand-by", f"commits wait for {found.standbys}")
    else:
        yield warn(
            "stand-by",
            "there is no synchronous stand-by: a fail-over can lose the last commits",
            fix="set synchronous_standby_names on the server, if you have a stand-by",
        )


async def check_clocks(store: Store) -> DoctorFinding:
    """Check that the clocks agree and no entry lies in the future."""
    before = SystemClock().now()
    found = await store.read(health.read_clocks)
    after = SystemClock().now()
    fix = "synchronise the clocks of both machines (NTP)"
    if not before - _MAX_CLOCK_SKEW <= found.now <= after + _MAX_CLOCK_SKEW:
        ahead = (found.now - after).total_seconds()
        word = "ahead of" if ahead > 0 else "behind"
        return warn(
            "clock",
            f"the clock of the database is {abs(ahead):.0f} s {word} that of this machine",
            fix=fix,
        )
    if found.newest is not None and found.newest > found.now + _FUTURE_TOLERANCE:
        return warn(
            "clock",
            f"the newest entry is of {format_time(found.newest)}, which is in the future: a clock "
            "was wrong",
            fix="check the date of this machine",
        )
    return ok("clock", "the clocks of the database and of this machine agree")


async def check_processes(store: Store) -> AsyncIterator[DoctorFinding]:
    """Report the processes that have the store open, and the leases of dead ones."""
    living = await store.read(list_living_owners)
    foreign = sorted({each.version for each in living} - {VERSION})
    told = "; ".join(map(_format_process, living)) or "no process has the store open"
    if foreign:
        yield warn(
            "processes",
            told,
            fix=f"restart those of version {', '.join(foreign)}: this is {VERSION}",
        )
    else:
        yield ok("processes", told)
    held = await store.read(list_process_locks)
    if held:
        yield ok("rights", "; ".join(f"{each.name}: {each.holder}" for each in held))
    left = await store.read(health.find_orphaned_leases)
    if left:
        count = sum(each.conversations for each in left)
        yield warn(
            "leases",
            f"processes died while they worked on {count} conversation{'s' * (count != 1)}",
            fix="start clew serve: it continues their work",
        )
    else:
        yield ok("leases", "no dead process holds one")


def _format_process(owner: OwnerRecord) -> str:
    since = format_time(owner.started_at)
    return f"{owner.role} {owner.version}, pid {owner.pid} on {owner.host} since {since}"


async def check_search_index(store: Store) -> DoctorFinding:
    """Check that search works."""
    found = await store.read(health.read_search_state)
    fix = "leave clew serve running: it brings the index up to date"
    if found.damaged:
        return warn("search", "the index is damaged, and search refuses", fix=fix)
    if found.is_unavailable:
        return warn("search", f"{found.unindexed:,} messages or more are not in the index", fix=fix)
    late = (
        f", {found.unindexed} of the newest messages are not in it yet" if found.unindexed else ""
    )
    return ok("search", f"the index can be used{late}")
