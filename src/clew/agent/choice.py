"""Which model is asked: the first one, or one that stands in for it while it fails."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING

from clew.agent.failures import ELSEWHERE, ONCE_MORE, PASSING, Failure
from clew.agent.models import name_of

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
    #: All waits for one model in a turn, where there is no other model …
    most_waiting: float = 120.0
    #: … and where there is one.
    most_waiting_beside: float = 15.0
    #: A model that failed a whole turn this often in a row is left alone …
    breaks_after: int = 3
    #: … for this long, if another one is there.
    cooldown: float = 60.0

    def wait(
        self, attempt: int, failure: Failure, *, waited: float = 0.0, beside: bool = False
    ) -> float | None:
        """
        How long to wait after attempt number ``attempt`` (from 1); ``None`` to give up.

        ``waited`` is what was waited already; ``beside`` says that another model could be asked.
        A provider that asks for more time than there is, is not asked again at all.
        """
        attempts = min(self.attempts, 2) if failure.kind in ONCE_MORE else self.attempts
        if failure.kind not in PASSING or attempt >= attempts:
            return None
        wait = self._backoff(attempt) if failure.retry_after is None else failure.retry_after
        most = self.most_waiting_beside if beside else self.most_waiting
        return wait if wait <= self.longest_wait and waited + wait <= most else None

    def _backoff(self, attempt: int) -> float:
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
        self._told: list[set[str]] = [set() for _ in models]

    def named(self, name: str | None) -> Model | None:
        """The one of this name; the first one for ``None``."""
        return next((m for m in self._models if name is None or name_of(m) == name), None)

    @property
    def first(self) -> Model:
        """The one that is asked first now."""
        return self._models[self._usable()[0]]

    def in_order(self) -> Iterator[tuple[int, Model]]:
        """Those that are not left alone, in order; the first one if all are."""
        for n in self._usable():
            yield n, self._models[n]

    def _usable(self) -> list[int]:
        now = self._monotonic()
        return [n for n, until in enumerate(self._open_until) if until <= now] or [0]

    def beside(self, n: int) -> bool:
        """Whether another model would be asked after number ``n``."""
        return any(other > n for other in self._usable())

    def worked(self, n: int) -> None:
        """Model number ``n`` answered."""
        self._failures[n], self._open_until[n] = 0, 0.0
        self._told[n].clear()

    def failed(self, n: int, failure: Failure) -> None:
        """Model number ``n`` was given up for a turn."""
        if failure.kind not in ELSEWHERE:
            return
        self._failures[n] += 1
        alone = failure.retry_after or 0.0
        if self._failures[n] >= self.patience.breaks_after:
            alone = max(alone, self.patience.cooldown)
        if alone:
            self._open_until[n] = self._monotonic() + alone

    def tell(self, n: int, conversation: str) -> bool:
        """Whether a conversation is yet to be told that number ``n`` fails; once per outage."""
        if conversation in self._told[n]:
            return False
        self._told[n].add(conversation)
        return True
