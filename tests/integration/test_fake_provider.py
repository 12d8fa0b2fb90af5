"""The fake provider, as the official clients of OpenAI and Anthropic see it."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Literal, cast

import anthropic
import openai
import pytest

from clew.testing.provider import (
    Calls,
    CutStream,
    EarlyEnd,
    EmptyChoices,
    EmptyText,
    Endless,
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
    Slow,
    StreamError,
    Text,
    UnknownTool,
    echo,
    reply_in_sequence,
    with_context_window,
)
from tests.integration.provider_clients import Heard, anthropic_client, ask, openai_client

if TYPE_CHECKING:
    from collections.abc import Iterator

FORMATS = ["chat", "responses", "messages"]
FINISH = {
    "chat": {"stop": "stop", "length": "length", "tools": "tool_calls"},
    "responses": {"stop": "completed", "length": "incomplete", "tools": "completed"},
    "messages": {"stop": "end_turn", "length": "max_tokens", "tools": "tool_use"},
}
#: The status of each kind of failure; anthropic answers an empty account with 400.
STATUS: dict[FailKind, int] = {
    "rate_limit": 429,
    "quota": 429,
    "authentication": 401,
    "payment": 402,
    "unknown_model": 404,
    "too_large": 413,
    "context_overflow": 400,
    "bad_tool_call": 400,
    "server": 500,
    "unavailable": 503,
    "overloaded": 529,
}
RAISED = {
    400: "BadRequestError",
    401: "AuthenticationError",
    404: "NotFoundError",
    429: "RateLimitError",
}


@pytest.fixture(params=FORMATS)
def wire(request: pytest.FixtureRequest) -> str:
    return cast("str", request.param)


@pytest.fixture(params=[False, True], ids=["plain", "stream"])
def stream(request: pytest.FixtureRequest) -> bool:
    return cast("bool", request.param)


@pytest.fixture
def provider() -> Iterator[FakeProvider]:
    with FakeProvider() as running:
        yield running


def answers(provider: FakeProvider, *replies: Reply) -> None:
    provider.script = reply_in_sequence(replies)


# Good answers.


def test_a_text_arrives_whole_with_its_finish_reason_and_tokens(
    provider: FakeProvider, wire: str, stream: bool
) -> None:
    heard = ask(provider, wire, stream=stream, say="héllo wörld, 你好 🙂")
    assert heard == Heard(
        text="echo: héllo wörld, 你好 🙂",
        finish=FINISH[wire]["stop"],
        tokens=(4, 6, 0),
    )


def test_the_tokens_of_a_script_arrive_with_the_cached_ones_apart(
    provider: FakeProvider, wire: str, stream: bool
) -> None:
    answers(provider, Text("hi", usage=ReplyUsage(1200, 34, cached=1000)))
    assert ask(provider, wire, stream=stream).tokens == (200, 34, 1000)


def test_thinking_arrives_apart_from_the_text(
    provider: FakeProvider, wire: str, stream: bool
) -> None:
    answers(provider, Text("four", thinking="two and two", chunks=4))
    heard = ask(provider, wire, stream=stream)
    assert (heard.thinking, heard.text) == ("two and two", "four")


def test_parallel_calls_arrive_in_order_with_ids_of_their_own(
    provider: FakeProvider, wire: str, stream: bool
) -> None:
    calls = [
        ScriptedCall("add", {"a": 1, "b": 2}),
        ScriptedCall("add", {"a": 3}),
        ScriptedCall("now", id="mine"),
    ]
    answers(provider, Calls(calls, text="let me see", chunks=5))
    heard = ask(provider, wire, stream=stream)
    assert heard.text == "let me see"
    assert [call[1:] for call in heard.calls] == [
        ("add", {"a": 1, "b": 2}),
        ("add", {"a": 3}),
        ("now", {}),
    ]
    assert len({call[0] for call in heard.calls}) == 3
    assert heard.calls[2][0] == "mine"
    assert heard.finish == FINISH[wire]["tools"]


def test_call_ids_never_repeat_within_a_server(
    provider: FakeProvider, wire: str, stream: bool
) -> None:
    answers(provider, *[Calls([ScriptedCall("add"), ScriptedCall("add")])] * 3)
    heard = [ask(provider, wire, stream=stream) for _ in range(3)]
    assert len({call[0] for one in heard for call in one.calls}) == 6


def test_a_text_of_many_chunks_loses_nothing(provider: FakeProvider, wire: str) -> None:
    text = "".join(f"{n} " for n in range(3000))
    answers(provider, Text(text, chunks=1000))
    assert ask(provider, wire, stream=True).text == text


def test_a_delay_is_kept_before_each_chunk(provider: FakeProvider, wire: str) -> None:
    answers(provider, Text("abcd", chunks=4, delay=0.02))
    started = time.monotonic()
    assert ask(provider, wire, stream=True).text == "abcd"
    assert time.monotonic() - started >= 0.08


def test_a_slow_reply_comes_late_but_whole(provider: FakeProvider, wire: str, stream: bool) -> None:
    answers(provider, Slow(Text("late"), seconds=0.1))
    started = time.monotonic()
    assert ask(provider, wire, stream=stream).text == "late"
    assert time.monotonic() - started >= 0.1


def test_equal_scripts_give_equal_answers(wire: str, stream: bool) -> None:
    script = reply_in_sequence([Calls([ScriptedCall("add")], thinking="hm"), Text("x")])
    heard = list[Heard]()
    for _ in range(2):
        with FakeProvider(script) as provider:
            provider.script = reply_in_sequence(
                [Calls([ScriptedCall("add")], thinking="hm"), Text("x")]
            )
            heard += [ask(provider, wire, stream=stream) for _ in range(2)]
    assert heard[:2] == heard[2:]


def test_both_clients_can_list_the_models(provider: FakeProvider) -> None:
    with openai_client(provider) as one, anthropic_client(provider) as other:
        assert [model.id for model in one.models.list()] == ["fake-model"]
        assert [model.id for model in other.models.list()] == ["fake-model"]


# Failures.


@pytest.mark.parametrize("kind", STATUS)
def test_a_failure_has_the_status_and_the_exception_of_its_kind(
    provider: FakeProvider, wire: str, stream: bool, kind: FailKind
) -> None:
    answers(provider, Fail(kind, retry_after=7))
    sdk = anthropic if wire == "messages" else openai
    with pytest.raises(sdk.APIStatusError) as caught:
        ask(provider, wire, stream=stream)
    status = 400 if (kind, wire) == ("quota", "messages") else STATUS[kind]
    assert caught.value.status_code == status
    assert caught.value.response.headers["retry-after"] == "7"
    assert type(caught.value).__name__ == RAISED.get(status, type(caught.value).__name__)
    assert [r.outcome for r in provider.wait_until_settled()] == ["answered"]


@pytest.mark.parametrize(
    ("kind", "code"),
    [
        ("rate_limit", "rate_limit_exceeded"),
        ("quota", "insufficient_quota"),
        ("authentication", "invalid_api_key"),
        ("unknown_model", "model_not_found"),
        ("context_overflow", "context_length_exceeded"),
    ],
)
def test_an_openai_failure_carries_its_code(
    provider: FakeProvider, kind: FailKind, code: str
) -> None:
    answers(provider, Fail(kind))
    with pytest.raises(openai.APIStatusError) as caught:
        ask(provider, "chat", stream=False)
    assert caught.value.code == code


def test_a_failure_can_be_given_its_own_status_and_body(provider: FakeProvider) -> None:
    answers(provider, Fail(status=418, body={"error": {"message": "teapot"}}))
    with pytest.raises(openai.APIStatusError, match="teapot") as caught:
        ask(provider, "chat", stream=False)
    assert caught.value.status_code == 418


def test_a_context_window_overflows_with_both_numbers_told(
    provider: FakeProvider, wire: str, stream: bool
) -> None:
    provider.script = with_context_window(100, echo)
    assert ask(provider, wire, stream=stream, say="x" * 400).text.startswith("echo: xxx")
    sdk = anthropic if wire == "messages" else openai
    with pytest.raises(sdk.BadRequestError, match=r"101 tokens|100 tokens.* 101 tokens"):
        ask(provider, wire, stream=stream, say="x" * 404)


@pytest.mark.parametrize("status", [200, 502])
def test_a_web_page_is_no_answer(
    provider: FakeProvider, wire: str, stream: bool, status: int
) -> None:
    answers(provider, Html(status))
    if status == 502:
        with pytest.raises((openai.InternalServerError, anthropic.InternalServerError)):
            ask(provider, wire, stream=stream)
    else:
        # The clients do not look: plain they give the page as a string, streamed nothing at all.
        with pytest.raises((AttributeError, AssertionError, RuntimeError)):
            ask(provider, wire, stream=stream)


def test_a_cut_socket_is_a_connection_error(
    provider: FakeProvider, wire: str, stream: bool
) -> None:
    answers(
        provider,
        CutStream(after=2),
        CutStream(after=2, reply=Calls([ScriptedCall("add", {"a": 1})])),
    )
    for _ in range(2):
        with pytest.raises(Exception, match=r"Connection error|peer closed connection"):
            ask(provider, wire, stream=stream)
    assert [r.outcome for r in provider.wait_until_settled()] == ["cut", "cut"]


@pytest.mark.parametrize("after", [0, 1, 3, 99])
def test_a_stream_that_ends_early_has_said_so_many_chunks_and_no_finish(
    provider: FakeProvider, after: int
) -> None:
    answers(provider, EarlyEnd(after, Text("abcdef", chunks=6)))
    with openai_client(provider) as client:
        chunks = list(
            client.chat.completions.create(
                model="m", messages=[{"role": "user", "content": "go"}], stream=True
            )
        )
    texts = [chunk.choices[0].delta.content for chunk in chunks]
    assert "".join(text or "" for text in texts) == "abcdef"[:after]
    assert not any(chunk.choices[0].finish_reason for chunk in chunks)


def test_an_early_end_without_streaming_is_an_answer_without_a_finish(
    provider: FakeProvider, wire: str
) -> None:
    answers(provider, EarlyEnd(reply=Text("half a")))
    heard = ask(provider, wire, stream=False)
    assert heard.text == "half a"
    assert heard.finish in {None, "in_progress"}


def test_an_early_end_of_a_stream_leaves_the_client_without_an_end(
    provider: FakeProvider,
) -> None:
    answers(provider, EarlyEnd(2), EarlyEnd(2))
    with pytest.raises(RuntimeError, match=r"response\.completed"):
        ask(provider, "responses", stream=True)
    assert ask(provider, "messages", stream=True).finish is None


def test_an_error_in_a_stream_is_raised(provider: FakeProvider, wire: str) -> None:
    answers(provider, StreamError("overloaded"))
    with pytest.raises((openai.APIError, anthropic.APIStatusError, RuntimeError)):
        ask(provider, wire, stream=True)


def test_a_provider_that_hangs_runs_into_the_time_limit(
    provider: FakeProvider, wire: str, stream: bool
) -> None:
    answers(provider, Hang())
    with pytest.raises((openai.APITimeoutError, anthropic.APITimeoutError)):
        ask(provider, wire, stream=stream, timeout=0.1)
    assert [r.outcome for r in provider.wait_until_settled()] == ["client_gone"]


def test_an_endless_stream_continues_until_the_client_leaves(provider: FakeProvider) -> None:
    answers(provider, Endless(interval=0.001))
    with (
        openai_client(provider) as client,
        client.chat.completions.create(
            model="m", messages=[{"role": "user", "content": "go"}], stream=True
        ) as chunks,
    ):
        heard = [next(chunks).choices[0].delta.content for _ in range(50)]
    assert "".join(text or "" for text in heard).startswith("again again")
    assert [r.outcome for r in provider.wait_until_settled()] == ["client_gone"]


def test_an_endless_body_never_becomes_an_answer(provider: FakeProvider, wire: str) -> None:
    answers(provider, Endless(interval=0.01, limit=20))
    with pytest.raises((openai.APIConnectionError, anthropic.APIConnectionError)):
        ask(provider, wire, stream=False)


def test_no_choices_means_no_content(provider: FakeProvider, stream: bool) -> None:
    answers(provider, EmptyChoices(), EmptyChoices())
    assert ask(provider, "responses", stream=stream).text == ""
    assert ask(provider, "messages", stream=stream).text == ""
    provider.script = reply_in_sequence([EmptyChoices()])
    with pytest.raises((IndexError, AssertionError)):
        ask(provider, "chat", stream=stream)


@pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")
@pytest.mark.parametrize("shape", ["null", "list", "empty", "blank"])
def test_an_empty_text_is_empty_in_every_shape(
    provider: FakeProvider,
    wire: str,
    stream: bool,
    shape: Literal["null", "list", "empty", "blank"],
) -> None:
    answers(provider, EmptyText(shape))
    heard = ask(provider, wire, stream=stream)
    assert not heard.text or not heard.text.strip()
    assert (heard.calls, heard.finish) == ((), FINISH[wire]["stop"])


def test_broken_arguments_arrive_broken(provider: FakeProvider) -> None:
    answers(provider, *[MalformedArguments("add", '{"a": ')] * 3)
    assert ask(provider, "chat", stream=False).calls[0][1:] == ("add", '{"a": ')
    assert ask(provider, "responses", stream=True).calls[0][1:] == ("add", '{"a": ')
    assert ask(provider, "messages", stream=False).calls[0][1:] == ("add", '{"a": ')


def test_an_unknown_tool_can_be_called(provider: FakeProvider, wire: str, stream: bool) -> None:
    answers(provider, UnknownTool())
    assert ask(provider, wire, stream=stream).calls[0][1:] == ("no_such_tool", {})


def test_an_answer_at_the_limit_of_tokens_says_so(provider: FakeProvider, wire: str) -> None:
    answers(provider, LengthStop("and then"), LengthStop("and then"))
    assert ask(provider, wire, stream=False).finish == FINISH[wire]["length"]
    if wire == "messages":
        assert ask(provider, wire, stream=True).finish == FINISH[wire]["length"]
        return
    # The streaming helpers of the client take it for a failure.
    with pytest.raises((openai.LengthFinishReasonError, RuntimeError)):
        ask(provider, wire, stream=True)
