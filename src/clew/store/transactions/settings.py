"""Stored settings: what people chose in a conversation or scope, as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from clew.store.contract import Tx

#: The names under which the model of a conversation is stored, and the one that answered before
#: it, until the next message.
MODEL, MODEL_BEFORE = "model", "model_before"


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


def take_setting(t: Tx, scope: str, name: str) -> str | None:
    """Remove a stored value, and return it."""
    row = t.one("DELETE FROM setting WHERE scope = $1 AND name = $2 RETURNING value", scope, name)
    return None if row is None else row[0]
