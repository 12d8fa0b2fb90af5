"""
Access: who may talk to the agent on a channel. Nobody by default.

Decisions use the platform's user id, never a name. Revocation by the operator overrides
what the settings allow.
"""

from __future__ import annotations

import enum
from datetime import timedelta
from typing import TYPE_CHECKING

from clew.core.channel_events import DM
from clew.errors import OperationRefused
from clew.record import Record

if TYPE_CHECKING:
    from datetime import datetime

    from clew.core.route import RouteKey

EVERYBODY = "*"
#: Lifetime of a pairing code …
CODE_LIFETIME = timedelta(hours=1)
#: … once it is known to have been shown, and before that …
UNSHOWN_CODE_LIFETIME = timedelta(minutes=5)
#: … unless there were this many wrong attempts.
MAX_ATTEMPTS = 5
#: Pending codes of one account: further strangers get no answer.
MAX_PENDING_CODES = 50


class AccessStatus(enum.Enum):
    """Stored access status of a person; most have none."""

    ASKED = "asked"  #: sent a message and got a code
    PAIRED = "paired"  #: the operator approved the code
    REMOVED = "removed"  #: access revoked, may be paired again
    BLOCKED = "blocked"  #: never answered


class ChannelAccount(Record):
    """Bot account of one platform, whose people are managed together."""

    channel: str
    account: str


class Person(Record):
    account: ChannelAccount
    user: str
    name: str
    route: RouteKey | None
    standing: AccessStatus
    changed_at: datetime
    #: When their pairing code expires; ``None`` without one.
    code_until: datetime | None
    approved_by: str | None


class AccessPolicy(Record):
    """Access settings of a channel."""

    allow: frozenset[str] = frozenset()
    #: May message, approve others in chat, and manage people and deliveries.
    operators: frozenset[str] = frozenset()
    #: Group chats in which the agent takes part.
    groups: frozenset[str] = frozenset()
    #: In groups, answer only messages addressed to the agent.
    mention: bool = True
    #: In its groups, everyone may message the agent.
    open_groups: bool = False
    #: In groups, also those whose messages the agent answers may answer its questions.
    people_answer: bool = False
    #: Offer a pairing code to strangers in direct messages.
    codes: bool = True


class ChannelActor(Record):
    """A user on a channel, with the access policy that applies."""

    account: ChannelAccount
    user: str
    policy: AccessPolicy
    addressed: bool = True
    #: Requires a user who may use direct messages; guests of an open group do not qualify.
    trusted: bool = False


class ButtonOutcome(enum.Enum):
    """Outcome of the press of an approval's button."""

    RECORDED = "recorded"
    REASON_ASKED = "reason asked"  #: the person is asked for a reason; nothing is answered
    NO_ACCESS = "no access"  #: the user may not write here
    ANSWERED_BEFORE = "answered before"
    UNKNOWN = "unknown"  #: the button has no data that is understood
    GONE = "gone"  #: there is no such approval
    WRONG_CHAT = "wrong chat"
    NOT_ALLOWED = "not allowed"  #: the approval of another user's turn
    TOO_LATE = "too late"  #: it has expired, or was answered differently


class AccessDecision(enum.Enum):
    """Decision about an event of a person."""

    ALLOW = "talk"
    OFFER_PAIRING = "code"  #: a stranger: show a code
    IGNORE = "silence"


class AccessRefused(OperationRefused):
    """Refusal of a message whose sender has no access; nothing was stored."""

    def __init__(self, decision: AccessDecision) -> None:
        super().__init__("the sender of this message has no access here")
        self.decision = decision


_REVOKED = (AccessStatus.REMOVED, AccessStatus.BLOCKED)


def may_message(policy: AccessPolicy, standing: AccessStatus | None, user: str) -> bool:
    """Return whether a person may message the agent directly."""
    if standing in _REVOKED:
        return False
    allowed = EVERYBODY in policy.allow or user in policy.allow | policy.operators
    return allowed or standing is AccessStatus.PAIRED


def is_operator(policy: AccessPolicy, standing: AccessStatus | None, user: str) -> bool:
    """Return whether a person is an operator whose access is not revoked."""
    return user in policy.operators and standing not in _REVOKED


def decide_access(
    policy: AccessPolicy,
    standing: AccessStatus | None,
    *,
    user: str,
    kind: str | None,
    chat: str,
    addressed: bool,
) -> AccessDecision:
    """Decide about a message, a button press or an edit."""
    if kind == DM:
        if may_message(policy, standing, user):
            return AccessDecision.ALLOW
        code = policy.codes and standing is not AccessStatus.BLOCKED
        return AccessDecision.OFFER_PAIRING if code else AccessDecision.IGNORE
    if EVERYBODY not in policy.groups and chat not in policy.groups:
        return AccessDecision.IGNORE
    if policy.mention and not addressed:
        return AccessDecision.IGNORE
    known = may_message(policy, standing, user) or (policy.open_groups and standing not in _REVOKED)
    return AccessDecision.ALLOW if known else AccessDecision.IGNORE
