"""Double text: rules for messages that arrive while a turn is unfinished."""

from __future__ import annotations

import enum
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from clew.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

#: The collect window closes after this much quiet …
QUIET_PERIOD = timedelta(milliseconds=600)
#: … or this long after its first message …
MAX_WINDOW = timedelta(seconds=3)
#: … or with this many messages.
MAX_COLLECTED = 10


class DoubleText(enum.Enum):
    """Rule for a message that arrives while a turn is unfinished."""

    QUEUE = "queue"  #: its own turn after this one
    STEER = "steer"  #: joins the running turn at the next step
    COLLECT = "collect"  #: collects a burst first, then as steer
    INTERRUPT = "interrupt"  #: stops the turn, keeps its partial text, then its own turn
    ROLLBACK = "rollback"  #: stops the turn and rewinds to before it, then its own turn
    REJECT = "reject"  #: refused while a turn is unfinished


AUTO = "auto"


def parse_rule(setting: str, *, people: bool) -> DoubleText:
    """
    Return the rule of a setting; ``auto`` collects from people, queues from programs.

    :raises UsageError: if there is no such rule
    """
    if setting == AUTO:
        return DoubleText.COLLECT if people else DoubleText.QUEUE
    try:
        return DoubleText(setting)
    except ValueError:
        known = ", ".join([AUTO, *(rule.value for rule in DoubleText)])
        raise UsageError(f"there is no double-text rule {setting!r}: use one of {known}") from None


def window_end(now: datetime, *, earlier: Sequence[datetime]) -> datetime:
    """Return when a burst ends that gets a message now and got others ``earlier``."""
    if len(earlier) + 1 >= MAX_COLLECTED:
        return now
    return min(now + QUIET_PERIOD, min(earlier, default=now) + MAX_WINDOW)
