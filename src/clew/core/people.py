"""
People: who may talk to the agent on a channel. Nobody by default.

Decided by the platform's id of a person, never by a name. What the operator took away beats what
the settings allow.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

from clew.core.chat import DM

if TYPE_CHECKING:
    from datetime import datetime

    from clew.core.route import RouteKey

EVERYBODY = "*"
#: A code approves its person within this time …
CODE_LASTS = timedelta(hours=1)
#: … once it is known that it was shown, and for so long while that is not known …
UNSHOWN_LASTS = timedelta(minutes=5)
#: … unless so many wrong ones were tried.
MOST_TRIES = 5
#: Codes that wait at the same time for one account: more strangers get no answer.
MOST_CODES = 50


class Standing(enum.Enum):
    """What is stored about a person; nothing about most."""

    ASKED = "asked"  #: wrote, and was shown a code
    PAIRED = "paired"  #: the operator approved the code
    REMOVED = "removed"  #: may not talk any more, but may be paired again
    BLOCKED = "blocked"  #: gets no answer at all


@dataclass(frozen=True, kw_only=True, slots=True)
class Account:
    """Whose people: those of one bot on one platform."""

    channel: str
    account: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Person:
    account: Account
    user: str
    name: str
    route: RouteKey | None
    standing: Standing
    changed_at: datetime
    #: Until when the code that they were shown approves them; ``None`` without one.
    code_until: datetime | None
    approved_by: str | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Policy:
    """What the settings say about a channel's people."""

    allow: frozenset[str] = frozenset()
    #: May approve others in chat, and manage people and deliveries; they may talk, too.
    operators: frozenset[str] = frozenset()
    #: Chats of several people in which the agent takes part.
    groups: frozenset[str] = frozenset()
    #: In groups it answers only what is meant for it.
    mention: bool = True
    #: In its groups everyone may talk to it, not only those that may in a direct message.
    open_groups: bool = False
    #: Strangers who write in a direct message are shown a code.
    codes: bool = True


class Verdict(enum.Enum):
    TALK = "talk"
    CODE = "code"  #: a stranger: show a code
    SILENCE = "silence"


_OUT = (Standing.REMOVED, Standing.BLOCKED)


def may_talk(policy: Policy, standing: Standing | None, user: str) -> bool:
    """Whether a person may talk to the agent in a direct message."""
    if standing in _OUT:
        return False
    allowed = EVERYBODY in policy.allow or user in policy.allow | policy.operators
    return allowed or standing is Standing.PAIRED


def is_operator(policy: Policy, standing: Standing | None, user: str) -> bool:
    return user in policy.operators and standing not in _OUT


def verdict(
    policy: Policy,
    standing: Standing | None,
    *,
    user: str,
    kind: str | None,
    chat: str,
    addressed: bool,
) -> Verdict:
    """What becomes of what somebody says, presses or edits."""
    if kind == DM:
        if may_talk(policy, standing, user):
            return Verdict.TALK
        code = policy.codes and standing is not Standing.BLOCKED
        return Verdict.CODE if code else Verdict.SILENCE
    if EVERYBODY not in policy.groups and chat not in policy.groups:
        return Verdict.SILENCE
    if policy.mention and not addressed:
        return Verdict.SILENCE
    known = may_talk(policy, standing, user) or (policy.open_groups and standing not in _OUT)
    return Verdict.TALK if known else Verdict.SILENCE
