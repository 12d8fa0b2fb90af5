"""apsw with the types that its stubs lack on Python 3.11 (they need ``collections.abc.Buffer``)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, cast

if TYPE_CHECKING:
    import apsw

    from clew.store.contract import Row, Value


class Cursor(Protocol):
    """What we use of ``apsw.Cursor``."""

    def execute(self, statements: str, bindings: tuple[Value, ...] = (), /) -> Cursor:
        """Run the statements up to the first row; an iterator over the rows."""
        ...

    def fetchone(self) -> Row | None:
        """The next row."""
        ...

    def fetchall(self) -> list[Row]:
        """The rows that are left; runs the statements to their end."""
        ...


def cursor_of(connection: apsw.Connection) -> Cursor:
    """A new cursor."""
    return cast("Cursor", connection.cursor())


def rows_of(connection: apsw.Connection, sql: str, *args: Value) -> list[Row]:
    """Run one statement to its end."""
    return cursor_of(connection).execute(sql, args).fetchall()
