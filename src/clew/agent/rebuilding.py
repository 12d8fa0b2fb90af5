"""
Requests made again: a stored context goes the way of every request, up to where it would go out.

Agent, tools, settings and model are those of now; the messages and instructions are the stored
ones.
"""

from __future__ import annotations

from contextlib import asynccontextmanager, nullcontext
from typing import TYPE_CHECKING, Any, NoReturn

import httpx2

from clew.agent.failures import classify
from clew.agent.loop import Answer
from clew.agent.messages import ModelRequest, ModelResponse
from clew.errors import OperationRefused

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping, Sequence
    from contextlib import AbstractContextManager

    from clew.agent.loop import Loop
    from clew.agent.messages import ModelMessage
    from clew.agent.models import Model
    from clew.agent.ports import Asked, Execute, LoopContext, ToolRequest, ToolResult
    from clew.core.events import DeltaKind


async def body_of(loop: Loop, context: LoopContext, model: Model, *, stream: bool) -> bytes | None:
    """
    The body of the request that a context leads to; ``None`` for a model that is not asked by HTTP
    as OpenAI or Anthropic are.

    :raises Refused: if the context leads to no request
    """
    if not context.messages or not isinstance(context.messages[-1], ModelRequest):
        raise OperationRefused("the context does not end in what a model is to be sent")
    async with listening(model) as (listener, heard):
        if listener is None:
            return None
        try:
            await loop.run(_Log(context), _Journal(), listener, stream=stream)
        except Exception:
            if not heard:
                raise
    if not heard:
        raise OperationRefused("the context leads to no request")
    return heard[0]


async def answered_again(
    loop: Loop, context: LoopContext, model: Model, *, stream: bool
) -> ModelResponse:
    """
    What a model answers to the request that a context leads to; no tool that it asks for is run.

    :raises Refused: if the context leads to no request, or the model did not answer
    """
    log = _Log(context)
    try:
        result = await loop.run(log, _Journal(), model, stream=stream)
    except _Enough:
        pass
    except Exception as error:
        # An answer that makes no sense to the library is an answer.
        if log.response is None:
            raise OperationRefused(f"the model did not answer: {classify(error).told}") from error
    else:
        if isinstance(result, Answer):
            log.response = next((m for m in result.unstored if isinstance(m, ModelResponse)), None)
    if log.response is None:
        raise OperationRefused("the context leads to no request")
    return log.response


@asynccontextmanager
async def listening(model: Model) -> AsyncGenerator[tuple[Model | None, list[bytes]]]:
    """The same model, but what it sends is heard here and goes no further; ``None``: as above."""
    heard: list[bytes] = []

    async def hear(request: httpx2.Request) -> NoReturn:
        heard.append(await request.aread())
        raise _Enough

    async with httpx2.AsyncClient(transport=httpx2.MockTransport(hear)) as http:
        yield _with_http(model, http), heard


def _with_http(model: Any, http: httpx2.AsyncClient) -> Model | None:
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


class _Enough(Exception):
    """The request was made; nothing needs to go on."""


class _Log:
    """A turn's log that holds a context and stores nothing."""

    def __init__(self, context: LoopContext) -> None:
        self._context = context
        #: What the model answered, where that asks for tools or is to be corrected.
        self.response: ModelResponse | None = None

    async def context(self) -> LoopContext:
        return self._context

    def asked(self, asked: Asked) -> None:
        pass

    async def store_response(self, response: ModelResponse, instructions: str | None) -> NoReturn:
        self.response = response
        raise _Enough

    async def store_request(self, request: ModelRequest, retries: Mapping[str, int]) -> NoReturn:
        raise _Enough

    def waiting(self) -> AbstractContextManager[None]:
        return nullcontext()

    async def steered(self) -> Sequence[ModelMessage]:
        return ()

    async def fit(self) -> LoopContext | None:
        return None

    async def store_usage(self, response: ModelResponse) -> None:
        pass

    async def store_attempt(self, text: str) -> None:
        pass

    def say(self, kind: DeltaKind, text: str) -> None:
        pass

    def retract(self, reason: str) -> None:
        pass


class _Journal:
    """A journal of a run in which no tool is called."""

    suspended = False

    async def call(self, request: ToolRequest, execute: Execute) -> ToolResult | None:
        raise _Enough

    async def read_result(self, call_id: str) -> str | None:
        raise _Enough
