"""Types of apsw that its stubs lack on Python 3.11 (they need ``collections.abc.Buffer``)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, cast

if TYPE_CHECKING:
    import apsw

    from clew.store.contract import Row, Value


class Cursor(Protocol):
    """Subset of ``apsw.Cursor`` that the store uses."""

    def execute(self, statements: str, bindings: tuple[Value, ...] = (), /) -> Cursor:
        """Run the statements up to the first row; return an iterator over the rows."""
        ...

    def fetchone(self) -> Row | None:
        """Return the next row."""
        ...

    def fetchall(self) -> list[Row]:
        """Return the remaining rows; run the statements to their end."""
        ...


def new_cursor(connection: apsw.Connection) -> Cursor:
    """Return a new cursor."""
    return cast("Cursor", connection.cursor())


def fetch_rows(connection: apsw.Connection, sql: str, *args: Value) -> list[Row]:
    """Run one statement and return all its rows."""
    return new_cursor(connection).execute(sql, args).fetchall()
