"""Failover of one turn: the models in order, retries, waits and the switch of streaming."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import structlog

from clew.agent.provider_errors import (
    FAILOVER_KINDS,
    MALFORMED_KINDS,
    FailureKind,
    ProviderFailure,
    classify_error,
    reclassify_text_only,
)
from clew.errors import ClewError

if TYPE_CHECKING:
    from collections.abc import Callable

    from clew.agent.failover import ModelChain
    from clew.agent.loop import LoopResult
    from clew.agent.models import Model
    from clew.agent.protocols import Journal
    from clew.core.turn import Turn
    from clew.engine.protocols import ContextCompactor, WaitPermit
    from clew.engine.services import EngineServices
    from clew.engine.turn_log import StoreTurnLog

log = structlog.get_logger(__name__)


#: Failures whose place in the code matters.
_TRACED_KINDS = frozenset({FailureKind.INTERNAL, FailureKind.AGENT_CODE, FailureKind.BAD_REPLY})


class AllModelsFailed(Exception):
    """No model answered; ``failure`` is the last one."""

    def __init__(self, failure: ProviderFailure) -> None:
        super().__init__(failure.text)
        self.failure = failure


class FailoverPolicy:
    """The requests of one turn to its models, until one of them answers."""

    def __init__(
        self,
        services: EngineServices,
        turn_log: StoreTurnLog,
        new_journal: Callable[[], Journal],
        *,
        turn: Turn,
        permit: WaitPermit,
        compactor: ContextCompactor,
    ) -> None:
        """Wire the policy; each run of the loop gets a journal of its own."""
        self._services, self._turn, self._log = services, turn, turn_log
        self._new_journal, self._permit, self._compactor = new_journal, permit, compactor

    async def request_answer(self) -> LoopResult:
        """
        Ask the models in order until one answers.

        :raises AllModelsFailed: when no model answered
        """
        chosen = await self._services.model_overrides.get_model_chain(self._turn.conversation_id)
        models = chosen or self._services.models
        result: LoopResult | ProviderFailure | None = None
        for number, model in models.iter_candidates():
            attempts = _ModelAttempts(models, number, stream=self._has_live_reader())
            while True:
                try:
                    result = await self._services.loop.run(
                        self._log, self._new_journal(), model, stream=attempts.stream
                    )
                except ClewError:
                    raise
                except Exception as error:  # noqa: BLE001  (any provider's; logged with traceback)
                    result = await self._classify_failure(error)
                if not isinstance(result, ProviderFailure):
                    models.record_success(number)
                    return result
                if not await self._prepare_retry(attempts, model, result):
                    break
            if not await self._fall_back(models, number, result):
                break
        assert isinstance(result, ProviderFailure)
        raise AllModelsFailed(result)

    def _has_live_reader(self) -> bool:
        return self._services.event_bus.has_live_subscriber(self._turn.conversation_id)

    async def _classify_failure(self, error: Exception) -> ProviderFailure:
        failure = classify_error(error)
        if failure.kind is FailureKind.TOO_LARGE and not await self._log.has_images():
            failure = reclassify_text_only(failure)
        level = log.error if failure.kind is FailureKind.INTERNAL else log.warning
        level(
            "model_request_failed",
            turn=self._turn.id,
            kind=failure.kind.value,
            failure=failure.text,
            # Of a provider's refusal the words are enough.
            exc_info=error if failure.kind in _TRACED_KINDS else None,
        )
        return failure

    async def _prepare_retry(
        self, attempts: _ModelAttempts, model: Model, failure: ProviderFailure
    ) -> bool:
        """Store the failed attempt; wait and return ``True`` if the model is asked again."""
        attempts.record_failure(failure, has_text=bool(self._log.partial_text))
        # Before its entry: a reader of the entry may find the turn closed already.
        self._log.retract_deltas(failure.text)
        await self._log.store_attempt(failure.text)
        if await self._recover_from_overflow(failure, model):
            return True
        wait = attempts.next_delay(failure)
        if wait is None:
            return False
        with self._permit.lend_while_waiting():
            await asyncio.sleep(wait)
        return True

    async def _recover_from_overflow(self, failure: ProviderFailure, model: Model) -> bool:
        """Return whether compaction resolved an overflow, so that the step can be repeated."""
        if self._log.session is None:
            return False
        done = await self._compactor.recover_from_overflow(
            failure, model, self._log.session, self._log.tokens
        )
        if done is None:
            return False
        await self._log.store_notices(done.notices)
        return done.moved

    async def _fall_back(self, models: ModelChain, number: int, failure: ProviderFailure) -> bool:
        """Give up a model; return whether the next one may be asked."""
        has_alternative = models.has_alternative(number)
        models.record_failure(number, failure)
        # Another model need not repeat the errors of this one.
        self._log.reset_retries()
        if failure.kind not in FAILOVER_KINDS:
            return False
        if has_alternative and models.should_notify(number, self._turn.conversation_id):
            await self._log.store_notices([f"Another model is asked: {failure.user_message}."])
        return True


class _ModelAttempts:
    """The requests to one model in a turn: their number, their waits and the use of a stream."""

    def __init__(self, models: ModelChain, number: int, *, stream: bool) -> None:
        self._models, self._number = models, number
        self.stream = stream
        self._count = 0
        self._waited = 0.0

    def record_failure(self, failure: ProviderFailure, *, has_text: bool) -> None:
        """Count a failed attempt, and choose whether the next one streams."""
        self._count += 1
        if failure.kind is FailureKind.TIMEOUT:
            # Without a stream, a long answer sends nothing until it is complete.
            self.stream = True
        elif failure.kind in MALFORMED_KINDS and not has_text:
            # If a server's streams are broken, complete answers often work.
            self.stream = not self.stream

    def next_delay(self, failure: ProviderFailure) -> float | None:
        """Return the seconds until the next attempt; ``None`` if there is none."""
        wait = self._models.retry_policy.next_delay(
            self._count,
            failure,
            waited=self._waited,
            beside=self._models.has_alternative(self._number),
        )
        self._waited += wait or 0.0
        return wait
