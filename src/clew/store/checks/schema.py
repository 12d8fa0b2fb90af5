"""Schema: its indexes and triggers exist."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, LiteralString, cast

from clew.store.checks.check import Check, Violation
from clew.store.migrate import load_migrations

if TYPE_CHECKING:
    from clew.store.contract import Dialect, Tx

#: Creating an index over more rows would block other processes for too long.
MAX_INDEX_ROWS = 50_000

_CREATE_STATEMENT = re.compile(
    r"""^CREATE\s(?:UNIQUE\s)?(?:
        INDEX\s(?P<index>\w+)\s[^;]*
      | TRIGGER\s(?P<trigger>\w+)\s.*?(?:^END|EXECUTE\sFUNCTION\s[^;]*)
    );""",
    re.MULTILINE | re.DOTALL | re.VERBOSE,
)
_TABLE = re.compile(r"\bON (\w+)")
_EXISTING: dict[Dialect, LiteralString] = {
    "sqlite": "SELECT name FROM sqlite_schema WHERE type IN ('index', 'trigger')",
    "postgres": """
        SELECT indexname FROM pg_indexes WHERE schemaname = current_schema()
        UNION ALL SELECT tgname FROM pg_trigger WHERE NOT tgisinternal
    """,
}


def _declared_statements(dialect: Dialect) -> dict[str, LiteralString]:
    """Return the statement that creates each index and trigger, by name."""
    script = "\n".join(migration.sql for migration in load_migrations(dialect))
    return {
        made["index"] or made["trigger"]: cast("LiteralString", made[0])
        for made in _CREATE_STATEMENT.finditer(script)
    }


def _find_missing_objects(t: Tx, again: Violation | None = None) -> list[Violation]:
    there = t.fetch_column(_EXISTING[t.dialect])
    return [
        Violation(
            conversation=None,
            seq=None,
            subject=name,
            repairable=_is_fast_to_create(t, sql),
            detail=f"the schema lacks {name}, which forbids or finds something",
        )
        for name, sql in _declared_statements(t.dialect).items()
        if name not in there and (again is None or again.subject == name)
    ]


def _is_fast_to_create(t: Tx, sql: LiteralString) -> bool:
    table = cast("re.Match[str]", _TABLE.search(sql))[1]
    if sql.startswith("CREATE TRIGGER"):
        return True
    counted = cast("LiteralString", f"SELECT count(*) FROM (SELECT 1 FROM {table} LIMIT $1) x")
    return t.fetch_value(counted, MAX_INDEX_ROWS + 1) <= MAX_INDEX_ROWS


def _create_object(t: Tx, found: Violation) -> None:
    t.execute(_declared_statements(t.dialect)[found.subject])


CHECKS: tuple[Check, ...] = (
    Check(
        name="schema",
        description="Every index and trigger of the schema is there.",
        find=_find_missing_objects,
        repair="make {subject} again, as the migrations declare it",
        repair_fn=_create_object,
        manual_fix="stop what uses the store, and run the statement of the migration yourself",
    ),
)
