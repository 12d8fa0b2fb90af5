"""Kinds of agents that can be given tasks, from the tables ``[agents.NAME]``."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from clew.core.agent_profile import AgentProfile, NamedAgent, is_level_within, narrow_profile
from clew.core.route import MAIN_AGENT
from clew.errors import UsageError
from clew.record import Record

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from clew.config.settings import Settings
    from clew.features.delegation.settings import AgentKind, DelegationSettings
    from clew.plugin import Registry

#: The section of the tables.
SECTION: Final = "agents"
_NAME_PATTERN: Final = re.compile(r"[a-z][a-z0-9_-]{0,39}")
#: Characters of instructions: what a feature may add to a session.
_MAX_INSTRUCTIONS: Final = 40_000


class TaskTerms(Record):
    """Terms of a new task: the limits, and the kinds of agents to choose from."""

    limits: DelegationSettings
    kinds: Mapping[str, AgentKind]

    def find_kind(self, name: str) -> AgentKind | None:
        """
        Return a kind of agent; ``None`` for the usual one, which has no name.

        :raises UsageError: naming the kinds, if there is no such one
        """
        if not name:
            return None
        if name in self.kinds:
            return self.kinds[name]
        known = ", ".join(self.kinds)
        what_to_do = f"there are {known}" if known else "there are none: leave kind out"
        raise UsageError(f"there is no kind of agent {name!r}; {what_to_do}")


def make_profile(
    parent: AgentProfile | None, name: str, kind: AgentKind | None
) -> AgentProfile | None:
    """Return the profile of a task: never with more rights than its parent; ``None`` for none."""
    wanted = AgentProfile() if kind is None else _read_profile(name, kind)
    made = narrow_profile(parent or AgentProfile(), wanted)
    return None if made == AgentProfile() else made


def make_named_agents(kinds: Mapping[str, AgentKind]) -> Mapping[str, NamedAgent]:
    """Return the kinds as agents that routes can name."""
    return {
        name: NamedAgent(profile=_read_profile(name, kind), model=kind.model)
        for name, kind in kinds.items()
    }


def _read_profile(name: str, kind: AgentKind) -> AgentProfile:
    return AgentProfile(
        instructions=kind.instructions,
        tools=kind.tools,
        level=kind.level,
        memory={"own": name, "none": ""}.get(kind.memory),
    )


def describe_kinds(kinds: Mapping[str, AgentKind]) -> Mapping[str, str]:
    """Return each kind with what it is for, as the model that chooses one reads it."""
    return {name: kind.description or "" for name, kind in kinds.items()}


def find_problems(registry: Registry, settings: Settings) -> Iterator[str]:
    """Yield a sentence for each thing in the tables that cannot be honoured."""
    kinds: Mapping[str, AgentKind] = settings.tables.get(SECTION, {})  # pyright: ignore[reportAssignmentType]
    limits: DelegationSettings = settings.sections[registry.name]  # pyright: ignore[reportAssignmentType]
    own_tools = settings.tools.modules or settings.agent.object or registry.adds_capabilities()
    for channel, own in settings.channels.items():
        if own.agent not in {MAIN_AGENT, *kinds}:
            known = ", ".join([MAIN_AGENT, *kinds])
            yield f"channels.{channel}.agent: there is no agent {own.agent!r}; there are {known}"
    for name, kind in kinds.items():
        table = f"{SECTION}.{name}"
        if not _NAME_PATTERN.fullmatch(name):
            yield f"[{table}]: the name of a kind has a-z, 0-9, - and _, at most 40 of them"
        if name == MAIN_AGENT:
            yield f"[{table}]: {MAIN_AGENT!r} is the agent of [agent]: choose another name"
        yield from _find_wide_limits(table, kind, limits, settings.sandbox.level)
        unknown = [] if own_tools else sorted({*(kind.tools or ())} - {*registry.list_tools()})
        if unknown:
            known = ", ".join(registry.list_tools())
            yield f"{table}.tools: there is no tool {unknown[0]!r}; there are {known}"


def _find_wide_limits(
    table: str, kind: AgentKind, limits: DelegationSettings, level: str
) -> Iterator[str]:
    if kind.level is not None and not is_level_within(kind.level, level):
        yield (
            f"{table}.level is {kind.level!r}, and sandbox.level is {level!r}: a kind can have "
            "fewer rights than the agent that chooses it, not more"
        )
    for name, own, most in (
        ("tokens", kind.tokens, limits.tokens),
        ("steps", kind.steps, limits.steps),
    ):
        if own is not None and own > most:
            yield (
                f"{table}.{name} is {own:,}, and delegation.{name} is {most:,}: a kind can have a "
                "smaller budget than others, not a larger one"
            )
    if len(kind.instructions or "") > _MAX_INSTRUCTIONS:
        yield f"{table}.instructions has more than {_MAX_INSTRUCTIONS:,} characters"
