"""What SQLite reports, in the words of ``clew.errors``."""

from __future__ import annotations

import contextlib
import errno
import re

import apsw

from clew.errors import (
    ConstraintViolated,
    StoreDamaged,
    StoreError,
    StoreFull,
    StoreUnavailable,
)
from clew.store.sqlite.driver import rows_of

_FULL_ERRNOS = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_UNAVAILABLE = (
    apsw.BusyError,
    apsw.LockedError,
    apsw.ProtocolError,
    apsw.IOError,
    apsw.CantOpenError,
    apsw.NoMemError,
    apsw.InterruptError,
    apsw.AbortError,
)
_INDEXES = "SELECT name FROM pragma_index_list(?1) WHERE \"unique\" AND origin = 'c'"
_COLUMNS = "SELECT name FROM pragma_index_info(?1) ORDER BY seqno"
_CONSTRAINT = re.compile(r"constraint failed: (?:index '(?P<index>[^']+)'|(?P<name>.+))$")


def translated(error: apsw.Error, connection: apsw.Connection | None = None) -> StoreError:
    """The error of ours that stands for ``error``; ``connection`` adds what it knows."""
    text = str(error)
    if isinstance(error, apsw.ConstraintError):
        return ConstraintViolated(text, constraint=_constraint(text, connection))
    if isinstance(error, apsw.FullError) or _is_quota(error, connection):
        return StoreFull(
            f"there is no space left for the store ({text}): nothing was stored; "
            "make room on its disk"
        )
    if isinstance(error, (apsw.CorruptError, apsw.NotADBError)):
        return StoreDamaged(f"the database file is damaged: {text}")
    if isinstance(error, _UNAVAILABLE):
        return StoreUnavailable(f"the database cannot be used now: {text}")
    return StoreError(text)


def _is_quota(error: apsw.Error, connection: apsw.Connection | None) -> bool:
    # SQLite tells only ENOSPC apart; a quota or a size limit comes as a plain I/O error.
    return (
        isinstance(error, apsw.IOError)
        and connection is not None
        and connection.system_errno in _FULL_ERRNOS
    )


def _constraint(text: str, connection: apsw.Connection | None) -> str:
    found = _CONSTRAINT.search(text)
    if found is None:  # a foreign key, or RAISE() in a trigger
        return text.removesuffix(" constraint failed")
    if found["index"]:
        return found["index"]
    name: str = found["name"]
    if "UNIQUE" in text and connection is not None:
        return _index_on(name, connection) or name
    return name


def _index_on(columns: str, connection: apsw.Connection) -> str | None:
    # SQLite names the columns, PostgreSQL the index: callers compare with one name on both.
    table = columns.partition(".")[0]
    with contextlib.suppress(apsw.Error):
        for (index,) in rows_of(connection, _INDEXES, table):
            names = rows_of(connection, _COLUMNS, index)
            if ", ".join(f"{table}.{name}" for (name,) in names) == columns:
                return str(index)
    return None
