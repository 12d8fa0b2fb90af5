"""Who would be disturbed if a store were replaced."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.errors import StoreInUse, StoreNotEmpty
from clew.store.copying.tables import counts
from clew.store.transactions.afresh import is_empty
from clew.store.transactions.owners import living_owners

if TYPE_CHECKING:
    from clew.store.contract import Tx
    from clew.store.migrate import Dialect


def check_replaceable(t: Tx, dialect: Dialect, name: str, *, replace: bool) -> bool:
    """
    Return if the store may be replaced: whether there is nothing in it that anybody would miss.

    :raises StoreInUse: while a process works on it; names it
    :raises StoreNotEmpty: if it is not empty, unless ``replace``
    """
    refuse_if_used(t, dialect, name)
    empty = is_empty(counts(t, dialect))
    if not empty and not replace:
        raise StoreNotEmpty(name)
    return empty


def refuse_if_used(t: Tx, dialect: Dialect, name: str) -> None:
    """:raises StoreInUse: while a process works on the store; names it"""
    living = living_owners(t)
    if living:
        who = "; ".join(each.place for each in living)
        raise StoreInUse(f"the store {name} is in use by {who}: stop it, and try again")
    if dialect == "postgres":
        _refuse_leases(t, name)


def _refuse_leases(t: Tx, name: str) -> None:
    # The lock of an owner is lost with its connection, and an owner whose network hangs goes on
    # until its lease is over. On SQLite the lock is as sure as the process itself.
    row = t.one("SELECT owner, expires_at FROM lease WHERE expires_at > $1 LIMIT 1", t.now)
    if row is not None:
        seconds = (row[1] - t.now) // 1000 + 1
        raise StoreInUse(
            f"the store {name} may be in use: the lease of {row[0]} ends in {seconds} s; "
            "try again then"
        )
