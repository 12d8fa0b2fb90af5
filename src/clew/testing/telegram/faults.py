"""What goes wrong on the way to Telegram and back."""

from __future__ import annotations

import enum
import random
from dataclasses import dataclass, field


class Fault(enum.Enum):
    NONE = "none"
    CUT = "cut"  #: the connection breaks before the call has any effect
    LOST = "lost"  #: the call has its effect, its answer never arrives
    THROTTLED = "throttled"  #: 429
    BROKEN = "broken"  #: 502


@dataclass(kw_only=True)
class Faults:
    """Shares of calls that fail, each in its way; the same seed fails the same calls in order."""

    cut: float = 0.0
    lost: float = 0.0
    throttled: float = 0.0
    broken: float = 0.0
    #: Seconds that a throttled chat has to wait.
    waits: tuple[int, ...] = (1,)
    #: Shares of polls whose updates come in another order, and of updates that come twice.
    reordered: float = 0.0
    duplicated: float = 0.0
    seed: int = 0
    #: What becomes of the next calls, before chance decides.
    coming: list[Fault] = field(default_factory=list[Fault])
    _random: random.Random = field(init=False)

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)

    def next(self) -> Fault:
        """What becomes of the next call."""
        if self.coming:
            return self.coming.pop(0)
        drawn = self._random.random()
        for fault, share in (
            (Fault.CUT, self.cut),
            (Fault.LOST, self.lost),
            (Fault.THROTTLED, self.throttled),
            (Fault.BROKEN, self.broken),
        ):
            if drawn < share:
                return fault
            drawn -= share
        return Fault.NONE

    def wait(self) -> int:
        return self._random.choice(self.waits)

    def happens(self, share: float) -> bool:
        return share > 0 and self._random.random() < share
