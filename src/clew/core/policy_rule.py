"""Rules about tool calls, of the settings and of what is in force."""

from __future__ import annotations

import enum

from clew.record import Record


class Verdict(enum.Enum):
    ALLOW = "allow"
    ASK = "ask"
    DENY = "deny"


class PolicyRule(Record):
    """A rule of the settings; an empty list matches everything."""

    then: Verdict
    tools: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    #: Scopes (``chat:*``) and people (``telegram:42``).
    who: tuple[str, ...] = ()


class CallNarrowing(Record):
    """The only calls that may run without asking while something is in force; allows nothing."""

    #: What is in force, for people: ``the skill pdf``.
    says: str
    #: Tools; with a pattern, only calls whose commands all match it.
    calls: tuple[tuple[str, str | None], ...]
