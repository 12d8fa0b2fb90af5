"""Settings that people chose in a conversation or scope, stored as JSON."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from clew.core.agent_profile import dump_profile, load_profile

if TYPE_CHECKING:
    from clew.core.agent_profile import AgentProfile
    from clew.core.ids import ConversationId
    from clew.store.contract import Tx

#: Names of the settings with the model of a conversation and, until the next message, the model
#: before it.
MODEL_SETTING, PREVIOUS_MODEL_SETTING = "model", "model_before"
#: Name of the setting with the profile of a conversation's agent.
PROFILE_SETTING = "agent_profile"

#: Names of the settings that a branch has from its source.
_LASTING = (MODEL_SETTING, PROFILE_SETTING)


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


def set_agent_profile(t: Tx, conversation: ConversationId, profile: AgentProfile) -> None:
    """Store the profile of a conversation's agent, for all of its turns."""
    put_setting(t, conversation, PROFILE_SETTING, dump_profile(profile))


def find_agent_profile(t: Tx, conversation: ConversationId) -> AgentProfile | None:
    """Return the profile of a conversation's agent; ``None`` if it is as all others."""
    stored = get_setting(t, conversation, PROFILE_SETTING)
    return None if stored is None else load_profile(stored)


def copy_lasting_settings(t: Tx, source: ConversationId, target: ConversationId) -> None:
    """Copy the model and the profile of a conversation's agent to one that continues it."""
    for name in _LASTING:
        if (value := get_setting(t, source, name)) is not None:
            put_setting(t, target, name, value)


def set_model(t: Tx, conversation: ConversationId, name: str) -> None:
    """Store the model of a conversation in which nothing was answered yet."""
    put_setting(t, conversation, MODEL_SETTING, json.dumps(name))
