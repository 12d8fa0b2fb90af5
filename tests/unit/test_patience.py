"""Waiting for a model: timeouts, retries and cool-downs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from pydantic_ai.models.test import TestModel

from clew.agent.failover import ModelChain, RetryPolicy
from clew.agent.provider_errors import (
    FAILOVER_KINDS,
    RETRY_ONCE_KINDS,
    TRANSIENT_KINDS,
    FailureKind,
    ProviderFailure,
)

if TYPE_CHECKING:
    from collections.abc import Sequence


def failure(
    kind: FailureKind = FailureKind.OVERLOADED, retry_after: float | None = None
) -> ProviderFailure:
    return ProviderFailure(kind=kind, text="no", retry_after=retry_after)


def waits(
    failed: ProviderFailure, patience: RetryPolicy, *, beside: bool = False
) -> Sequence[float]:
    """The waits of a turn in which one model fails for ever."""
    found: list[float] = []
    while True:
        wait = patience.next_delay(len(found) + 1, failed, waited=sum(found), beside=beside)
        if wait is None:
            return found
        found.append(wait)


def test_waits_double_with_jitter_and_attempts_are_bounded() -> None:
    found = waits(failure(), RetryPolicy())
    assert len(found) == 3
    for wait, most in zip(found, (1, 2, 4), strict=True):
        assert most / 2 <= wait <= most
    assert len({waits(failure(), RetryPolicy())[0] for _ in range(20)}) > 1


@pytest.mark.parametrize("kind", FailureKind)
def test_only_what_may_pass_is_asked_again(kind: FailureKind) -> None:
    found = waits(failure(kind), RetryPolicy())
    assert bool(found) is (kind in TRANSIENT_KINDS)
    once_more = kind in RETRY_ONCE_KINDS
    assert not once_more or len(found) == 1


def test_the_pause_that_the_provider_asks_for_is_kept() -> None:
    assert waits(failure(retry_after=7), RetryPolicy())[0] == 7


def test_a_wait_longer_than_our_patience_is_not_begun() -> None:
    assert waits(failure(retry_after=61), RetryPolicy()) == []
    assert waits(failure(retry_after=86_400), RetryPolicy()) == []


def test_all_waits_of_a_turn_together_are_bounded() -> None:
    patience = RetryPolicy(attempts=100)
    for retry_after in (None, 1, 10, 20, 59, 60, 61):
        alone = waits(failure(retry_after=retry_after), patience)
        assert sum(alone) <= patience.max_total_wait


def test_with_another_model_beside_it_is_asked_within_30_seconds() -> None:
    for retry_after in (None, 1, 5, 14, 16, 60):
        found = waits(failure(retry_after=retry_after), RetryPolicy(), beside=True)
        assert sum(found) <= 15
    assert waits(failure(retry_after=30), RetryPolicy(), beside=True) == []


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def models(clock: Clock) -> ModelChain:
    return ModelChain([TestModel(), TestModel()], RetryPolicy(), clock)


def order(models: ModelChain) -> list[int]:
    return [number for number, _ in models.iter_candidates()]


def test_a_model_that_keeps_failing_is_left_alone_and_asked_again_after_the_cool_down(
    models: ModelChain, clock: Clock
) -> None:
    for _ in range(2):
        models.record_failure(0, failure())
        assert order(models) == [0, 1]
    models.record_failure(0, failure())
    assert order(models) == [1]
    clock.now += 60
    assert order(models) == [0, 1]
    models.record_failure(0, failure())
    assert order(models) == [1], "one more failure is enough now"
    clock.now += 60
    models.record_success(0)
    models.record_failure(0, failure())
    assert order(models) == [0, 1], "it counts from the beginning"


def test_a_model_that_asks_for_time_gets_it_at_once_over_turns(
    models: ModelChain, clock: Clock
) -> None:
    models.record_failure(0, failure(retry_after=300))
    clock.now += 299
    assert order(models) == [1]
    clock.now += 1
    assert order(models) == [0, 1]


def test_when_all_are_left_alone_the_first_is_asked_nevertheless(models: ModelChain) -> None:
    models.record_failure(0, failure(retry_after=300))
    models.record_failure(1, failure(retry_after=300))
    assert order(models) == [0]


@pytest.mark.parametrize("kind", [kind for kind in FailureKind if kind not in FAILOVER_KINDS])
def test_a_failure_that_is_the_requests_own_says_nothing_about_the_model(
    models: ModelChain, kind: FailureKind
) -> None:
    for _ in range(5):
        models.record_failure(0, failure(kind))
    assert order(models) == [0, 1]


def test_each_conversation_hears_once_per_outage_that_a_model_fails(models: ModelChain) -> None:
    assert [
        models.should_notify(0, "a"),
        models.should_notify(0, "a"),
        models.should_notify(0, "b"),
    ] == [True, False, True]
    models.record_success(0)
    assert models.should_notify(0, "a")


@pytest.mark.parametrize(
    ("seconds", "told"),
    [(None, "no"), (20, "no (the provider asks to wait 20 s)"), (300, "wait 5 min)"),
     (7200, "wait 2 h)"), (200_000, "wait 3 d)")],
)  # fmt: skip
def test_a_person_is_told_when_to_try_again(seconds: float | None, told: str) -> None:
    assert failure(retry_after=seconds).user_message.endswith(told)
