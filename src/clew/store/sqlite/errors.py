"""Translation of SQLite's errors to ``clew.errors``."""

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
from clew.store.sqlite.driver import fetch_rows

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


def translate_error(error: apsw.Error, connection: apsw.Connection | None = None) -> StoreError:
    """Return our error for ``error``; ``connection`` adds the details that it knows."""
    text = str(error)
    if isinstance(error, apsw.ConstraintError):
        return ConstraintViolated(text, constraint=_constraint_name(text, connection))
    if isinstance(error, apsw.FullError) or _is_quota_exceeded(error, connection):
        return StoreFull(
            f"there is no space left for the store ({text}): nothing was stored; "
            "make room on its disk"
        )
    if isinstance(error, (apsw.CorruptError, apsw.NotADBError)):
        return StoreDamaged(f"the database file is damaged: {text}")
    if isinstance(error, _UNAVAILABLE):
        return StoreUnavailable(f"the database cannot be used now: {text}")
    return StoreError(text)


def _is_quota_exceeded(error: apsw.Error, connection: apsw.Connection | None) -> bool:
    # SQLite recognises only ENOSPC; a quota or a size limit arrives as a plain I/O error.
    return (
        isinstance(error, apsw.IOError)
        and connection is not None
        and connection.system_errno in _FULL_ERRNOS
    )


def _constraint_name(text: str, connection: apsw.Connection | None) -> str:
    found = _CONSTRAINT.search(text)
    if found is None:  # a foreign key, or RAISE() in a trigger
        return text.removesuffix(" constraint failed")
    if found["index"]:
        return found["index"]
    name: str = found["name"]
    if "UNIQUE" in text and connection is not None:
        return _find_unique_index(name, connection) or name
    return name


def _find_unique_index(columns: str, connection: apsw.Connection) -> str | None:
    # SQLite names the columns, PostgreSQL the index: callers compare with one name on both.
    table = columns.partition(".")[0]
    with contextlib.suppress(apsw.Error):
        for (index,) in fetch_rows(connection, _INDEXES, table):
            names = fetch_rows(connection, _COLUMNS, index)
            if ", ".join(f"{table}.{name}" for (name,) in names) == columns:
                return str(index)
    return None
