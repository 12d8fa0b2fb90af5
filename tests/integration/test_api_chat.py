"""Chat completions with the conversation named in a header, through the official client."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING

import openai
import pytest

from clew.core.entry import EntryKind
from clew.testing import (
    Calls,
    CutStream,
    Fail,
    FakeProvider,
    ScriptedCall,
    Text,
    count_user_texts,
    reply_by_user_text,
    reply_in_sequence,
)
from tests.integration.api_server import always, events_of, running, settings_for

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterator
    from pathlib import Path

    from openai.types.chat import ChatCompletionUserMessageParam

    from clew.testing import CapturedRequest
    from tests.integration.api_server import Server

NAMED = {"X-Clew-Conversation": "talk"}


@pytest.fixture
def provider() -> Iterator[FakeProvider]:
    with FakeProvider(count_user_texts) as fake:
        yield fake


@pytest.fixture
async def server(tmp_path: Path, provider: FakeProvider) -> AsyncGenerator[Server]:
    async with running(settings_for(tmp_path, provider=provider)) as found:
        yield found


async def ask(client: openai.AsyncOpenAI, text: str, *, stream: bool) -> str:
    said: ChatCompletionUserMessageParam = {"role": "user", "content": text}
    completions = client.chat.completions
    if not stream:
        answer = await completions.create(model="clew", messages=[said], extra_headers=NAMED)
        return answer.choices[0].message.content or ""
    pieces = await completions.create(
        model="clew", messages=[said], extra_headers=NAMED, stream=True
    )
    heard = [choice.delta.content or "" async for piece in pieces for choice in piece.choices]
    return "".join(heard)


def sent_messages(captured: CapturedRequest) -> bytes:
    """The messages of a request as they went over the wire, without the bracket that ends them."""
    body = captured.body.decode()
    start = body.index('"messages":') + len('"messages":')
    _, end = json.JSONDecoder().raw_decode(body, start)
    return body[start : end - 1].encode()


@pytest.mark.parametrize("stream", [False, True], ids=["plain", "streamed"])
async def test_three_turns_in_one_conversation_are_sent_exactly_once_with_the_same_prefix(
    store_url: str, tmp_path: Path, provider: FakeProvider, stream: bool
) -> None:
    async with (
        running(settings_for(tmp_path, provider=provider, store_url=store_url)) as server,
        server.openai() as client,
    ):
        answers = [await ask(client, text, stream=stream) for text in ("one", "two", "three")]
    assert answers == [
        "turn 1: I have seen: one",
        "turn 2: I have seen: one | two",
        "turn 3: I have seen: one | two | three",
    ]
    requests = provider.wait_until_settled()
    assert len(requests) == 3
    last = requests[2].json
    assert last is not None
    assert [(each["role"], each["content"]) for each in last["messages"]] == [
        ("user", "one"),
        ("assistant", answers[0]),
        ("user", "two"),
        ("assistant", answers[1]),
        ("user", "three"),
    ]
    wire = [sent_messages(each) for each in requests]
    assert wire[1].startswith(wire[0])
    assert wire[2].startswith(wire[1])


async def test_only_the_last_message_of_the_user_is_taken(
    server: Server, provider: FakeProvider
) -> None:
    sent = [
        {"role": "system", "content": "be brief"},
        {"role": "user", "content": "never said"},
        {"role": "assistant", "content": "never answered"},
        {"role": "user", "content": "this one"},
    ]
    answer = await server.http.post("/v1/chat/completions", json={"messages": sent}, headers=NAMED)
    assert answer.json()["choices"][0]["message"]["content"] == "turn 1: I have seen: this one"


async def test_a_plain_answer_names_conversation_session_and_turn(server: Server) -> None:
    answer = await server.say("hello")
    view = await server.engine.get_view(await server.engine.resolve_name("talk"))
    turn = (await server.engine.read_entries(view.conversation.id))[0].turn_id
    assert answer.headers["X-Clew-Conversation"] == view.conversation.id
    assert answer.headers["X-Clew-Session"] == view.conversation.head
    assert answer.headers["X-Clew-Turn"] == turn
    assert answer.json()["clew"] == {
        "conversation": view.conversation.id,
        "session": view.conversation.head,
        "turn": turn,
        "notices": [],
    }
    assert answer.json()["usage"]["total_tokens"] > 0


async def test_a_stream_names_them_at_its_begin_and_in_its_last_chunk(server: Server) -> None:
    async with server.openai() as client:
        raw = await client.chat.completions.with_raw_response.create(
            model="clew",
            messages=[{"role": "user", "content": "hello"}],
            stream=True,
            stream_options={"include_usage": True},
            extra_headers=NAMED,
        )
        chunks = [chunk async for chunk in raw.parse()]
    last = chunks[-1]
    assert last.usage is not None
    assert last.usage.total_tokens > 0
    assert last.model_extra is not None
    assert last.model_extra["clew"] == {
        "conversation": raw.headers["X-Clew-Conversation"],
        "session": raw.headers["X-Clew-Session"],
        "turn": raw.headers["X-Clew-Turn"],
        "notices": [],
    }
    assert [chunk.choices[0].finish_reason for chunk in chunks if chunk.choices][-1] == "stop"


@pytest.mark.parametrize("kind", ["conversation", "session", "route"])
async def test_a_conversation_continues_under_any_of_its_names(server: Server, kind: str) -> None:
    first = await server.say("one")
    name = {
        "conversation": first.headers["X-Clew-Conversation"],
        "session": first.headers["X-Clew-Session"],
        "route": "agent:main:local:talk",
    }[kind]
    again = await server.say("two", name)
    assert again.json()["choices"][0]["message"]["content"] == "turn 2: I have seen: one | two"


async def test_a_name_may_be_any_printable_text(server: Server) -> None:
    name = "Straße/naïve 🧵"
    answer = await server.http.post(
        "/v1/chat/completions",
        json={"messages": [{"role": "user", "content": "hi"}]},
        headers=[(b"X-Clew-Conversation", name.encode())],
    )
    assert answer.headers["X-Clew-Conversation"] == await server.engine.resolve_name(name)


async def test_an_id_of_nothing_is_not_found(server: Server) -> None:
    answer = await server.say("hello", "cnv_0123456789abcdef0123456789")
    assert (answer.status_code, answer.json()["error"]["code"]) == (404, "not_found")


@pytest.mark.parametrize("stream", [False, True], ids=["plain", "streamed"])
async def test_a_failure_of_the_provider_is_reported_once_and_not_repeated_by_the_client(
    server: Server, provider: FakeProvider, stream: bool
) -> None:
    provider.script = always(Fail("authentication"))
    async with server.openai(max_retries=2) as client:
        with pytest.raises(openai.InternalServerError) as failed:
            await ask(client, "hello", stream=stream)
    assert failed.value.status_code == 502
    assert failed.value.response.headers["x-should-retry"] == "false"
    assert failed.value.code == "authentication"
    assert "Incorrect API key" in failed.value.message
    entries = await server.engine.read_entries(await server.engine.resolve_name("talk"))
    # The entry in place of the answer has no text: only the model reads it.
    assert [each.text for each in entries if each.kind is EntryKind.MESSAGE] == ["hello", ""]


@pytest.mark.parametrize("stream", [False, True], ids=["plain", "streamed"])
async def test_a_context_that_is_too_long_is_the_clients_matter(
    server: Server, provider: FakeProvider, stream: bool
) -> None:
    provider.script = always(Fail("context_overflow"))
    async with server.openai() as client:
        with pytest.raises(openai.BadRequestError) as failed:
            await ask(client, "hello", stream=stream)
    assert failed.value.code == "context_length_exceeded"
    assert "/compact" in failed.value.message


async def test_a_passing_failure_is_not_seen_by_the_client(
    server: Server, provider: FakeProvider
) -> None:
    provider.script = reply_in_sequence([Fail("server"), CutStream(), Text("here it is")])
    async with server.openai() as client:
        assert await ask(client, "hello", stream=False) == "here it is"


async def test_an_attempt_that_fails_after_words_went_out_ends_the_stream_with_an_error(
    server: Server, provider: FakeProvider
) -> None:
    provider.script = reply_in_sequence(
        [CutStream(2, Text("half of it", chunks=4)), Text("the whole")]
    )
    answer = await server.http.post(
        "/v1/chat/completions",
        json={"stream": True, "messages": [{"role": "user", "content": "hello"}]},
        headers=NAMED,
    )
    events = events_of(answer.text)
    heard = "".join(each["choices"][0]["delta"].get("content", "") for each in events[:-1])
    assert events[-1]["error"]["code"] == "retracted"
    assert heard
    assert "half of it".startswith(heard)
    assert "[DONE]" not in answer.text
    # The turn goes on without its client.
    again = await server.say("and?")
    assert again.status_code == 200
    entries = await server.engine.read_entries(await server.engine.resolve_name("talk"))
    said = [each.text for each in entries if each.kind is EntryKind.MESSAGE]
    assert said[:2] == ["hello", "the whole"]


async def test_texts_beside_tool_calls_are_streamed_too(
    server: Server, provider: FakeProvider
) -> None:
    provider.script = reply_in_sequence(
        [Calls([ScriptedCall("nothing")], text="let me look"), Text("there is no such tool")]
    )
    async with server.openai() as client:
        heard = await ask(client, "hello", stream=True)
    assert heard == "let me look\n\nthere is no such tool"


async def test_a_message_in_mid_turn_is_refused_where_the_client_says_so(
    server: Server, provider: FakeProvider
) -> None:
    provider.script = reply_by_user_text({"slow": Text("done", chunks=4, delay=0.2)})
    slow = asyncio.create_task(server.say("slow"))
    await server.begun()
    refused = await server.say("quick", X_Clew_Double_Text="reject")
    assert (refused.status_code, refused.json()["error"]["code"]) == (409, "rejected")
    assert refused.headers["x-should-retry"] == "false"
    assert (await slow).status_code == 200


async def test_a_message_in_mid_turn_waits_for_its_own_turn(
    server: Server, provider: FakeProvider
) -> None:
    provider.script = reply_by_user_text(
        {"slow": Text("done", chunks=4, delay=0.05)}, count_user_texts
    )
    slow = asyncio.create_task(server.say("slow"))
    await server.begun()
    second = await server.say("second")
    assert second.json()["choices"][0]["message"]["content"].endswith("slow | second")
    assert (await slow).json()["choices"][0]["message"]["content"] == "done"


@pytest.mark.parametrize("stream", [False, True], ids=["plain", "streamed"])
async def test_a_stopped_turn_has_no_answer(
    server: Server, provider: FakeProvider, stream: bool
) -> None:
    provider.script = always(Text("never to be heard in full", chunks=20, delay=0.2))
    async with server.openai() as client:
        asked = asyncio.create_task(ask(client, "hello", stream=stream))
        await server.begun()
        await server.engine.request_stop(await server.engine.resolve_name("talk"))
        with pytest.raises(openai.APIError) as failed:
            await asked
    assert failed.value.code == "cancelled"
