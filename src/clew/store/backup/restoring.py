"""Putting a backup in the place of a store."""

from __future__ import annotations

import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from clew.errors import StoreDamaged, StoreNotEmpty, StoreUnusable, UsageError
from clew.store.backup import files
from clew.store.backup.verification import verify
from clew.store.copying.copy import Source
from clew.store.copying.moving import transfer
from clew.store.copying.tables import counts
from clew.store.migrate import migrate, missing
from clew.store.opening import file_of, open_incoming
from clew.store.sqlite.direct import open_kept
from clew.store.sqlite.exclusive import told
from clew.store.sqlite.incoming import SqliteIncoming
from clew.store.transactions.afresh import let_go

if TYPE_CHECKING:
    from collections.abc import Generator

    from clew.store.contract import Tx
    from clew.store.copying.copy import Tell
    from clew.store.direct import Direct
    from clew.store.incoming import Incoming
    from clew.store.transactions.afresh import Begun


@dataclass(frozen=True, kw_only=True, slots=True)
class Restored:
    """A backup that is a store again."""

    file: Path
    #: The moment that it holds; ``None`` if the file is a store that somebody copied.
    taken_at: datetime | None
    #: Where it is now.
    store: str
    #: Rows of each table, as in the backup.
    counts: dict[str, int]
    #: Where what was there before is kept.
    aside: str | None
    begun: Begun


def restore(url: str, *, home: Path, file: Path, replace: bool = False, tell: Tell) -> Restored:
    """
    Make the store that ``url`` names what it was when a backup was taken.

    Everything is verified before anything is touched, and at once in place at the end. Processes of
    then are forgotten: turns that were under way go on when the store is used next.

    :raises UsageError: if there is no such file, or the store is not empty, unless ``replace``
    :raises StoreInUse: while a process works on the store
    :raises StoreDamaged: if the backup is not whole
    :raises StoreUnusable: if the file is no backup, or a newer Clew's
    """
    file = file.absolute()
    with told(file):
        stamp = _look_at(file, file_of(url, home=home))
        if stamp != files.STORE:
            _check_seal(file, tell)
        with open_kept(file) as kept, open_incoming(url, home=home) as place:
            try:
                place.check(replace=replace)
                _check(kept, tell)
                found = kept.read(counts, "sqlite")
                begun = _fill(kept, place, home=home, tell=tell)
                store = place.name
                aside = place.publish(replace=replace)
            except StoreNotEmpty as error:
                raise UsageError(
                    f"{error}: with --replace the backup takes its place, and it is kept under "
                    "another name"
                ) from error
    taken_at = datetime.fromtimestamp(stamp, UTC) if stamp != files.STORE else None
    return Restored(
        file=file, taken_at=taken_at, store=store, counts=found, aside=aside, begun=begun
    )


def _look_at(file: Path, store: Path | None) -> int:
    if not file.exists():
        before = files.older(file, 1)
        hint = f"; {before} is an older backup" if before.exists() else ""
        raise UsageError(f"there is no backup {file}{hint}")
    if not file.is_file():
        raise UsageError(f"{file} is no file: name the file of a backup")
    if store is not None and store.exists() and store.samefile(file):
        raise UsageError(f"{file} is the store itself: name the file of a backup")
    stamp = files.stamp_of(file)
    if stamp is None:
        raise StoreUnusable(
            f"{file} is no backup, or its beginning is damaged; nothing was changed"
        )
    if stamp == files.UNFINISHED:
        raise StoreUnusable(f"{file} is a backup that was never finished; nothing was changed")
    return stamp


def _check_seal(file: Path, tell: Tell) -> None:
    tell(f"reading {file}", 0, 0)
    try:
        files.check_seal(file)
    except StoreDamaged as error:
        raise _damaged(str(file), error) from error


def _check(kept: Direct, tell: Tell) -> None:
    try:
        kept.read(missing, "sqlite")
        verify(kept, tell=tell)
    except StoreUnusable as error:
        raise StoreUnusable(f"{kept.name} cannot be restored: {error}") from error
    except StoreDamaged as error:
        raise _damaged(kept.name, error) from error


def _damaged(name: str, error: StoreDamaged) -> StoreDamaged:
    return StoreDamaged(
        f"the backup {name} is damaged ({error}): restore an older one; nothing was changed"
    )


def _fill(kept: Direct, place: Incoming, *, home: Path, tell: Tell) -> Begun:
    if isinstance(place, SqliteIncoming):
        place.fill_with(kept, tell=lambda done, total: tell("copying pages", done, total))
        place.direct.write(migrate, "sqlite")
    else:
        with _up_to_date(kept, home) as source:
            source.read(_transfer, source, place, tell)
    return place.direct.write(let_go, later=True)


def _transfer(t: Tx, source: Direct, place: Incoming, tell: Tell) -> None:
    transfer(Source(t=t, dialect="sqlite", name=source.name), place, tell=tell)


@contextmanager
def _up_to_date(kept: Direct, home: Path) -> Generator[Direct]:
    """The backup, or a copy of it whose schema is that of this Clew."""
    if not kept.read(missing, "sqlite"):
        yield kept
        return
    with (
        tempfile.TemporaryDirectory(prefix="restoring-", dir=home) as folder,
        SqliteIncoming(Path(folder) / "copy.db", run_dir=Path(folder)) as copy,
    ):
        copy.fill_with(kept, tell=lambda _done, _total: None)
        copy.direct.write(migrate, "sqlite")
        yield copy.direct
