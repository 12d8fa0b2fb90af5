"""Settings that people chose in a conversation or scope, stored as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from clew.store.contract import Tx

#: Names of the settings with the model of a conversation and, until the next message, the model
#: before it.
MODEL_SETTING, PREVIOUS_MODEL_SETTING = "model", "model_before"


def put_setting(t: Tx, scope: str, name: str, value: str) -> None:
    """Store a value, replacing the previous one."""
    t.execute(
        """
        INSERT INTO setting (scope, name, value) VALUES ($1, $2, $3)
        ON CONFLICT (scope, name) DO UPDATE SET value = excluded.value
        """,
        scope,
        name,
        value,
    )


def get_setting(t: Tx, scope: str, name: str) -> str | None:
    """Return the stored value, or ``None``."""
    return t.fetch_value("SELECT value FROM setting WHERE scope = $1 AND name = $2", scope, name)


def take_setting(t: Tx, scope: str, name: str) -> str | None:
    """Delete a stored value, and return it."""
    return t.fetch_value(
        "DELETE FROM setting WHERE scope = $1 AND name = $2 RETURNING value", scope, name
    )
