"""Every check, in the order in which what they find is told and repaired."""

from __future__ import annotations

from typing import TYPE_CHECKING, LiteralString

from clew.store.checks import (
    blobs,
    chain,
    context,
    gone,
    index,
    inputs,
    log,
    rest,
    schema,
    sending,
    sessions,
    turns,
)
from clew.store.checks.check import Check, Found, found_in

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clew.store.contract import Tx

CHECKS: tuple[Check, ...] = (
    *sessions.CHECKS,
    *log.CHECKS,
    *chain.CHECKS,
    *context.CHECKS,
    *turns.CHECKS,
    *inputs.CHECKS,
    *sending.CHECKS,
    *gone.CHECKS,
    *rest.CHECKS,
    *blobs.CHECKS,
    *index.CHECKS,
    *schema.CHECKS,
)
BY_NAME = {check.name: check for check in CHECKS}

#: So many checks in one statement: the drivers keep no longer ones prepared.
_FEW = 10


def _together(checks: Sequence[Check]) -> list[LiteralString]:
    each: list[LiteralString] = [
        f"SELECT '{check.name}', x.* FROM ({check.sql}) x"
        for check in checks
        if check.sql is not None
    ]
    return [" UNION ALL ".join(each[start : start + _FEW]) for start in range(0, len(each), _FEW)]


_REFUSED = _together([check for check in CHECKS if check.refused])
_NOT_REFUSED = _together([check for check in CHECKS if not check.refused])


def look_quickly(t: Tx) -> list[tuple[Check, Found]]:
    """
    In a small store what the schema cannot refuse, in a few statements.

    Without what grows with the log: hashes, search, attachments.
    """
    return _in_one_go(t, _NOT_REFUSED) + _each(t, context.CHECKS)


def _in_one_go(t: Tx, statements: list[LiteralString]) -> list[tuple[Check, Found]]:
    rows = [row for statement in statements for row in t.all(statement)]
    return [(BY_NAME[row[0]], found_in(row[1:])) for row in rows]


def look(t: Tx) -> list[tuple[Check, Found]]:
    """Every check, in one transaction."""
    rest = [check for check in CHECKS if check.sql is None and check not in context.CHECKS]
    return look_quickly(t) + _in_one_go(t, _REFUSED) + _each(t, rest)


def _each(t: Tx, checks: Sequence[Check]) -> list[tuple[Check, Found]]:
    return [(check, found) for check in checks for found in check.look(t)]


COUNTED: tuple[LiteralString, ...] = (
    "conversation", "session", "entry", "turn", "inbox", "journal", "delivery", "blob",
)  # fmt: skip


def count(t: Tx) -> dict[str, int]:
    """How many rows there are of what is checked, by table."""
    counted: LiteralString = " UNION ALL ".join(
        [f"SELECT '{table}', count(*) FROM {table}" for table in COUNTED]
    )
    return {row[0]: row[1] for row in t.all(counted)}
