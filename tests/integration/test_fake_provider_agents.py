"""
Pydantic AI with the fake provider: good answers, and the exception of each failure.

The table of failures is knowledge about the library: when a new version changes a line, whoever
translates its errors has to look.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, cast

import pytest
from anthropic import AsyncAnthropic
from openai import AsyncOpenAI
from pydantic_ai import Agent
from pydantic_ai.exceptions import (
    ModelAPIError,
    ModelAuthenticationError,
    ModelConnectionError,
    ModelContextWindowExceededError,
    ModelHTTPError,
    ModelNotFoundError,
    ModelOverloadedError,
    ModelQuotaExceededError,
    ModelRateLimitError,
    ModelRequestRejectedError,
    ModelServerError,
    ModelTimeoutError,
    ModelUnavailableError,
    UnexpectedModelBehavior,
)
from pydantic_ai.messages import ModelResponse, TextPart, ThinkingPart, ToolCallPart
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.openai import OpenAIProvider
from pydantic_ai.settings import ModelSettings

from clew.testing.provider import (
    Calls,
    CutStream,
    EarlyEnd,
    EmptyChoices,
    EmptyText,
    Fail,
    FailKind,
    FakeProvider,
    Hang,
    Html,
    LengthStop,
    MalformedArguments,
    Reply,
    ReplyUsage,
    ScriptedCall,
    StreamError,
    Text,
    UnknownTool,
    count_user_texts,
    reply_in_sequence,
)

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from pydantic_ai.models import Model
    from pydantic_ai.run import AgentRunResult

#: The error that a failed request raises, streamed or not, in all formats.
RAISED: dict[FailKind, type[Exception]] = {
    "rate_limit": ModelRateLimitError,
    "quota": ModelQuotaExceededError,
    "authentication": ModelAuthenticationError,
    "payment": ModelQuotaExceededError,
    "unknown_model": ModelNotFoundError,
    "too_large": ModelHTTPError,
    "context_overflow": ModelContextWindowExceededError,
    "bad_tool_call": ModelRequestRejectedError,
    "server": ModelServerError,
    "unavailable": ModelUnavailableError,
    "overloaded": ModelOverloadedError,
}
#: Marks an answer that needed a second request.
AGAIN = "asked again"


class Asker:
    """An agent with one tool on a fake provider, in one format, streamed or not."""

    def __init__(self, provider: FakeProvider, model: Model, *, stream: bool) -> None:
        self.provider = provider
        self.agent = Agent(model, instructions="Be brief.")
        self.agent.tool_plain(self.add)
        self.sums = list[int]()
        #: Seconds that a request may take.
        self.patience = 30.0
        self._stream = stream

    def add(self, a: int, b: int) -> int:
        """Add two numbers."""
        self.sums.append(a + b)
        return a + b

    async def __call__(self, *replies: Reply, say: str = "go") -> AgentRunResult[str]:
        """One run over the given replies; after them every request gets ``AGAIN``."""
        self.provider.script = reply_in_sequence(replies, Text(AGAIN))
        async with asyncio.timeout(120):
            return await self.run(say)

    async def run(self, say: str, after: AgentRunResult[str] | None = None) -> AgentRunResult[str]:
        history = after.all_messages() if after else None
        limits = ModelSettings(timeout=self.patience)
        if not self._stream:
            return await self.agent.run(say, message_history=history, model_settings=limits)
        async with self.agent.iter(say, message_history=history, model_settings=limits) as run:
            async for node in run:
                if not Agent.is_model_request_node(node):
                    continue
                async with node.stream(run.ctx) as events:
                    _ = [event async for event in events]
        assert run.result is not None
        return run.result


def first_response(result: AgentRunResult[str]) -> ModelResponse:
    return next(m for m in result.all_messages() if isinstance(m, ModelResponse))


@pytest.fixture(params=["chat", "responses", "messages"])
def wire(request: pytest.FixtureRequest) -> str:
    return cast("str", request.param)


@pytest.fixture(params=[False, True], ids=["plain", "stream"])
def stream(request: pytest.FixtureRequest) -> bool:
    return cast("bool", request.param)


@pytest.fixture
async def ask(wire: str, stream: bool) -> AsyncIterator[Asker]:
    # The library by itself does not let the person and the model take turns.
    with FakeProvider(templates=False) as provider:
        if wire == "messages":
            async with AsyncAnthropic(
                base_url=provider.anthropic_url, api_key="x", max_retries=0
            ) as client:
                model = AnthropicModel("fake", provider=AnthropicProvider(anthropic_client=client))
                yield Asker(provider, model, stream=stream)
            return
        kind = OpenAIChatModel if wire == "chat" else OpenAIResponsesModel
        async with AsyncOpenAI(base_url=provider.openai_url, api_key="x", max_retries=0) as client:
            model = kind("fake", provider=OpenAIProvider(openai_client=client))
            yield Asker(provider, model, stream=stream)


# Good answers.


async def test_a_text_its_thinking_and_its_tokens_arrive(ask: Asker) -> None:
    result = await ask(Text("four", thinking="two and two", usage=ReplyUsage(50, 20, cached=30)))
    response = first_response(result)
    assert result.output == "four"
    assert [type(part) for part in response.parts] == [ThinkingPart, TextPart]
    assert isinstance(response.parts[0], ThinkingPart)
    assert response.parts[0].content == "two and two"
    assert response.finish_reason == "stop"
    usage = response.usage
    assert (usage.input_tokens, usage.output_tokens, usage.cache_read_tokens) == (50, 20, 30)


async def test_parallel_calls_run_and_their_results_are_accepted(ask: Asker) -> None:
    calls = [ScriptedCall("add", {"a": 1, "b": 2}), ScriptedCall("add", {"a": 30, "b": 4})]
    result = await ask(Calls(calls, text="let me see", thinking="sums"), Text("3 and 34"))
    parts = [p for p in first_response(result).parts if isinstance(p, ToolCallPart)]
    assert [part.args_as_dict() for part in parts] == [{"a": 1, "b": 2}, {"a": 30, "b": 4}]
    assert result.output == "3 and 34"
    first, second = ask.provider.wait_until_settled()
    assert first.call_ids == tuple(part.tool_call_id for part in parts)
    assert b"34" in second.body
    assert sorted(ask.sums) == [3, 34]
    assert [r.outcome for r in (first, second)] == ["answered", "answered"]


async def test_a_conversation_of_three_turns_is_remembered(ask: Asker) -> None:
    ask.provider.script = count_user_texts
    async with asyncio.timeout(120):
        one = await ask.run("a")
        two = await ask.run("b", one)
        three = await ask.run("c", two)
    assert three.output == "turn 3: I have seen: a | b | c"


async def test_an_answer_at_the_limit_of_tokens_says_so(ask: Asker) -> None:
    assert first_response(await ask(LengthStop())).finish_reason == "length"


# Failures that raise.


@pytest.mark.parametrize("kind", RAISED)
async def test_a_failure_raises_the_exception_of_its_kind(ask: Asker, kind: FailKind) -> None:
    with pytest.raises(ModelHTTPError) as caught:
        await ask(Fail(kind, retry_after=3))
    # Not `type() is`: the library raises a private class below both.
    assert isinstance(caught.value, RAISED[kind])
    assert caught.value.retry_after == 3
    assert len(ask.provider.requests) == 1


async def test_a_cut_socket_is_a_connection_error(ask: Asker) -> None:
    with pytest.raises(ModelConnectionError):
        await ask(CutStream(after=2))
    with pytest.raises(ModelConnectionError):
        await ask(CutStream(after=2, reply=Calls([ScriptedCall("add", {"a": 1, "b": 2})])))


async def test_a_provider_that_hangs_is_a_timeout(ask: Asker) -> None:
    ask.patience = 0.5
    with pytest.raises(ModelTimeoutError):
        await ask(Hang())
    assert [r.outcome for r in ask.provider.wait_until_settled()] == ["client_gone"]


async def test_an_overload_in_a_stream_is_an_overload(ask: Asker, stream: bool) -> None:
    with pytest.raises(ModelOverloadedError) as caught:
        await ask(StreamError("overloaded"))
    assert caught.value.in_stream == stream


async def test_the_page_of_a_proxy_is_a_server_error(ask: Asker) -> None:
    with pytest.raises(ModelServerError):
        await ask(Html(502))


async def test_the_page_of_a_portal_is_an_unexpected_answer(
    ask: Asker, wire: str, stream: bool
) -> None:
    plain = UnexpectedModelBehavior if wire == "chat" else ModelAPIError
    with pytest.raises(UnexpectedModelBehavior if stream else plain) as caught:
        await ask(Html(200))
    assert not isinstance(caught.value, ModelHTTPError)


# Failures that do not raise, or not always: the caller has to look.


async def test_no_choices_leak_an_index_error_or_are_asked_again(
    ask: Asker, wire: str, stream: bool
) -> None:
    if wire == "chat" and not stream:
        with pytest.raises(IndexError):
            await ask(EmptyChoices())
        return
    assert (await ask(EmptyChoices())).output == AGAIN


async def test_an_empty_text_is_asked_again_at_once(ask: Asker) -> None:
    for shape in ("null", "empty"):
        result = await ask(EmptyText(shape))
        assert result.output == AGAIN
        assert result.usage.requests == 2


async def test_a_blank_text_passes_for_an_answer(ask: Asker) -> None:
    assert (await ask(EmptyText("blank"))).output.strip() == ""


async def test_broken_arguments_and_unknown_tools_go_back_to_the_model(ask: Asker) -> None:
    for reply in (MalformedArguments("add"), UnknownTool()):
        result = await ask(reply)
        assert result.output == AGAIN
        assert result.usage.requests == 2


async def test_an_early_end_passes_for_a_whole_answer(ask: Asker, wire: str, stream: bool) -> None:
    result = await ask(EarlyEnd(after=2))
    response = first_response(result)
    assert result.output == ("one two t" if stream else "one two three four five six")
    assert response.finish_reason == ("stop" if wire == "chat" else None)


async def test_a_call_that_ended_early_does_not_run_but_is_asked_again(
    ask: Asker, stream: bool
) -> None:
    result = await ask(EarlyEnd(after=2, reply=Calls([ScriptedCall("add", {"a": 1, "b": 2})])))
    assert result.output == AGAIN
    assert ask.sums == ([] if stream else [3])
