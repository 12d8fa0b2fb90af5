"""Failures of the calls to a fake chat platform."""

from __future__ import annotations

import enum
import random
from dataclasses import dataclass, field


class CallFault(enum.Enum):
    """The fault of a call."""

    NONE = "none"
    CUT = "cut"  #: the connection breaks before the call has an effect
    LOST = "lost"  #: the call has its effect, but its response is lost
    THROTTLED = "throttled"  #: 429
    BROKEN = "broken"  #: 502


@dataclass(kw_only=True)
class FaultInjector:
    """Shares of calls that fail, by kind; the same seed fails the same calls, in order."""

    cut: float = 0.0
    lost: float = 0.0
    throttled: float = 0.0
    broken: float = 0.0
    #: Seconds for which a chat is throttled, one of these at random.
    waits: tuple[int, ...] = (1,)
    #: Shares of polls with reordered updates, and of duplicated updates.
    reordered: float = 0.0
    duplicated: float = 0.0
    seed: int = 0
    #: Faults of the next calls, before random ones.
    queued: list[CallFault] = field(default_factory=list[CallFault])
    _random: random.Random = field(init=False)

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)

    def next_fault(self) -> CallFault:
        """Return the fault of the next call."""
        if self.queued:
            return self.queued.pop(0)
        drawn = self._random.random()
        for fault, share in (
            (CallFault.CUT, self.cut),
            (CallFault.LOST, self.lost),
            (CallFault.THROTTLED, self.throttled),
            (CallFault.BROKEN, self.broken),
        ):
            if drawn < share:
                return fault
            drawn -= share
        return CallFault.NONE

    def draw_wait(self) -> int:
        return self._random.choice(self.waits)

    def draw_chance(self, share: float) -> bool:
        return share > 0 and self._random.random() < share
