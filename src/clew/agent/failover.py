"""Failover: requests go to the first model, or to a fallback while it fails."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.agent.models import get_qualified_name
from clew.agent.provider_errors import (
    FAILOVER_KINDS,
    RETRY_ONCE_KINDS,
    TRANSIENT_KINDS,
    ProviderFailure,
)
from clew.backoff import next_pause
from clew.record import Record

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from clew.agent.models import Model


class RetryPolicy(Record):
    """Limits on retries of failed model requests; times in seconds."""

    #: Requests to one model before the next model is used.
    attempts: int = 4
    #: Delay before the second request; doubled each time, with jitter.
    first_wait: float = 1.0
    max_wait: float = 60.0
    #: Total delay for one model per turn, if there is no alternative …
    max_total_wait: float = 120.0
    #: … and if there is one.
    max_total_wait_with_alternative: float = 15.0
    #: Failed turns in a row after which a model is not used …
    breaker_threshold: int = 3
    #: … for this long, if there is an alternative.
    cooldown: float = 60.0

    def next_delay(
        self, attempt: int, failure: ProviderFailure, *, waited: float = 0.0, beside: bool = False
    ) -> float | None:
        """
        Return the delay after attempt number ``attempt`` (from 1); ``None`` to give up.

        ``waited`` is the total delay so far; ``beside``: there is an alternative model.
        A provider that asks for a longer delay than allowed is not asked again.
        """
        attempts = min(self.attempts, 2) if failure.kind in RETRY_ONCE_KINDS else self.attempts
        if failure.kind not in TRANSIENT_KINDS or attempt >= attempts:
            return None
        wait = failure.retry_after
        if wait is None:
            wait = next_pause(attempt, first=self.first_wait, longest=self.max_wait)
        most = self.max_total_wait_with_alternative if beside else self.max_total_wait
        return wait if wait <= self.max_wait and waited + wait <= most else None


class ModelChain:
    """
    The model and its fallbacks, with a circuit breaker for each.

    Breakers are kept in memory: they only save waiting time, and their state is soon
    relearnt.
    """

    def __init__(
        self, models: Sequence[Model], patience: RetryPolicy, monotonic: Callable[[], float]
    ) -> None:
        if not models:
            raise ValueError("there is at least one model")
        self._models, self._monotonic = models, monotonic
        self.retry_policy = patience
        self._failures = [0] * len(models)
        self._open_until = [0.0] * len(models)
        self._notified: list[set[str]] = [set() for _ in models]

    def find_by_name(self, name: str | None) -> Model | None:
        """Return the model of this name (``None``: the first); ``None`` if there is none."""
        return next(
            (m for m in self._models if name is None or get_qualified_name(m) == name), None
        )

    @property
    def preferred_model(self) -> Model:
        """Return the model that is asked first now."""
        return self._models[self._usable_indices()[0]]

    def iter_candidates(self) -> Iterator[tuple[int, Model]]:
        """Yield the models whose breaker is closed, in order; the first one if none is."""
        for n in self._usable_indices():
            yield n, self._models[n]

    def _usable_indices(self) -> list[int]:
        now = self._monotonic()
        return [n for n, until in enumerate(self._open_until) if until <= now] or [0]

    def has_alternative(self, n: int) -> bool:
        """Return whether another model would be asked after number ``n``."""
        return any(other > n for other in self._usable_indices())

    def record_success(self, n: int) -> None:
        """Record that model number ``n`` answered."""
        self._failures[n], self._open_until[n] = 0, 0.0
        self._notified[n].clear()

    def record_failure(self, n: int, failure: ProviderFailure) -> None:
        """Record that model number ``n`` was given up for a turn."""
        if failure.kind not in FAILOVER_KINDS:
            return
        self._failures[n] += 1
        alone = failure.retry_after or 0.0
        if self._failures[n] >= self.retry_policy.breaker_threshold:
            alone = max(alone, self.retry_policy.cooldown)
        if alone:
            self._open_until[n] = self._monotonic() + alone

    def should_notify(self, n: int, conversation: str) -> bool:
        """Return whether to notify a conversation that number ``n`` fails: once per outage."""
        if conversation in self._notified[n]:
            return False
        self._notified[n].add(conversation)
        return True
