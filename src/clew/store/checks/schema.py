"""The schema: the indexes and triggers that keep the store from harm are there."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, LiteralString, cast

from clew.store.checks.check import Check, Found
from clew.store.migrate import Dialect, migrations
from clew.store.sqlite.search import SqliteIndex

if TYPE_CHECKING:
    from clew.store.contract import Tx

#: An index over more rows takes longer to make than others may be kept waiting.
MOST_ROWS = 50_000

_MADE = re.compile(
    r"""^CREATE\s(?:UNIQUE\s)?(?:
        INDEX\s(?P<index>\w+)\s[^;]*
      | TRIGGER\s(?P<trigger>\w+)\s.*?(?:^END|EXECUTE\sFUNCTION\s[^;]*)
    );""",
    re.MULTILINE | re.DOTALL | re.VERBOSE,
)
_TABLE = re.compile(r"\bON (\w+)")
_THERE: dict[Dialect, LiteralString] = {
    "sqlite": "SELECT name FROM sqlite_schema WHERE type IN ('index', 'trigger')",
    "postgres": """
        SELECT indexname FROM pg_indexes WHERE schemaname = current_schema()
        UNION ALL SELECT tgname FROM pg_trigger WHERE NOT tgisinternal
    """,
}


def _dialect(t: Tx) -> Dialect:
    return "sqlite" if isinstance(t.index, SqliteIndex) else "postgres"


def _declared(dialect: Dialect) -> dict[str, LiteralString]:
    """The statement that makes each index and trigger, by name."""
    script = "\n".join(migration.sql for migration in migrations(dialect))
    return {
        made["index"] or made["trigger"]: cast("LiteralString", made[0])
        for made in _MADE.finditer(script)
    }


def _look(t: Tx, again: Found | None = None) -> list[Found]:
    dialect = _dialect(t)
    there = {row[0] for row in t.all(_THERE[dialect])}
    return [
        Found(
            conversation=None,
            seq=None,
            subject=name,
            sure=_is_quick(t, sql),
            detail=f"the schema lacks {name}, which forbids or finds something",
        )
        for name, sql in _declared(dialect).items()
        if name not in there and (again is None or again.subject == name)
    ]


def _is_quick(t: Tx, sql: LiteralString) -> bool:
    table = cast("re.Match[str]", _TABLE.search(sql))[1]
    if sql.startswith("CREATE TRIGGER"):
        return True
    counted = cast("LiteralString", f"SELECT count(*) FROM (SELECT 1 FROM {table} LIMIT $1) x")
    row = t.one(counted, MOST_ROWS + 1)
    return row is not None and row[0] <= MOST_ROWS


def _make(t: Tx, found: Found) -> None:
    t.run(_declared(_dialect(t))[found.subject])


CHECKS: tuple[Check, ...] = (
    Check(
        name="schema",
        says="Every index and trigger of the schema is there.",
        look=_look,
        repair="make {subject} again, as the migrations declare it",
        mend=_make,
        decide="stop what uses the store, and run the statement from the migrations by hand",
    ),
)
