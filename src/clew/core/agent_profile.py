"""Profile of the agent of one conversation: what it is told, and what it is held to."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Final

from clew.record import Record

#: For each sandbox level those that have no rights beyond it. A container is beside the others.
_WITHIN: Final = {
    "read": frozenset({"read"}),
    "work": frozenset({"read", "work"}),
    "net": frozenset({"read", "work", "net"}),
    "box": frozenset({"box"}),
    "host": frozenset({"read", "work", "net", "box", "host"}),
}


class AgentProfile(Record):
    """Instructions and limits of a conversation's agent, whatever the settings say later."""

    #: In each session of the conversation, beside the other instructions.
    instructions: str | None = None
    #: Names of the tools that it is offered; ``None`` for all.
    tools: tuple[str, ...] | None = None
    #: Sandbox level of its commands, where that of the settings allows it.
    level: str | None = None
    #: Name of the memory that it has in place of its scope's; empty if it has none.
    memory: str | None = None

    @property
    def is_narrow(self) -> bool:
        """Return whether the agent has fewer rights than others."""
        return self.tools is not None or self.level is not None


#: What an agent may that the settings no longer have: it can answer.
WITHOUT_RIGHTS: Final = AgentProfile(tools=(), level="read", memory="")


class NamedAgent(Record):
    """An agent of the settings, which routes name."""

    profile: AgentProfile
    #: The model that it asks unless a person chooses another; ``None`` for the main one.
    model: str | None = None


class StoredAgent(Record):
    """Name and profile of a conversation's agent, as the store has them."""

    #: Its name in the settings; ``None`` for the main one.
    name: str | None = None
    #: Has the last word, whatever the settings say.
    profile: AgentProfile | None = None


#: The agent that the settings describe without a name.
MAIN: Final = StoredAgent()


def is_level_within(level: str, limit: str) -> bool:
    """Return whether commands at a sandbox level have no right that they lack at another."""
    return level in _WITHIN[limit]


def narrow_level(limit: str, level: str | None) -> str:
    """Return a sandbox level if it lies within a limit, else the limit."""
    return level if level is not None and is_level_within(level, limit) else limit


def narrow_profile(limit: AgentProfile, wanted: AgentProfile) -> AgentProfile:
    """Return a profile with its own instructions, and no right that the other lacks."""
    level = wanted.level if limit.level is None else narrow_level(limit.level, wanted.level)
    return AgentProfile(
        instructions=wanted.instructions,
        tools=_narrow_tools(limit.tools, wanted.tools),
        level=level,
        memory=_narrow_memory(limit.memory, wanted.memory),
    )


def _narrow_memory(limit: str | None, wanted: str | None) -> str | None:
    """Return the limit; an agent with a memory of its own tells it to nobody who gives it tasks."""
    if limit is not None:
        return limit
    return None if wanted is None else ""


def _narrow_tools(
    limit: tuple[str, ...] | None, wanted: tuple[str, ...] | None
) -> tuple[str, ...] | None:
    if limit is None or wanted is None:
        return limit if wanted is None else wanted
    return tuple(name for name in wanted if name in limit)


def dump_profile(profile: AgentProfile) -> str:
    """Return a profile as it is stored."""
    return json.dumps(asdict(profile), ensure_ascii=False)


def load_profile(stored: str) -> AgentProfile:
    """Return a profile from its stored form."""
    found = json.loads(stored)
    tools = found["tools"]
    return AgentProfile(
        instructions=found["instructions"],
        tools=None if tools is None else tuple(tools),
        level=found["level"],
        # Those of before there was a choice have none.
        memory=found.get("memory"),
    )
