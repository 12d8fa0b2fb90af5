"""Stored settings: what people chose in a conversation or scope, as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from clew.store.contract import Tx


def put_setting(t: Tx, scope: str, name: str, value: str) -> None:
    """Store a value, in place of the one before."""
    t.run(
        """
        INSERT INTO setting (scope, name, value) VALUES ($1, $2, $3)
        ON CONFLICT (scope, name) DO UPDATE SET value = excluded.value
        """,
        scope,
        name,
        value,
    )


def get_setting(t: Tx, scope: str, name: str) -> str | None:
    """The stored value, or ``None``."""
    row = t.one("SELECT value FROM setting WHERE scope = $1 AND name = $2", scope, name)
    return None if row is None else row[0]
