"""Taking a backup, beside whoever uses the store."""

from __future__ import annotations

import os
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from clew.errors import StoreDamaged, StoreError, UsageError
from clew.store.backup import files
from clew.store.backup.verification import verify
from clew.store.copying import filling
from clew.store.copying.copy import Copied, Source, copy_rows
from clew.store.copying.tables import counts
from clew.store.migrate import applied, migrate
from clew.store.opening import file_of, open_direct
from clew.store.sqlite.direct import open_alone, open_kept
from clew.store.sqlite.exclusive import told
from clew.store.sqlite.pages import Pages, copy_pages

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

    from clew.store.contract import Tx
    from clew.store.copying.copy import Tell
    from clew.store.direct import Direct


@dataclass(frozen=True, kw_only=True, slots=True)
class Taken:
    """A backup that is in its place."""

    file: Path
    #: The moment that it holds: everything acknowledged before is in it.
    taken_at: datetime
    #: Bytes.
    size: int
    #: Rows of each table.
    counts: dict[str, int]
    #: Of SQLite: how many pages it has, and how many of them were written.
    pages: Pages | None
    #: Those before, the newest first.
    older: list[Path]
    #: What ``clew fsck --repair`` would repair, in the store as in its backup.
    repairable: list[str]


@dataclass(frozen=True, kw_only=True, slots=True)
class _Snapshot:
    counts: dict[str, int]
    #: Seconds.
    at: int
    pages: Pages | None = None


def take(url: str, *, home: Path, file: Path, keep: int = 2, tell: Tell) -> Taken:
    """
    Copy the store to ``file``; an older backup there is replaced once the copy was verified.

    On SQLite only those pages are written that the oldest of ``keep`` files does not have already.

    :raises UsageError: if there is no store, or something else is at ``file``
    :raises StoreInUse: while another backup is made there
    :raises StoreDamaged: if the copy is not whole, and so the store is not: the older one stays
    """
    file = file.absolute()
    with told(file):
        _refuse_the_store(url, home, file)
        files.refuse_other(file, keep=keep)
        with _damage_told(), open_direct(url, home=home) as source:
            # One that cannot be read does not cost the oldest backup.
            source.read(counts, source.dialect)
            with files.begun(file, keep=keep) as unfinished:
                found = _copied(source, unfinished, tell)
                files.seal(unfinished.descriptor)
                repairable = _verified(unfinished.path, found, tell)
                behind = unfinished.put_in_place()
        return Taken(
            file=file,
            taken_at=datetime.fromtimestamp(found.at, UTC),
            size=file.stat().st_size,
            counts=found.counts,
            pages=found.pages,
            older=behind,
            repairable=repairable,
        )


def _refuse_the_store(url: str, home: Path, file: Path) -> None:
    store = file_of(url, home=home)
    if store is not None and store.resolve() == file.resolve():
        raise UsageError(f"{file} is the store itself: name another file for its backup")


def _rows(t: Tx, source: Direct, copy: Direct, tell: Tell) -> Copied:
    return copy_rows(Source(t=t, dialect=source.dialect, name=source.name), copy, tell=tell)


@contextmanager
def _damage_told() -> Generator[None]:
    try:
        yield
    except StoreDamaged as error:
        raise StoreDamaged(
            f"the store is damaged, and no backup was made of it ({error}); an older backup is as "
            "it was. Look at the store with clew fsck"
        ) from error


def _copied(source: Direct, unfinished: files.Unfinished, tell: Tell) -> _Snapshot:
    if source.dialect == "sqlite":
        return source.read(_by_pages, unfinished.descriptor, tell)
    return _by_rows(source, unfinished, tell)


def _by_pages(t: Tx, descriptor: int, tell: Tell) -> _Snapshot:
    found, at = counts(t, "sqlite"), t.now // 1000
    pages = copy_pages(
        t, descriptor, stamp=at, tell=lambda done, total: tell("copying pages", done, total)
    )
    return _Snapshot(counts=found, at=at, pages=pages)


def _by_rows(source: Direct, unfinished: files.Unfinished, tell: Tell) -> _Snapshot:
    os.ftruncate(unfinished.descriptor, 0)
    done = source.read(applied, source.dialect) or {}
    with open_alone(unfinished.path) as copy:
        copy.settle(stamp=files.UNFINISHED)
        copy.write(migrate, "sqlite", only=done)
        copy.write(filling.begin, "sqlite", source.name)
        copied = source.read(_rows, source, copy, tell)
        copy.write(filling.finish, "sqlite", copied.numbers)
        copy.settle(stamp=copied.at // 1000)
    return _Snapshot(counts=copied.counts, at=copied.at // 1000)


def _verified(path: Path, found: _Snapshot, tell: Tell) -> list[str]:
    """What could be repaired in the copy, which is whole."""
    with open_kept(path) as copy:
        repairable = verify(copy, tell=tell)
        stored = copy.read(counts, "sqlite")
    if stored != found.counts:
        raise StoreError(f"the copy has not what the store has: {stored}, not {found.counts}")
    return repairable
