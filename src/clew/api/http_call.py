"""Calls over HTTP, and what those of one server share."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from clew.api import outcome_mapping
from clew.api.health import offered_models
from clew.api.idempotency import idempotency_key
from clew.api.openapi import build_openapi
from clew.api.operation_call import OperationCall
from clew.api.problems import ProblemError
from clew.api.sse import InterruptibleReader, Interruption
from clew.core.events import InputCompleted
from clew.distribution import VERSION
from clew.errors import StoreFull
from clew.record import Record

if TYPE_CHECKING:
    from collections.abc import Sequence

    from starlette.requests import Request

    from clew.api.endpoints import Endpoint
    from clew.api.operation_context import OperationContext
    from clew.api.request_stats import RequestStats
    from clew.api.shutdown import ShutdownSignals
    from clew.api.timeouts import ApiTimeouts
    from clew.core.inbox import AcceptResult
    from clew.engine.request_service import IdempotencyKey
    from clew.wire.params import SubmitParams


class HttpServer(Record, dict=True):
    """The parts of a server that its endpoints share."""

    context: OperationContext
    endpoints: Sequence[Endpoint]
    leaving: ShutdownSignals
    stats: RequestStats
    timeouts: ApiTimeouts

    @cached_property
    def models(self) -> Sequence[str]:
        """Return the model names under which the agent is offered; the first is the default."""
        return offered_models(self.context.settings.model.name)

    @cached_property
    def openapi(self) -> dict[str, object]:
        """Return the OpenAPI document, built when it is first requested."""
        with_token = self.context.settings.api.token is not None
        return build_openapi(self.endpoints, version=VERSION, with_token=with_token)


@dataclass(frozen=True, kw_only=True, slots=True)
class HttpCall(OperationCall):
    """One HTTP request while it is processed."""

    server: HttpServer
    request: Request

    def make_key(self, given: SubmitParams) -> IdempotencyKey | None:
        return idempotency_key(self.request)

    async def wait_for_input(self, filed: AcceptResult) -> InputCompleted:
        """
        Wait for the result of a queued input.

        :raises ProblemError: if it is left for the next start, or for space on the disk
        """
        async with InterruptibleReader(
            self.engine.stream_input(filed), self.request.receive, self.server.leaving.stop
        ) as ear:
            try:
                while not isinstance(
                    heard := await ear.next_event(), (InputCompleted, Interruption)
                ):
                    pass
            except StoreFull as error:
                raise ProblemError(outcome_mapping.STORE_FULL_QUEUED) from error
        if isinstance(heard, Interruption):
            raise ProblemError(outcome_mapping.STOPPING_QUEUED)
        return heard
