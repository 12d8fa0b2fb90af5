"""From the driver's errors to ours, and what may be done about them."""

from __future__ import annotations

import enum

import psycopg

from clew.errors import (
    ConstraintViolated,
    StoreDamaged,
    StoreError,
    StoreFull,
    StoreUnavailable,
)


class Fate(enum.Enum):
    """What becomes of a job whose transaction failed."""

    #: Another transaction was in the way: run it again, on the same connection.
    CONFLICT = "conflict"
    #: The connection is of no use any more, or the server is not ready: again, on a new one.
    LOST = "lost"
    #: Running it again would fail again.
    FINAL = "final"


#: Serialization failure, deadlock, lock not available in time, cancelled by an administrator.
_CONFLICTS = frozenset({"40001", "40P01", "55P03", "57014"})
#: Idle in a transaction for too long (we were paused), statement not prepared, out of memory.
_LOST = frozenset({"25P03", "25P04", "26000", "53200", "53300"})
_LOST_CLASSES = ("08", "57P")
_DAMAGED = frozenset({"XX001", "XX002"})
UNIQUE = "23505"


def fate(error: psycopg.Error) -> Fate:
    """Decide by SQLSTATE; an operational error without one is a broken connection."""
    state = error.sqlstate
    if state is None:
        return Fate.LOST if isinstance(error, psycopg.OperationalError) else Fate.FINAL
    if state in _CONFLICTS:
        return Fate.CONFLICT
    if state in _LOST or state.startswith(_LOST_CLASSES) or _stale_plan(error) or _stand_by(error):
        return Fate.LOST
    return Fate.FINAL


def translate(error: psycopg.Error) -> StoreError:
    """Return our error for a driver's error."""
    state, text = error.sqlstate or "", _text(error)
    if state.startswith("23"):
        return ConstraintViolated(text, constraint=_constraint(error))
    if state == "53100":
        return StoreFull(f"the database server has no space left: {text}")
    if state in _DAMAGED:
        return StoreDamaged(f"the database is damaged, restore a backup: {text}")
    if fate(error) is not Fate.FINAL:
        return StoreUnavailable(f"the database is not available: {text}")
    if isinstance(error, psycopg.DataError):
        return StoreError(f"PostgreSQL cannot store a value: {text}")
    if state == "25006":
        return StoreError(f"a job that only reads tried to write: {text}")
    return StoreError(f"the database refused a statement: {text}")


def _text(error: psycopg.Error) -> str:
    # The detail of the server's message is left out: it repeats the values of rows.
    return error.diag.message_primary or " ".join(str(error).split()) or type(error).__name__


def _constraint(error: psycopg.Error) -> str:
    diag = error.diag
    return diag.constraint_name or f"{diag.table_name}.{diag.column_name}"


def _stale_plan(error: psycopg.Error) -> bool:
    # A migration changed a table under a prepared statement: only a new connection forgets it.
    return error.sqlstate == "0A000" and error.diag.source_function == "RevalidateCachedQuery"


def _stand_by(error: psycopg.Error) -> bool:
    # "cannot set transaction read-write mode during recovery", which BEGIN of a write meets.
    # After a fail-over the address may still lead to the old primary: another try may find the new.
    return error.sqlstate == "0A000" and error.diag.source_file == "guc.c"
