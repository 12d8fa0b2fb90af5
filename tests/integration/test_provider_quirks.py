"""Every quirk of a provider, byte by byte, under the real client libraries."""

from __future__ import annotations

import asyncio
import functools
import json
from typing import TYPE_CHECKING, Any

import httpx2
import pytest
from pydantic_ai.direct import model_request, model_request_stream
from pydantic_ai.exceptions import ModelHTTPError
from pydantic_ai.messages import (
    ModelRequest,
    ModelResponse,
    PartDeltaEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
    ThinkingPart,
    ToolCallPart,
)
from structlog.testing import capture_logs

from clew.agent.loop import raise_if_incomplete, separate_thinking
from clew.agent.messages import extract_text
from clew.agent.models import ModelSpec, build_model
from clew.agent.provider_errors import TRANSIENT_KINDS, FailureKind, classify_error
from clew.agent.tolerant import unknowns
from clew.agent.tolerant.client import TolerantClient
from clew.core.events import Retracted
from clew.engine.compaction_planner import CompactionPolicy
from clew.testing.provider import ProviderRequest, Raw, Reply, ReplyUsage, Text, chat_format
from clew.testing.provider.quirks import QUIRKS, QuirkCase, build_cases
from clew.testing.provider.quirks.quirk import (
    TEXT_REPLY,
    build_json_body,
    build_stream_body,
    render_events,
)
from tests.failing.desk import always, open_desk

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from pydantic_ai.models import Model

    from clew.testing.provider.quirks.quirk import ReplyBody

_NAMES = {"chat": "openai-chat", "responses": "openai", "messages": "anthropic"}
REPLY = chat_format.render_body(TEXT_REPLY)
ASKED = [ModelRequest.user_text_prompt("What is the answer?")]


class _Sent(httpx2.AsyncByteStream):
    def __init__(self, body: ReplyBody) -> None:
        self._body = body

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for piece in self._body.pieces:
            yield piece
        if self._body.after == "drop":
            raise httpx2.ReadError("the connection broke")
        if self._body.after == "hang":
            await asyncio.Event().wait()


class Server:
    """Answers each request with the same bytes, and counts the requests."""

    def __init__(self, body: ReplyBody) -> None:
        self._body = body
        self.requests: list[dict[str, Any]] = []

    async def answer(self, request: httpx2.Request) -> httpx2.Response:
        self.requests.append(json.loads(await request.aread()))
        kind = {} if self._body.kind is None else {"content-type": self._body.kind}
        headers = {**kind, **self._body.headers}
        return httpx2.Response(self._body.status, headers=headers, stream=_Sent(self._body))


class Hasty(TolerantClient):
    tail_timeout = 0.01


@functools.cache
def _model(form: str) -> Model:
    name = f"{_NAMES[form]}:fake-model"
    return build_model(ModelSpec(name=name, base_url="http://quirky.test/v1", api_key="secret"))


def model_over(form: str, http: httpx2.AsyncClient) -> Any:
    """The model of a format, asked over this client."""
    model: Any = _model(form)
    kind = "anthropic" if form == "messages" else "openai"
    provider = type(model.provider)(**{f"{kind}_client": model.client.copy(http_client=http)})
    return type(model)(model.model_name, provider=provider, profile=model.profile)


async def ask(model: Any, *, stream: bool, settings: Any = None) -> ModelResponse:
    """The response, as a turn of the loop would have it."""
    if not stream:
        response = await model_request(model, ASKED, model_settings=settings)
    else:
        async with model_request_stream(model, ASKED, model_settings=settings) as events:
            async for _ in events:
                pass
            response = events.get()
    raise_if_incomplete(response)
    separate_thinking(response)
    return response


@pytest.mark.parametrize("case", build_cases(QUIRKS), ids=lambda case: case.id)
async def test_a_reply_with_a_quirk_is_read_with_one_request(case: QuirkCase) -> None:
    quirk, server = case.quirk, Server(case.body)
    async with Hasty(transport=httpx2.MockTransport(server.answer)) as http:
        model = model_over(case.format, http)
        if quirk.failure is not None:
            with pytest.raises(Exception) as caught:  # noqa: PT011  (each library has its own)
                await ask(model, stream=case.stream)
            failure = classify_error(caught.value)
            kind, words = quirk.failure
            assert (failure.kind.value, words in failure.text) == (kind, True), failure
        else:
            check(await ask(model, stream=case.stream), case)
    assert len(server.requests) == 1


def check(response: ModelResponse, case: QuirkCase) -> None:
    """Return whether a response has the content of the quirky reply."""
    quirk = case.quirk
    answer = quirk.reply
    thinking = "".join(p.content for p in response.parts if isinstance(p, ThinkingPart))
    calls = [
        (part.tool_name, json.loads(part.args_as_json_str()))
        for part in response.parts
        if isinstance(part, ToolCallPart)
    ]
    expected = quirk.calls
    if expected is None:
        expected = tuple((call.name, json.loads(call.arguments)) for call in answer.calls)
    assert extract_text(response) == (answer.text if quirk.text is None else quirk.text)
    assert thinking == (quirk.thinking or answer.thinking or "")
    assert calls == list(expected)
    ids = [part.tool_call_id for part in response.parts if isinstance(part, ToolCallPart)]
    assert all(ids)
    assert len(set(ids)) == len(ids)
    assert response.finish_reason is not None
    if quirk.finish is not None:
        assert response.finish_reason == quirk.finish
    assert (response.usage.input_tokens, response.usage.output_tokens) == quirk.usage


# Invalid and incomplete replies


CUT = [
    case
    for case in build_cases(QUIRKS)
    if case.quirk.id in ("plain", "plain-calls") and case.stream
]


@pytest.mark.parametrize("case", CUT, ids=lambda case: case.id)
@pytest.mark.parametrize("after", ["end", "drop"])
async def test_a_stream_that_was_cut_is_no_reply(case: QuirkCase, after: str) -> None:
    for kept in range(1, len(case.body.pieces)):
        pieces = case.body.pieces[:kept]
        if _says_why_it_ends(pieces[-1]) or _says_why_it_ends(b"".join(pieces[-2:])):
            continue
        server = Server(case.body._replace(pieces=pieces, after=after))
        async with Hasty(transport=httpx2.MockTransport(server.answer)) as http:
            with pytest.raises(Exception) as caught:  # noqa: PT011  (each library has its own)
                await ask(model_over(case.format, http), stream=True)
        assert classify_error(caught.value).kind in TRANSIENT_KINDS, kept


def _says_why_it_ends(piece: bytes) -> bool:
    ends = (b'"finish_reason": "', b'"stop_reason": "', b"response.completed")
    return any(end in piece for end in ends)


@pytest.mark.parametrize("form", ["chat", "responses", "messages"])
async def test_a_stream_that_answers_a_plain_request_and_was_cut_is_no_reply(form: Any) -> None:
    body = build_stream_body(render_events(form, TEXT_REPLY)[:4])
    async with Hasty(transport=httpx2.MockTransport(Server(body).answer)) as http:
        with pytest.raises(Exception) as caught:  # noqa: PT011  (each library has its own)
            await ask(model_over(form, http), stream=False)
    assert classify_error(caught.value).kind is FailureKind.CONNECTION


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("option", ["stream_options", "max_completion_tokens"])
async def test_an_option_that_a_server_refuses_is_left_out_from_then_on(
    option: str, stream: bool
) -> None:
    good = Server(
        next(c.body for c in CUT if c.format == "chat") if stream else build_json_body(REPLY)
    )

    async def answer(request: httpx2.Request) -> httpx2.Response:
        asked = json.loads(await request.aread())
        if option in asked:
            good.requests.append(asked)
            words = {"message": f"Unrecognized request argument supplied: {option}"}
            return httpx2.Response(400, json={"error": words})
        return await good.answer(request)

    async with Hasty(transport=httpx2.MockTransport(answer)) as http:
        model = model_over("chat", http)
        for _ in range(2):
            response = await ask(model, stream=stream, settings={"max_tokens": 16})
            assert extract_text(response) == TEXT_REPLY.text
    refused = [option in request for request in good.requests]
    asked = stream or option == "max_completion_tokens"
    assert refused == ([True, False, False] if asked else [False, False])
    if option == "max_completion_tokens":
        assert [request.get("max_tokens") for request in good.requests] == [None, 16, 16]


async def test_other_refusals_are_reported_unchanged() -> None:
    words = {"error": {"message": "stream must be false, said the server"}}
    server = Server(build_json_body(words, status=400))
    async with Hasty(transport=httpx2.MockTransport(server.answer)) as http:
        with pytest.raises(ModelHTTPError, match="said the server"):
            await ask(model_over("chat", http), stream=True)
    assert len(server.requests) == 1


async def test_a_server_that_thinks_first_is_known_after_its_first_reply() -> None:
    case = next(c for c in build_cases(QUIRKS) if c.id == "think-close-alone-chat-streamed")
    async with Hasty(transport=httpx2.MockTransport(Server(case.body).answer)) as http:
        model = model_over("chat", http)
        assert await shown(model) == case.quirk.reply.text
        assert await shown(model) == "It is 42."


async def test_a_server_that_thought_first_once_may_answer_at_once() -> None:
    pieces = [
        next(c.body for c in build_cases(QUIRKS) if c.id == f"{name}-chat-streamed")
        for name in ("think-close-alone", "plain")
    ]
    servers = iter([Server(body) for body in pieces])

    async def answer(request: httpx2.Request) -> httpx2.Response:
        return await next(servers).answer(request)

    async with Hasty(transport=httpx2.MockTransport(answer)) as http:
        model = model_over("chat", http)
        await ask(model, stream=True)
        assert extract_text(await ask(model, stream=True)) == TEXT_REPLY.text


async def shown(model: Any) -> str:
    """Return the text of a reply as a person sees it during streaming."""
    text = ""
    async with model_request_stream(model, ASKED) as events:
        async for event in events:
            match event:
                case PartStartEvent(part=TextPart(content=more)):
                    text += more
                case PartDeltaEvent(delta=TextPartDelta(content_delta=more)):
                    text += more
                case _:
                    pass
    return text


async def test_an_unknown_event_is_logged_once() -> None:
    case = next(c for c in build_cases(QUIRKS) if c.id == "unknown-events-responses-streamed")
    unknowns._seen.clear()  # pyright: ignore[reportPrivateUsage]  (kept for the process)
    async with Hasty(transport=httpx2.MockTransport(Server(case.body).answer)) as http:
        with capture_logs() as logs:
            for _ in range(2):
                await ask(model_over(case.format, http), stream=True)
    unknown = [log for log in logs if log["event"] == "provider_sent_unknown"]
    assert [(log["kind"], log["name"]) for log in unknown] == [("event", "x.progress")]


def test_there_are_quirks_enough_of_each_format() -> None:
    assert len(QUIRKS) >= 60
    found = build_cases(QUIRKS)
    for form in ("chat", "responses", "messages"):
        for stream in (True, False):
            assert sum(case.format == form and case.stream == stream for case in found) >= 40
    assert len({case.id for case in found}) == len(found)


# Through an engine, over HTTP


THROUGH = [
    case
    for case in build_cases(QUIRKS)
    if case.stream and case.quirk.id in ("comment-after-id", "pair-in-two", "think-tags")
]


@pytest.mark.parametrize("form", ["chat", "responses", "messages"])
async def test_a_turn_reads_quirky_streams_with_one_request_each(tmp_path: Path, form: Any) -> None:
    async with open_desk(tmp_path, form) as desk:
        talk = await desk.begin()
        for case in [case for case in THROUGH if case.format == form]:
            desk.play(always(Raw(case.body.pieces)))
            told = await desk.say(talk, "What is the answer?", stream=True)
            text = case.quirk.reply.text if case.quirk.text is None else case.quirk.text
            assert (told.text, told.asked) == (text, [1])
            assert told.attempts == []


@pytest.mark.parametrize("form", ["chat", "responses", "messages"])
async def test_thinking_that_was_shown_as_text_is_taken_back(tmp_path: Path, form: Any) -> None:
    case = next(c for c in build_cases(QUIRKS) if c.id == f"think-close-alone-{form}-streamed")
    async with open_desk(tmp_path, form) as desk:
        talk = await desk.begin()
        desk.play(always(Raw(case.body.pieces)))
        first = await desk.say(talk, "What is the answer?", stream=True)
        assert (first.text, first.asked) == ("It is 42.", [1])
        assert any(isinstance(event, Retracted) for event in first.events)
        second = await desk.say(talk, "What is the answer?", stream=True)
        assert (second.text, second.asked) == ("It is 42.", [1])
        assert not any(isinstance(event, Retracted) for event in second.events)


@pytest.mark.parametrize(
    ("told", "compacts"), [(ReplyUsage(1, 1), True), (ReplyUsage(900_000, 1), False)]
)
async def test_a_count_that_cannot_be_true_decides_nothing(
    tmp_path: Path, told: ReplyUsage, compacts: bool
) -> None:
    def plays(request: ProviderRequest) -> Reply:
        summary = "## Intent\nThe person talks about boats.\n" + "It was said. " * 30
        if "## Intent" in request.last_user_text:
            return Text(summary)
        return Text("an answer", usage=told)

    async with open_desk(tmp_path, "chat", policy=CompactionPolicy(window=6_000)) as desk:
        talk = await desk.begin()
        desk.play(plays)
        for n in range(6):
            await desk.say(talk, f"boat {n}: " + "it sails. " * (400 if compacts else 4))
        summaries = [r for r in desk.provider.requests if b"## Key decisions" in r.body]
        assert bool(summaries) is compacts
