"""Settings that people chose in a conversation or scope, stored as JSON."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from clew.core.agent_profile import StoredAgent, dump_profile, load_profile
from clew.core.route import MAIN_AGENT, Route

if TYPE_CHECKING:
    from clew.core.agent_profile import AgentProfile
    from clew.core.ids import ConversationId
    from clew.core.route import RouteKey
    from clew.store.contract import Tx

#: Names of the settings with the model of a conversation and, until the next message, the model
#: before it.
MODEL_SETTING, PREVIOUS_MODEL_SETTING = "model", "model_before"
#: Name of the setting with the profile of a conversation's agent.
PROFILE_SETTING = "agent_profile"
#: Name of the setting with the name of a conversation's agent.
AGENT_SETTING = "agent"

#: Names of the settings that a branch has from its source.
_LASTING = (MODEL_SETTING, PROFILE_SETTING, AGENT_SETTING)


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


def set_agent_of_route(t: Tx, conversation: ConversationId, route: RouteKey | None) -> None:
    """Give a conversation the agent that the route names for which it is opened."""
    agent = MAIN_AGENT if route is None else Route.parse(route).agent
    if agent != MAIN_AGENT:
        put_setting(t, conversation, AGENT_SETTING, json.dumps(agent))


def find_agent(t: Tx, conversation: ConversationId) -> StoredAgent:
    """Return name and profile of a conversation's agent."""
    stored = _find_settings(t, conversation, AGENT_SETTING, PROFILE_SETTING)
    profile = stored.get(PROFILE_SETTING)
    return StoredAgent(
        name=_load_name(stored.get(AGENT_SETTING)),
        profile=None if profile is None else load_profile(profile),
    )


def find_chosen_model(t: Tx, conversation: ConversationId) -> tuple[str | None, str | None]:
    """Return the model that people chose for a conversation, and the name of its agent, if any."""
    stored = _find_settings(t, conversation, MODEL_SETTING, AGENT_SETTING)
    return _load_name(stored.get(MODEL_SETTING)), _load_name(stored.get(AGENT_SETTING))


def _find_settings(t: Tx, scope: str, first: str, second: str) -> dict[str, str]:
    """Return the values of those of two settings that are stored."""
    sql = "SELECT name, value FROM setting WHERE scope = $1 AND name IN ($2, $3)"
    return dict(t.fetch_all(sql, scope, first, second))


def _load_name(value: str | None) -> str | None:
    return None if value is None else json.loads(value)


def copy_lasting_settings(t: Tx, source: ConversationId, target: ConversationId) -> None:
    """Copy the model and the profile of a conversation's agent to one that continues it."""
    for name in _LASTING:
        if (value := get_setting(t, source, name)) is not None:
            put_setting(t, target, name, value)


def set_model(t: Tx, conversation: ConversationId, name: str) -> None:
    """Store the model of a conversation in which nothing was answered yet."""
    put_setting(t, conversation, MODEL_SETTING, json.dumps(name))
