"""Classification of the driver's errors, and their translation to ours."""

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


class Disposition(enum.Enum):
    """Handling of a job whose transaction failed."""

    #: Conflict with another transaction: run it again, on the same connection.
    CONFLICT = "conflict"
    #: The connection is unusable, or the server is not ready: run it again, on a new one.
    LOST = "lost"
    #: Running it again would fail again.
    FINAL = "final"


#: Serialization failure, deadlock, lock not available in time, cancelled by an administrator.
_CONFLICTS = frozenset({"40001", "40P01", "55P03", "57014"})
#: Idle in a transaction for too long (we were paused), statement not prepared, out of memory.
_LOST = frozenset({"25P03", "25P04", "26000", "53200", "53300"})
_LOST_CLASSES = ("08", "57P")
_DAMAGED = frozenset({"XX001", "XX002"})
UNIQUE_VIOLATION = "23505"


def classify_error(error: psycopg.Error) -> Disposition:
    """Classify by SQLSTATE; an operational error without one is a broken connection."""
    state = error.sqlstate
    if state is None:
        return (
            Disposition.LOST if isinstance(error, psycopg.OperationalError) else Disposition.FINAL
        )
    if state in _CONFLICTS:
        return Disposition.CONFLICT
    if (
        state in _LOST
        or state.startswith(_LOST_CLASSES)
        or _is_stale_plan(error)
        or _is_standby(error)
    ):
        return Disposition.LOST
    return Disposition.FINAL


def translate_error(error: psycopg.Error) -> StoreError:
    """Return our error for a driver's error."""
    state, text = error.sqlstate or "", _message_text(error)
    if state.startswith("23"):
        return ConstraintViolated(text, constraint=_constraint_name(error))
    if state == "53100":
        return StoreFull(f"the database server has no space left: {text}")
    if state in _DAMAGED:
        return StoreDamaged(f"the database is damaged, restore a backup: {text}")
    if classify_error(error) is not Disposition.FINAL:
        return StoreUnavailable(f"the database is not available: {text}")
    if isinstance(error, psycopg.DataError):
        return StoreError(f"PostgreSQL cannot store a value: {text}")
    if state == "25006":
        return StoreError(f"a job that only reads tried to write: {text}")
    return StoreError(f"the database refused a statement: {text}")


def _message_text(error: psycopg.Error) -> str:
    # The detail of the server's message is left out: it repeats the values of rows.
    return error.diag.message_primary or " ".join(str(error).split()) or type(error).__name__


def _constraint_name(error: psycopg.Error) -> str:
    diag = error.diag
    return diag.constraint_name or f"{diag.table_name}.{diag.column_name}"


def _is_stale_plan(error: psycopg.Error) -> bool:
    # A migration changed a table under a prepared statement: only a new connection forgets it.
    return error.sqlstate == "0A000" and error.diag.source_function == "RevalidateCachedQuery"


def _is_standby(error: psycopg.Error) -> bool:
    # "cannot set transaction read-write mode during recovery", raised by BEGIN of a write.
    # After a fail-over the address may still lead to the old primary: a retry may find the new.
    return error.sqlstate == "0A000" and error.diag.source_file == "guc.c"
