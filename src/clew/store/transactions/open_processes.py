"""Checks for processes that have the store open, before it is replaced."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.errors import StoreInUse, StoreNotEmpty
from clew.store.copying.tables import count_table_rows
from clew.store.transactions.owners import list_living_owners
from clew.store.transactions.runtime_state import is_store_empty

if TYPE_CHECKING:
    from clew.store.contract import Tx


def check_replaceable(t: Tx, name: str, *, replace: bool) -> bool:
    """
    Check that the store may be replaced, and return whether it holds no user data.

    :raises StoreInUse: while a process uses it; names the process
    :raises StoreNotEmpty: if it is not empty, unless ``replace``
    """
    raise_if_in_use(t, name)
    empty = is_store_empty(count_table_rows(t))
    if not empty and not replace:
        raise StoreNotEmpty(name)
    return empty


def raise_if_in_use(t: Tx, name: str) -> None:
    """
    Raise an error if a process uses the store.

    :raises StoreInUse: while a process uses the store; names the process
    """
    living = list_living_owners(t)
    if living:
        who = "; ".join(each.description for each in living)
        raise StoreInUse(f"the store {name} is in use by {who}: stop it, and try again")
    if t.dialect == "postgres":
        _raise_if_leased(t, name)


def _raise_if_leased(t: Tx, name: str) -> None:
    # On PostgreSQL an owner's lock is lost with its connection, but an owner with a stalled
    # network continues until its lease expires. On SQLite the lock lives as long as the process.
    row = t.fetch_one("SELECT owner, expires_at FROM lease WHERE expires_at > $1 LIMIT 1", t.now)
    if row is not None:
        owner, expires_at = row
        seconds = (expires_at - t.now) // 1000 + 1
        raise StoreInUse(
            f"the store {name} may be in use: the lease of {owner} ends in {seconds} s; "
            "try again then"
        )
