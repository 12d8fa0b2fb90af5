"""
Replay of requests: a stored context becomes a request as in any run.

Agent, tools, settings and model are the current ones; messages and prefix are stored.
"""

from __future__ import annotations

from contextlib import asynccontextmanager, nullcontext
from typing import TYPE_CHECKING, Any, NoReturn

import httpx2

from clew.agent.loop import FinalAnswer
from clew.agent.messages import ModelRequest, ModelResponse
from clew.agent.protocols import ModelWait
from clew.agent.provider_errors import classify_error
from clew.errors import OperationRefused

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping, Sequence
    from contextlib import AbstractContextManager

    from clew.agent.loop import AgentLoop
    from clew.agent.messages import ModelMessage
    from clew.agent.models import Model
    from clew.agent.protocols import ExecuteTool, LoopContext, RequestInfo, ToolRequest, ToolResult
    from clew.core.events import DeltaKind
    from clew.core.session_prefix import SessionPrefix


async def rebuild_request_body(
    loop: AgentLoop, context: LoopContext, model: Model, *, stream: bool
) -> bytes | None:
    """
    Return the body of the request for a context.

    Returns ``None`` for a model that does not use the HTTP formats of OpenAI or Anthropic.

    :raises OperationRefused: if the context leads to no request
    """
    if not context.messages or not isinstance(context.messages[-1], ModelRequest):
        raise OperationRefused("the context does not end in what a model is to be sent")
    async with capture_requests(model) as (listener, heard):
        if listener is None:
            return None
        try:
            await loop.run(_ReplayLog(context), _ReplayJournal(), listener, stream=stream)
        except Exception:  # the run is stopped from within once the request is captured
            if not heard:
                raise
    if not heard:
        raise OperationRefused("the context leads to no request")
    return heard[0]


async def resend_request(
    loop: AgentLoop, context: LoopContext, model: Model, *, stream: bool
) -> ModelResponse:
    """
    Return the model's answer to a context's request; run no tools.

    :raises OperationRefused: if the context leads to no request or the model gave no answer
    """
    log = _ReplayLog(context)
    try:
        result = await loop.run(log, _ReplayJournal(), model, stream=stream)
    except _StopReplay:
        pass
    except Exception as error:
        # A response that the library cannot use still counts as an answer.
        if log.response is None:
            raise OperationRefused(
                f"the model did not answer: {classify_error(error).user_message}"
            ) from error
    else:
        if isinstance(result, FinalAnswer):
            log.response = next((m for m in result.unstored if isinstance(m, ModelResponse)), None)
    if log.response is None:
        raise OperationRefused("the context leads to no request")
    return log.response


@asynccontextmanager
async def capture_requests(model: Model) -> AsyncGenerator[tuple[Model | None, list[bytes]]]:
    """
    Yield a copy of the model that only records its requests, and the list of bodies.

    The copy is ``None`` for a model that does not use the HTTP formats of OpenAI or
    Anthropic.
    """
    heard: list[bytes] = []

    async def capture_request(request: httpx2.Request) -> NoReturn:
        heard.append(await request.aread())
        raise _StopReplay

    async with httpx2.AsyncClient(transport=httpx2.MockTransport(capture_request)) as http:
        yield _copy_with_client(model, http), heard


def _copy_with_client(model: Any, http: httpx2.AsyncClient) -> Model | None:
    names = {"OpenAIChatModel": "openai", "OpenAIResponsesModel": "openai"}
    kind = names.get(type(model).__name__, model.system)
    if kind not in ("openai", "anthropic"):
        return None
    client = {f"{kind}_client": model.client.copy(http_client=http, max_retries=0)}
    return type(model)(
        model.model_name,
        provider=type(model.provider)(**client),
        profile=model.profile,
        settings=model.settings,
    )


class _StopReplay(Exception):
    """Signal that the replay has its result."""


class _ReplayLog:
    """Turn log that has a context and stores nothing."""

    def __init__(self, context: LoopContext) -> None:
        self._context = context
        #: The model's answer, if it requests tools or has to be corrected.
        self.response: ModelResponse | None = None

    async def read_context(self) -> LoopContext:
        return self._context

    def record_request(self, asked: RequestInfo) -> None:
        pass

    async def store_prefix(self, prefix: SessionPrefix) -> None:
        pass

    async def store_response(self, response: ModelResponse) -> NoReturn:
        self.response = response
        raise _StopReplay

    async def store_request(self, request: ModelRequest, retries: Mapping[str, int]) -> NoReturn:
        raise _StopReplay

    def waiting_for_model(self, asked: RequestInfo) -> AbstractContextManager[ModelWait]:
        return nullcontext(ModelWait())

    async def take_steering_messages(self) -> Sequence[ModelMessage]:
        return ()

    async def compact_if_needed(self, model: Model) -> LoopContext | None:
        return None

    async def store_usage(self, response: ModelResponse) -> None:
        pass

    async def store_attempt(self, text: str) -> None:
        pass

    def emit_delta(self, kind: DeltaKind, text: str) -> None:
        pass

    def retract_deltas(self, reason: str) -> None:
        pass


class _ReplayJournal:
    """Journal that runs no tools."""

    is_suspended = False

    async def execute_call(self, request: ToolRequest, execute: ExecuteTool) -> ToolResult | None:
        raise _StopReplay

    async def read_result(self, call_id: str) -> str | None:
        raise _StopReplay
