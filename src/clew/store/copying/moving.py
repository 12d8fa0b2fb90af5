"""A whole store into another place, that of another database as well."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from clew.errors import StoreError, StoreNotEmpty, StoreUnusable, UsageError
from clew.store.copying import filling
from clew.store.copying.copy import Source, compare, copy_rows
from clew.store.copying.tables import lock_rows
from clew.store.migrate import applied, migrate, missing
from clew.store.opening import open_direct, open_incoming
from clew.store.transactions.afresh import let_go
from clew.store.transactions.holders import refuse_if_used

if TYPE_CHECKING:
    from pathlib import Path

    from clew.store.contract import Tx
    from clew.store.copying.copy import Copied, Tell
    from clew.store.direct import Direct
    from clew.store.incoming import Incoming
    from clew.store.migrate import Dialect
    from clew.store.transactions.afresh import Begun


@dataclass(frozen=True, kw_only=True, slots=True)
class Moved:
    """A store that is in its new place as well."""

    source: str
    target: str
    #: Rows of each table, the same on both sides.
    counts: dict[str, int]
    #: Whether the copy went on where an earlier one had been interrupted.
    resumed: bool
    begun: Begun


def move(source_url: str, target_url: str, *, home: Path, tell: Tell) -> Moved:
    """
    Copy a store that nobody uses into one that is not there yet; the source stays as it is.

    What was interrupted goes on when it is called again. The target can be used only once all its
    rows were read again and found equal; until then nobody can write to the source.

    :raises StoreInUse: while a process works on one of them
    :raises UsageError: if there is no source, or the target is not empty
    :raises StoreError: if the target did not take what it was given
    """
    with open_direct(source_url, home=home) as source:
        _refuse_older(source)
        with open_incoming(target_url, home=home) as place:
            try:
                return source.write(_move, source, place, tell)
            except StoreNotEmpty as error:
                raise UsageError(f"{error}: name an empty database") from error


def _move(t: Tx, source: Direct, place: Incoming, tell: Tell) -> Moved:
    """The write transaction lasts as long as all this: nobody changes the source meanwhile."""
    lock_rows(t, source.dialect)
    refuse_if_used(t, source.dialect, source.name)
    place.check(replace=False)
    rows = Source(t=t, dialect=source.dialect, name=source.name)
    copied, resumed = transfer(rows, place, tell=tell)
    begun = place.direct.write(let_go, later=False)
    place.publish(replace=False)
    return Moved(
        source=source.name,
        target=place.name,
        counts=copied.counts,
        resumed=resumed,
        begun=begun,
    )


def _refuse_older(source: Direct) -> None:
    due = source.read(missing, source.dialect)
    if due:
        raise StoreUnusable(
            f"the schema of {source.name} lacks {', '.join(due)}: bring it up to date first, by "
            "any command that uses it, such as clew sessions list"
        )


def transfer(source: Source, place: Incoming, *, tell: Tell) -> tuple[Copied, bool]:
    """
    Copy all rows, or those that are not there yet, and compare; whether an earlier copy went on.

    :raises StoreError: if both sides are not the same in the end; nothing is left then
    """
    resumed = _begin(source.name, place)
    copied = copy_rows(source, place.direct, tell=tell, in_parts=resumed)
    differ = compare(source, place.direct, tell=tell)
    if differ:
        place.clear()
        if resumed:  # the source was used since the earlier copy
            return transfer(source, place, tell=tell)
        raise StoreError(
            f"what {place.name} took of {source.name} is not what it was given "
            f"({', '.join(differ)}); nothing was changed"
        )
    tell("checking references", 0, 0)
    place.direct.write(filling.finish, place.direct.dialect, copied.numbers)
    return copied, resumed


def _begin(source: str, place: Incoming) -> bool:
    """Make the target ready for rows; whether it has some of this source already."""
    dialect = place.direct.dialect
    begun = place.direct.write(_unfinished, dialect)
    if begun == source:
        return True
    if begun is not None:
        place.clear()
    place.direct.write(_prepare, dialect, source)
    return False


def _unfinished(t: Tx, dialect: Dialect) -> str | None:
    """Of what the target holds an unfinished copy; ``None`` if it is empty."""
    if applied(t, dialect) is None:
        return None
    return filling.source_of(t) or ""


def _prepare(t: Tx, dialect: Dialect, source: str) -> None:
    migrate(t, dialect)
    filling.begin(t, dialect, source)
