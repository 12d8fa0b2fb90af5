"""The contract's SQL becomes that of a database, and rows become records by name."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from clew.store.postgres.macros import expand_macros as for_postgres
from clew.store.records import RecordQuery
from clew.store.sqlite.macros import expand_macros as for_sqlite


@pytest.mark.parametrize(
    ("sql", "sqlite", "postgres"),
    [
        ("SELECT $1, $12 @LOCK", "SELECT ?1, ?12 ", "SELECT $1, $12 FOR UPDATE"),
        ("SELECT '$1 @LOCK', \"@ID\"", "SELECT '$1 @LOCK', \"@ID\"", "SELECT '$1 @LOCK', \"@ID\""),
        ("-- @ID $1\nx @BYTES", "-- @ID $1\nx BLOB", "-- @ID $1\nx BYTEA"),
        ("a @@ $1 /* @ID */", "a @@ ?1 /* @ID */", "a @@ $1 /* @ID */"),
    ],
)
def test_macros_and_parameters_are_replaced_outside_of_quotes_and_comments(
    sql: str, sqlite: str, postgres: str
) -> None:
    assert for_sqlite(sql) == sqlite
    assert for_postgres(sql).sql.decode() == postgres


@pytest.mark.parametrize("sql", ["SELECT @NOPE", "  commit", "ROLLBACK", "SAVEPOINT x"])
def test_an_unknown_macro_and_the_end_of_the_transaction_are_refused(sql: str) -> None:
    for expand in (for_sqlite, for_postgres):
        with pytest.raises(ValueError, match=r"unknown macro|control"):
            expand(sql)


def test_only_a_text_of_several_statements_is_a_script() -> None:
    assert [for_postgres(sql).script for sql in ("SELECT 1;", "SELECT 1; SELECT 2")] == [0, 1]


@dataclass(frozen=True, kw_only=True, slots=True)
class _Point:
    x: int
    y: float | None


def test_a_row_becomes_a_record_by_the_names_of_its_columns() -> None:
    query = RecordQuery(_Point, "SELECT p.y, p.left AS x FROM point p", {"x": int, "y": float})
    assert query.from_row((None, "3")) == _Point(x=3, y=None)
    assert query.from_row(("2", "1")) == _Point(x=1, y=2.0)


def test_columns_that_are_not_the_fields_are_refused() -> None:
    with pytest.raises(TypeError, match="_Point"):
        RecordQuery(_Point, "SELECT x, z FROM point", {})
