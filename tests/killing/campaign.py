"""A campaign: process after process on one store, each killed at a point, the last one not."""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from clew.core.double_text import DoubleText
from tests.killing import processes
from tests.killing.plans import Say
from tests.killing.records import Handed, Killed

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tests.killing.child import Job
    from tests.killing.points import Point

KILLED = -9
#: Attempts for each point.
TRIES = 3


class NotAsPlanned(Exception):
    """A process ended in another way than by the kill: what it said is in the text."""


@dataclass(kw_only=True)
class Campaign:
    """Runs processes, one after the other; counts the kills by point."""

    job: Job
    kills: Counter[str] = field(default_factory=Counter[str])
    #: Expected requests to the summariser, by conversation.
    summaries: dict[str, int] = field(default_factory=dict[str, int])
    _numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    def run(self, points: Sequence[Point]) -> None:
        """
        Kill once at each point, in order, and finish.

        :raises NotAsPlanned: if a point was not reached, or a process failed
        """
        for point in points:
            self.kill_at(point)
        self.finish()

    def kill_at(self, point: Point) -> None:
        """Hand over messages that lead to the point, in a conversation of their own."""
        for tries_left in reversed(range(TRIES)):
            says = self.says(point.plans)
            self.summaries[says[0].conversation] = point.summaries
            job = replace(self.job, says=says, rule=point.rule, place=point.place)
            # A front that comes late hears several deltas as one, and ends before the last.
            if self._killed(job, point.name, may_end=tries_left > 0 and not point.summaries):
                break
        if point.then is not None:
            self._killed(replace(self.job, place=point.then, early=True), point.name)
        self.kills[point.name] += 1

    def says(self, plans: Sequence[str]) -> list[Say]:
        """Messages for a new conversation."""
        number = next(self._numbers)
        return [Say(key=f"c{number}m{n}", plan=plan) for n, plan in enumerate(plans, 1)]

    def _killed(self, job: Job, name: str, *, may_end: bool = False) -> bool:
        """Return whether a process was killed; a clean end counts only where it is allowed."""
        code = processes.ended(processes.start(job))
        if code == 0 and may_end:
            return False
        if code != KILLED:
            raise NotAsPlanned(f"{name}: exit code {code}\n{self.output()[-4000:]}")
        return True

    def finish(self) -> None:
        """
        Let one process end everything, then say one more thing in each conversation.

        The request for that one shows all that was said before.
        """
        self.undisturbed(replace(self.job, says=()))
        conversations = {record.key.partition("m")[0] for record in self.job.fronts.of(Handed)}
        last = [Say(key=f"{name}m9999") for name in sorted(conversations)]
        self.undisturbed(replace(self.job, says=last, rule=DoubleText.QUEUE))

    def undisturbed(self, job: Job) -> None:
        """:raises NotAsPlanned: if the process does not end by itself"""
        code = processes.ended(processes.start(job))
        if code != 0:
            raise NotAsPlanned(f"exit code {code}\n{self.output()[-4000:]}")

    def output(self) -> str:
        path = self.job.folder / "output.log"
        return path.read_text(errors="replace") if path.exists() else ""

    def places(self) -> Counter[str]:
        """Return the points at which processes killed themselves."""
        return Counter(record.place for record in self.job.fronts.of(Killed))
