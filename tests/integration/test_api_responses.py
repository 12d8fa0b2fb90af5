"""Responses and conversations, as the official client of OpenAI asks for them."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import openai
import pytest
from openai.types.conversations import Conversation
from openai.types.responses import Response

from clew.testing import Fail, FakeProvider, Hang, Text, count_user_texts
from tests.integration.api_server import (
    TOKEN,
    always,
    events_of,
    running,
    settings_for,
    until,
)

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterator
    from pathlib import Path

    from openai.types.responses import ResponseStreamEvent

    from tests.integration.api_server import Server

#: A dot.
PICTURE = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9"
    "awAAAABJRU5ErkJggg=="
)
SEEN = "I have seen: hello"
FIRST = f"turn 1: {SEEN}"


@pytest.fixture
def provider() -> Iterator[FakeProvider]:
    with FakeProvider(count_user_texts) as fake:
        yield fake


@pytest.fixture
async def server(store_url: str, tmp_path: Path, provider: FakeProvider) -> AsyncGenerator[Server]:
    settings = settings_for(tmp_path, provider=provider, store_url=store_url)
    async with running(settings) as found:
        yield found


async def test_the_official_client_gets_a_response_and_continues_after_it(server: Server) -> None:
    async with server.openai() as client:
        first = await client.responses.create(
            model="clew", input="hello", instructions="Be brief.", metadata={"who": "me"}
        )
        Response.model_validate(first.model_dump(), strict=False)
        assert (first.status, first.output_text) == ("completed", FIRST)
        assert (first.metadata, first.instructions) == ({"who": "me"}, "Be brief.")
        assert first.usage is not None
        assert first.usage.total_tokens > 0
        second = await client.responses.create(input="again", previous_response_id=first.id)
        assert second.output_text == "turn 2: I have seen: hello | again"
        assert second.conversation == first.conversation
        kept = await client.responses.retrieve(second.id)
        assert kept.model_dump() == second.model_dump()
        (said,) = (await client.responses.input_items.list(second.id)).data
        assert said.model_dump()["content"][0]["text"] == "again"
        await client.responses.delete(second.id)
        with pytest.raises(openai.NotFoundError):
            await client.responses.retrieve(second.id)


async def test_the_synchronous_client_uses_every_method(server: Server) -> None:
    await asyncio.to_thread(_use_every_method, f"{server.url}/v1")


def _use_every_method(url: str) -> None:
    with openai.OpenAI(base_url=url, api_key=TOKEN, timeout=60, max_retries=0) as client:
        talk = client.conversations.create(metadata={"who": "me"})
        first = client.responses.create(input="hello", conversation=talk.id)
        assert first.output_text == FIRST
        with client.responses.stream(model="clew", input="again", conversation=talk.id) as stream:
            numbers = [event.sequence_number for event in stream]
            assert stream.get_final_response().output_text == f"turn 2: {SEEN} | again"
        assert numbers == sorted(set(numbers))
        rest = client.responses.retrieve(first.id, stream=True, starting_after=2)
        assert [event.type for event in rest][-1] == "response.completed"
        later = client.responses.create(input="later", background=True, conversation=talk.id)
        assert client.responses.cancel(later.id).id == later.id
        assert client.responses.retrieve(first.id).output_text == FIRST
        assert len(client.responses.input_items.list(first.id).data) == 1
        assert client.conversations.update(talk.id, metadata={"who": "you"}).id == talk.id
        assert client.conversations.retrieve(talk.id).metadata == {"who": "you"}
        one, *_ = client.conversations.items.list(talk.id, order="asc")
        assert client.conversations.items.retrieve(one.id or "", conversation_id=talk.id) == one
        with pytest.raises(openai.BadRequestError, match="only grows"):
            client.conversations.items.create(talk.id, items=[{"role": "user", "content": "x"}])
        with pytest.raises(openai.BadRequestError, match="only grows"):
            client.conversations.items.delete(one.id or "", conversation_id=talk.id)
        client.responses.delete(first.id)
        assert client.conversations.delete(talk.id).deleted


async def test_a_response_after_an_earlier_one_than_the_last_opens_a_branch(
    server: Server,
) -> None:
    async with server.openai() as client:
        first = await client.responses.create(input="one")
        second = await client.responses.create(input="two", previous_response_id=first.id)
        branch = await client.responses.create(input="other", previous_response_id=first.id)
        assert second.output_text == "turn 2: I have seen: one | two"
        assert branch.output_text == "turn 2: I have seen: one | other"
        assert branch.conversation != second.conversation
        third = await client.responses.create(input="three", previous_response_id=second.id)
        assert third.output_text == "turn 3: I have seen: one | two | three"
        assert third.conversation == second.conversation


async def test_a_stream_is_the_same_from_any_of_its_events_on(server: Server) -> None:
    async with server.openai() as client:
        stream = await client.responses.create(input="hello", stream=True)
        events = [event async for event in stream]
        numbers = [event.sequence_number for event in events]
        assert numbers == sorted(set(numbers))
        last = events[-1]
        assert last.type == "response.completed"
        assert text_of(events) == last.response.output_text == FIRST
        for after in numbers[:-1]:
            again = await client.responses.retrieve(
                last.response.id, stream=True, starting_after=after
            )
            rest = [event async for event in again]
            received = [event for event in events if event.sequence_number <= after]
            assert all(event.sequence_number > after for event in rest)
            assert text_of(received) + text_of(rest) == FIRST
            assert rest[-1] == last


def text_of(events: list[ResponseStreamEvent]) -> str:
    return "".join(one.delta for one in events if one.type == "response.output_text.delta")


async def test_a_stream_goes_on_after_a_restart_without_a_gap_or_a_repeat(
    tmp_path: Path, provider: FakeProvider
) -> None:
    words = " ".join(f"word{number}" for number in range(40))
    provider.script = always(Text(words, chunks=40, delay=0.02))
    settings = settings_for(tmp_path, provider=provider)
    received: list[ResponseStreamEvent] = []
    async with running(settings) as server, server.openai() as client:
        stream = await client.responses.create(input="hello", stream=True)
        async for event in stream:
            received.append(event)
            if event.type == "response.output_text.delta" and "word3" in event.delta:
                break
        await stream.close()
    begun = received[0]
    assert begun.type == "response.created"
    assert text_of(received) != words
    async with running(settings) as server, server.openai() as client:
        rest = await client.responses.retrieve(
            begun.response.id, stream=True, starting_after=received[-1].sequence_number
        )
        received += [event async for event in rest]
    assert text_of(received) == words
    numbers = [event.sequence_number for event in received]
    assert numbers == sorted(set(numbers))
    assert received[-1].type == "response.completed"


async def test_a_response_in_the_background_is_polled_and_can_be_cancelled(
    server: Server, provider: FakeProvider
) -> None:
    async with server.openai() as client:
        begun = await client.responses.create(input="hello", background=True)
        assert begun.status in ("queued", "in_progress")

        async def ended() -> bool:
            return (await client.responses.retrieve(begun.id)).status == "completed"

        await until(ended)
        provider.script = always(Hang())
        slow = await client.responses.create(
            input="slow", background=True, previous_response_id=begun.id
        )

        async def running() -> bool:
            return (await client.responses.retrieve(slow.id)).status == "in_progress"

        await until(running)
        assert (await client.responses.cancel(slow.id)).status == "cancelled"
        # Whoever did not hear the answer asks again.
        assert (await client.responses.cancel(slow.id)).status == "cancelled"
        stream = await client.responses.retrieve(slow.id, stream=True)
        assert [event.type async for event in stream][-1] == "response.failed"


async def test_a_conversation_holds_the_items_of_its_responses(server: Server) -> None:
    async with server.openai() as client:
        opened = await client.conversations.create(
            metadata={"topic": "tests"},
            items=[
                {"type": "message", "role": "user", "content": "before"},
                {"type": "message", "role": "assistant", "content": "So it was."},
            ],
        )
        Conversation.model_validate(opened.model_dump())
        first = await client.responses.create(input="hello", conversation=opened.id)
        assert first.output_text == "turn 2: I have seen: before | hello"
        assert first.conversation is not None
        assert first.conversation.id == opened.id
        await client.responses.create(input="again", conversation={"id": opened.id})
        items = [item async for item in await client.conversations.items.list(opened.id, limit=1)]
        texts: list[Any] = [item.model_dump()["content"][0]["text"] for item in items]
        assert texts[1::2] == ["again", "hello"]
        oldest = await client.conversations.items.list(opened.id, order="asc", limit=3)
        assert [item.model_dump() for item in oldest.data] == [
            item.model_dump() for item in items[:0:-1]
        ]
        for id in (items[0].id, first.output[0].id):
            item = await client.conversations.items.retrieve(id or "", conversation_id=opened.id)
            assert item.id == id
        changed = await client.conversations.update(opened.id, metadata={"topic": "more"})
        assert changed == await client.conversations.retrieve(opened.id)
        assert changed.metadata == {"topic": "more"}
        with pytest.raises(openai.BadRequestError, match="only grows"):
            await client.conversations.items.delete(items[0].id or "", conversation_id=opened.id)
        assert (await client.conversations.delete(opened.id)).deleted
        with pytest.raises(openai.NotFoundError):
            await client.conversations.retrieve(opened.id)
        with pytest.raises(openai.NotFoundError):
            await client.responses.retrieve(first.id)


async def test_the_same_key_gives_the_same_response_and_conversation(server: Server) -> None:
    async with server.openai() as client:
        first, second = [
            await client.responses.create(input="hello", extra_headers={"Idempotency-Key": "k"})
            for _ in range(2)
        ]
        assert first == second
        stream = await client.responses.create(
            input="hello", stream=True, extra_headers={"Idempotency-Key": "k"}
        )
        assert text_of([event async for event in stream]) == FIRST
        opened, again = [
            await client.conversations.create(extra_headers={"Idempotency-Key": "k"})
            for _ in range(2)
        ]
        assert opened == again
        with pytest.raises(openai.UnprocessableEntityError):
            await client.responses.create(input="other", extra_headers={"Idempotency-Key": "k"})


async def test_a_failed_turn_is_an_error_a_failed_response_and_the_end_of_a_stream(
    server: Server, provider: FakeProvider
) -> None:
    provider.script = always(Fail("authentication"))
    async with server.openai() as client:
        with pytest.raises(openai.APIStatusError) as failed:
            await client.responses.create(input="hello")
        assert failed.value.status_code == 502
        stream = await client.responses.create(input="hello", stream=True)
        *_, last = [event async for event in stream]
        assert last.type == "response.failed"
        kept = await client.responses.retrieve(last.response.id)
        assert (kept.status, kept.error) == ("failed", last.response.error)


REFUSED: dict[str, dict[str, Any]] = {
    "tools": {"tools": [{"type": "function", "name": "f", "parameters": {}}]},
    "prompt": {"prompt": {"id": "p"}},
    "text.format": {"text": {"format": {"type": "json_object"}}},
    "input": {"input": [{"role": "assistant", "content": "no"}]},
    "input[0]": {"input": [{"type": "function_call_output", "call_id": "c", "output": "o"}]},
    "input[0].content[0]": {
        "input": [
            {"role": "user", "content": [{"type": "input_image", "image_url": "https://x.test/y"}]}
        ]
    },
    "model": {"model": "gpt-7"},
    "background": {"background": True, "store": False},
    "previous_response_id": {"conversation": "talk", "previous_response_id": "resp_1"},
    "instructions": {"conversation": "talk", "instructions": "Be brief."},
    "metadata": {"metadata": {"a": 1}},
}


async def test_what_is_not_supported_is_refused_with_the_field(server: Server) -> None:
    for param, given in REFUSED.items():
        answer = await server.http.post("/v1/responses", json={"input": "hello", **given})
        assert answer.status_code in (400, 404), (param, answer.text)
        assert answer.json()["error"]["param"].startswith(param), answer.text
    for path in ("resp_1", f"resp_{'0' * 28}", "inb_1"):
        assert (await server.http.get(f"/v1/responses/{path}")).status_code == 404
        answer = await server.http.post(
            "/v1/responses", json={"input": "hi", "previous_response_id": path}
        )
        assert answer.status_code == 404
    unstored = await server.http.post("/v1/responses", json={"input": "hi", "store": False})
    hidden = await server.http.get(f"/v1/responses/{unstored.json()['id']}")
    assert (unstored.json()["status"], hidden.status_code) == ("completed", 404)
    assert (await server.engine.list_conversations()).items == ()


#: As the compliance cases of the Open Responses specification send them.
CASES: dict[str, list[dict[str, Any]]] = {
    "system prompt": [
        {"type": "message", "role": "system", "content": "Speak as a pirate."},
        {"type": "message", "role": "user", "content": "hello"},
    ],
    "image": [
        {
            "type": "message",
            "role": "user",
            "content": [
                {"type": "input_text", "text": "hello"},
                {"type": "input_image", "image_url": PICTURE},
            ],
        }
    ],
    "turns": [
        {"type": "message", "role": "user", "content": "My name is Ada."},
        {"type": "message", "role": "assistant", "content": "Hello Ada."},
        {"type": "message", "role": "user", "content": "hello"},
    ],
    "an image earlier": [
        {
            "type": "message",
            "role": "user",
            "content": [{"type": "input_image", "image_url": PICTURE}],
        },
        {"type": "message", "role": "assistant", "content": "A dot."},
        {"type": "message", "role": "user", "content": "hello"},
    ],
}
#: What the specification requires of every response.
REQUIRED = set(
    """
    id object created_at completed_at status incomplete_details model previous_response_id
    instructions output error tools tool_choice truncation parallel_tool_calls text top_p
    presence_penalty frequency_penalty top_logprobs temperature reasoning usage max_output_tokens
    max_tool_calls store background service_tier metadata safety_identifier prompt_cache_key
    """.split()  # noqa: SIM905  (a list of so many lines would be longer than the test)
)


async def test_the_cases_of_the_specification_pass(server: Server, provider: FakeProvider) -> None:
    for name, said in CASES.items():
        answer = await server.http.post("/v1/responses", json={"input": said})
        told = answer.json()
        assert (answer.status_code, told["status"]) == (200, "completed"), (name, told)
        assert told.keys() >= REQUIRED, name
        assert told["output"], name
        Response.model_validate(told)
        streamed = await server.http.post("/v1/responses", json={"input": said, "stream": True})
        events = events_of(streamed.text)
        assert streamed.text.endswith("data: [DONE]\n\n")
        assert [event["type"] for event in (events[0], events[-1])] == [
            "response.created",
            "response.completed",
        ]
        Response.model_validate(events[-1]["response"])
    for case in ("image", "an image earlier"):
        asked = provider.requests[2 * list(CASES).index(case)]
        assert "data:image/png;base64," in asked.body.decode(), case
