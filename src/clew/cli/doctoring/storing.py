"""The store: whether it opens, is whole and up to date, who works on it, what they left behind."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final

from clew.cli.commands import VERSION
from clew.cli.doctoring.channels import deliveries
from clew.cli.doctoring.findings import fail, ok, size, warn
from clew.cli.reading import when
from clew.clock import SystemClock
from clew.errors import ClewError, StoreDamaged, StoreError
from clew.store import health, space
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

    from clew.cli.doctoring.findings import Finding
    from clew.config import Settings
    from clew.store.contract import Store
    from clew.store.transactions.owners import OwnerRecord

#: Seconds for looking through the pages of a file.
THOROUGHNESS: Final = 3.0
#: Clocks that differ by more are not kept by anybody.
_SKEW: Final = timedelta(seconds=5)
#: An entry from later than this was stored before a clock was put back.
_FUTURE: Final = timedelta(minutes=1)
_RESTORE: Final = "stop everything that uses it, keep a copy, and restore a backup"


async def store(settings: Settings) -> AsyncIterator[Finding]:
    """Everything about the store; what cannot be looked at once something failed is left out."""
    file = sqlite_path(settings.store.url, home=settings.home)
    if file is not None:
        try:
            reject_old_sqlite(sqlite_version())
        except ClewError as error:
            yield fail("sqlite", str(error))
            return
        yield ok("sqlite", f"version {sqlite_version()}")
        if not file.exists():
            yield ok("store", f"{file} is not there yet: the first command makes it")
            return
    try:
        opened = await open_store(settings.store.url, home=settings.home, upgrade=False)
    except ClewError as error:
        yield _broken(error)
        return
    async with opened as found:
        try:
            async for finding in _inside(found, file, settings):
                yield finding
        except StoreError as error:
            yield _broken(error)


def _broken(error: ClewError) -> Finding:
    return fail("store", str(error), fix=_RESTORE if isinstance(error, StoreDamaged) else None)


async def _inside(store: Store, file: Path | None, settings: Settings) -> AsyncIterator[Finding]:
    await store.check_available()
    due = await store.read(find_pending_migrations, "postgres" if file is None else "sqlite")
    if due:
        yield warn(
            "store",
            f"it can be read and written; its schema lacks {', '.join(due)}",
            fix="stop what older versions of Clew still run, then start any command",
        )
    else:
        yield ok("store", "it can be read and written, and its schema is up to date")
    if file is None:
        async for finding in _server(store):
            yield finding
    else:
        async for finding in _file(store, file):
            yield finding
    if not due:
        yield await clock(store)
        async for finding in processes(store):
            yield finding
        yield await search(store)
        yield await contents(store)
        for finding in await deliveries(store, settings):
            yield finding


async def _file(store: Store, file: Path) -> AsyncIterator[Finding]:
    found = await store.read(quick_check, seconds=THOROUGHNESS)
    if found:
        yield fail("integrity", f"{file} is damaged: {'; '.join(found)}", fix=_RESTORE)
    elif found is None:
        part = f"nothing wrong in what could be looked at within {THOROUGHNESS:.0f} seconds"
        yield ok("integrity", f"{part}; clew fsck looks at everything")
    else:
        yield ok("integrity", "the file is whole; clew fsck checks what is in it")
    yield await journal(store, file)
    yield sizes(file)


async def journal(store: Store, file: Path) -> Finding:
    """Report how the file is written, which its file system decides, or somebody has by hand."""
    # A network file system is refused when the store is opened.
    kind = detect_filesystem(file) or "unknown"
    mode = await store.read(health.read_journal_mode)
    if mode == "wal":
        return ok("journal", f"write-ahead log, on {kind}, a file system of this machine")
    return warn(
        "journal",
        f"rollback journal ({mode}), on {kind}: whoever reads long, as a backup, holds up writing",
        fix="put the store on a local disk of this machine, or use PostgreSQL; on a local disk: "
        "stop Clew, then run PRAGMA journal_mode = WAL on the file",
    )


def sizes(file: Path) -> Finding:
    """How large the files are."""
    log = file.with_name(f"{file.name}-wal")
    wal = log.stat().st_size if log.exists() else 0
    detail = f"{size(file.stat().st_size)}, and {size(wal)} of log not written back yet"
    if wal <= 2 * JOURNAL_LIMIT:
        return ok("size", detail)
    return warn(
        "size", detail, fix="end whatever has read the store for long (a backup, a debugger)"
    )


async def contents(store: Store) -> Finding:
    """What takes how much room."""
    found = await store.read(space.measure_disk_usage)
    rest = found.total - found.index - found.blobs - (found.free or 0)
    parts = [
        f"conversations {size(max(rest, 0))}",
        f"search index {size(found.index)}",
        f"{found.attachments} attachment{'s' * (found.attachments != 1)} {size(found.blobs)}",
    ]
    if found.free is not None:
        parts.append(f"free {size(found.free)}")
    return ok("room", ", ".join(parts))


async def _server(store: Store) -> AsyncIterator[Finding]:
    found = await store.read(health.read_server_info)
    yield ok("postgresql", f"version {found.version}, the database has {size(found.size)}")
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


async def clock(store: Store) -> Finding:
    """Whether the clocks agree, and nothing was stored in the future."""
    before = SystemClock().now()
    found = await store.read(health.read_clocks)
    after = SystemClock().now()
    fix = "have both machines keep their time (NTP)"
    if not before - _SKEW <= found.now <= after + _SKEW:
        ahead = (found.now - after).total_seconds()
        word = "ahead of" if ahead > 0 else "behind"
        return warn("clock", f"the database's is {abs(ahead):.0f} s {word} this machine's", fix=fix)
    if found.newest is not None and found.newest > found.now + _FUTURE:
        return warn(
            "clock",
            f"the newest entry is of {when(found.newest)}, which is yet to come: a clock was wrong",
            fix="check the date of this machine",
        )
    return ok("clock", "the database's and this machine's agree")


async def processes(store: Store) -> AsyncIterator[Finding]:
    """Who has the store open, and what those left who had."""
    living = await store.read(list_living_owners)
    foreign = sorted({each.version for each in living} - {VERSION})
    told = "; ".join(map(_process, living)) or "none has the store open"
    if foreign:
        yield warn(
            "processes",
            told,
            fix=f"start those of version {', '.join(foreign)} anew: this is {VERSION}",
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
            f"processes that died were at work on {count} conversation{'s' * (count != 1)}",
            fix="start clew serve: it takes over what they left",
        )
    else:
        yield ok("leases", "none is held by a process that died")


def _process(owner: OwnerRecord) -> str:
    since = when(owner.started_at)
    return f"{owner.role} {owner.version}, pid {owner.pid} on {owner.host} since {since}"


async def search(store: Store) -> Finding:
    """Whether search answers."""
    found = await store.read(health.read_search_state)
    fix = "leave clew serve running: it brings the index up to date"
    if found.damaged:
        return warn("search", "the index is damaged, and search refuses", fix=fix)
    if found.is_unavailable:
        return warn("search", f"{found.unindexed:,} messages or more are not in the index", fix=fix)
    late = f", {found.unindexed} of the newest messages are to be added" if found.unindexed else ""
    return ok("search", f"the index can be used{late}")
