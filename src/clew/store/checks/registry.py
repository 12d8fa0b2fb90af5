"""Registry of all checks, in the order in which violations are reported and repaired."""

from __future__ import annotations

from typing import TYPE_CHECKING, LiteralString

from clew.store.checks import (
    blobs,
    chain,
    context,
    deletions,
    deliveries,
    features,
    grants,
    inputs,
    log,
    misc,
    schema,
    search_index,
    sessions,
    turns,
)
from clew.store.checks.check import Check, Violation, violation_from_row
from clew.store.feature_migrations import list_feature_tables

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clew.store.contract import Tx

CHECKS: tuple[Check, ...] = (
    *sessions.CHECKS,
    *log.CHECKS,
    *chain.CHECKS,
    *context.CHECKS,
    *turns.CHECKS,
    *grants.CHECKS,
    *inputs.CHECKS,
    *deliveries.CHECKS,
    *deletions.CHECKS,
    *features.CHECKS,
    *misc.CHECKS,
    *blobs.CHECKS,
    *search_index.CHECKS,
    *schema.CHECKS,
)
CHECKS_BY_NAME = {check.name: check for check in CHECKS}

#: Checks in one statement: the drivers do not keep longer ones prepared.
_CHECKS_PER_STATEMENT = 10


def _combine_statements(checks: Sequence[Check]) -> list[LiteralString]:
    each: list[LiteralString] = [
        f"SELECT '{check.name}', x.* FROM ({check.sql}) x"
        for check in checks
        if check.sql is not None
    ]
    return [
        " UNION ALL ".join(each[start : start + _CHECKS_PER_STATEMENT])
        for start in range(0, len(each), _CHECKS_PER_STATEMENT)
    ]


_SCHEMA_ENFORCED = _combine_statements([check for check in CHECKS if check.schema_enforced])
_NOT_ENFORCED = _combine_statements([check for check in CHECKS if not check.schema_enforced])


def find_fast(t: Tx) -> list[tuple[Check, Violation]]:
    """
    Return what the schema cannot prevent, in a few statements, for a small store.

    Leaves out what grows with the log: hashes, search, attachments.
    """
    return _run_combined(t, _NOT_ENFORCED) + _run_each(t, context.CHECKS)


def _run_combined(t: Tx, statements: list[LiteralString]) -> list[tuple[Check, Violation]]:
    return [
        (CHECKS_BY_NAME[check], violation_from_row(violation))
        for statement in statements
        for check, *violation in t.fetch_all(statement)
    ]


def find_all(t: Tx) -> list[tuple[Check, Violation]]:
    """Run every check in one transaction."""
    rest = [check for check in CHECKS if check.sql is None and check not in context.CHECKS]
    return find_fast(t) + _run_combined(t, _SCHEMA_ENFORCED) + _run_each(t, rest)


def _run_each(t: Tx, checks: Sequence[Check]) -> list[tuple[Check, Violation]]:
    return [(check, found) for check in checks for found in check.find(t)]


COUNTED_TABLES: tuple[LiteralString, ...] = (
    "conversation", "session", "entry", "turn", "inbox", "journal", "delivery", "blob",
)  # fmt: skip


def count_rows(t: Tx) -> dict[str, int]:
    """Return the number of rows of each checked table, those of features too."""
    counted: LiteralString = " UNION ALL ".join(
        [f"SELECT '{table}', count(*) FROM {table}" for table in COUNTED_TABLES]
    )
    found = t.fetch_map(counted)
    for table in list_feature_tables(t):
        found[table.name] = t.fetch_value(f"SELECT count(*) FROM {table.name}")
    return found
