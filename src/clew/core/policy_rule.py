"""Rules of the settings about tool calls."""

from __future__ import annotations

import enum
from dataclasses import dataclass


class Verdict(enum.Enum):
    ALLOW = "allow"
    ASK = "ask"
    DENY = "deny"


@dataclass(frozen=True, kw_only=True, slots=True)
class PolicyRule:
    """A rule of the settings; an empty list matches everything."""

    then: Verdict
    tools: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    #: Scopes (``chat:*``) and people (``telegram:42``).
    who: tuple[str, ...] = ()
