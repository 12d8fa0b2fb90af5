"""Which model is asked: the first one, or one that stands in for it while it fails."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING

from clew.agent.failures import ELSEWHERE, PASSING, Failure

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from clew.agent.models import Model


@dataclass(frozen=True, kw_only=True, slots=True)
class Patience:
    """How failures of a model are met; times in seconds."""

    #: Requests to one model before the next model is asked.
    attempts: int = 4
    #: Before the second request; doubled each time, with jitter.
    first_wait: float = 1.0
    longest_wait: float = 60.0
    #: A model that failed a whole turn this often in a row is left alone …
    breaks_after: int = 3
    #: … for this long, if another one is there.
    cooldown: float = 60.0

    def wait(self, attempt: int, failure: Failure) -> float | None:
        """How long to wait after attempt number ``attempt`` (from 1); ``None`` to give up."""
        if failure.kind not in PASSING or attempt >= self.attempts:
            return None
        if failure.retry_after is not None:
            return failure.retry_after if failure.retry_after <= self.longest_wait else None
        backoff = min(self.first_wait * 2 ** (attempt - 1), self.longest_wait)
        return backoff * random.uniform(0.5, 1.0)


class Models:
    """
    The model and its stand-ins, with a breaker for each.

    A breaker is kept in memory: it saves waiting, and what it knows is soon learnt again.
    """

    def __init__(
        self, models: Sequence[Model], patience: Patience, monotonic: Callable[[], float]
    ) -> None:
        if not models:
            raise ValueError("there is at least one model")
        self._models, self._monotonic = models, monotonic
        self.patience = patience
        self._failures = [0] * len(models)
        self._open_until = [0.0] * len(models)

    def in_order(self) -> Iterator[tuple[int, Model]]:
        """Those that are not left alone, in order; the first one if all are."""
        now = self._monotonic()
        usable = [n for n, until in enumerate(self._open_until) if until <= now] or [0]
        for n in usable:
            yield n, self._models[n]

    def worked(self, n: int) -> None:
        """Model number ``n`` answered."""
        self._failures[n], self._open_until[n] = 0, 0.0

    def failed(self, n: int, failure: Failure) -> None:
        """Model number ``n`` was given up for a turn."""
        if failure.kind not in ELSEWHERE:
            return
        self._failures[n] += 1
        if self._failures[n] >= self.patience.breaks_after:
            self._open_until[n] = self._monotonic() + self.patience.cooldown
