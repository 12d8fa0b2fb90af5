"""Idle connections of the API: keep-alive signs and time limits."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from clew.api.timeouts import ApiTimeouts
from clew.testing import Fail, FakeProvider, Text, reply_in_sequence
from tests.integration.api_server import (
    TOKEN,
    always,
    events_of,
    running,
    serving,
    settings_for,
    until,
)

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterator
    from pathlib import Path

    from tests.integration.api_server import Server

QUICK = ApiTimeouts(first_text=0.1, keep_alive=0.1, body=0.3)
STREAMED = {"messages": [{"role": "user", "content": "hello"}], "stream": True}
NAMED = {"X-Clew-Conversation": "talk"}


@pytest.fixture
def provider() -> Iterator[FakeProvider]:
    with FakeProvider(always(Text("late", chunks=2, delay=0.4))) as fake:
        yield fake


@pytest.fixture
async def server(tmp_path: Path, provider: FakeProvider) -> AsyncGenerator[Server]:
    async with running(settings_for(tmp_path, provider=provider), pace=QUICK) as found:
        yield found


async def test_a_stream_without_words_begins_and_shows_that_it_is_there(server: Server) -> None:
    async with server.http.stream(
        "POST", "/v1/chat/completions", json=STREAMED, headers=NAMED
    ) as answer:
        assert answer.status_code == 200
        assert answer.headers["X-Clew-Turn"].startswith("trn_")
        text = "".join([piece async for piece in answer.aiter_text()])
    assert ": still here\n\n" in text
    pieces = [choice for event in events_of(text) for choice in event["choices"]]
    assert "".join(piece["delta"].get("content", "") for piece in pieces) == "late"
    assert text.endswith("data: [DONE]\n\n")


async def test_a_failure_after_the_stream_began_is_its_last_event(
    server: Server, provider: FakeProvider
) -> None:
    provider.script = reply_in_sequence(
        [Text("late", chunks=2, delay=0.3), Fail("authentication")], default=Fail("server")
    )
    first = asyncio.create_task(server.say("takes its time"))
    await server.begun()
    answer = await server.http.post("/v1/chat/completions", json=STREAMED, headers=NAMED)
    assert (await first).status_code == 200
    assert answer.status_code == 200
    assert "X-Clew-Turn" not in answer.headers
    assert answer.headers["X-Clew-Conversation"].startswith("cnv_")
    assert events_of(answer.text)[-1]["error"]["code"] == "authentication"
    assert "[DONE]" not in answer.text


async def test_a_client_that_leaves_a_silent_stream_is_noticed(
    server: Server, provider: FakeProvider
) -> None:
    provider.script = always(Text("never", chunks=2, delay=30))
    async with server.http.stream("POST", "/v1/chat/completions", json=STREAMED) as answer:
        async for _ in answer.aiter_bytes():
            break

    async def cancelled() -> bool:
        metrics = await server.http.get("/metrics")
        return 'clew_turns_total{outcome="cancelled"} 1' in metrics.text

    await until(cancelled)


async def test_followers_of_a_silent_conversation_see_that_the_stream_is_there(
    server: Server,
) -> None:
    await server.say("hello")
    path = "/api/conversations/talk/events?after=2"
    async with server.http.stream("GET", path) as answer:
        lines = answer.aiter_lines()
        seen = [await anext(lines) for _ in range(6)]
    assert seen == ["retry: 1000", "", ": still here", "", ": still here", ""]


async def test_followers_are_notified_of_a_deletion(server: Server) -> None:
    said = await server.say("hello")
    path = "/api/conversations/talk/events?after=2"
    async with server.http.stream("GET", path) as answer:
        lines = answer.aiter_lines()
        assert await anext(lines) == "retry: 1000"
        await server.http.delete("/api/conversations/talk")
        rest = [line async for line in lines]
    data = f'data: {{"conversation":"{said.headers["X-Clew-Conversation"]}"}}'
    assert rest[-3:] == ["event: deleted", data, ""]


async def test_a_stream_breaks_off_where_the_store_cannot_be_read(server: Server) -> None:
    await server.say("hello")
    path = "/api/conversations/talk/events?after=2"
    async with server.http.stream("GET", path) as answer:
        lines = answer.aiter_lines()
        assert await anext(lines) == "retry: 1000"
        await server.store.aclose()
        rest = [line async for line in lines]
    assert not any(line.startswith("event:") for line in rest)


async def test_a_body_that_does_not_come_is_not_waited_for(server: Server) -> None:
    async def body() -> AsyncGenerator[bytes]:
        yield b'{"text": '
        await asyncio.sleep(1)
        yield b'"hello"}'

    answer = await server.http.post("/api/conversations/talk/messages", content=body())
    assert (answer.status_code, answer.json()["error"]["code"]) == (408, "request_timeout")
    assert answer.headers["x-should-retry"] == "true"


async def test_a_client_that_leaves_while_it_sends_its_body_harms_nothing(server: Server) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", int(server.url.split(":")[-1]))
    head = f"Host: x\r\nAuthorization: Bearer {TOKEN}\r\nContent-Length: 100\r\n\r\n{{"
    writer.write(b"POST /api/conversations/talk/messages HTTP/1.1\r\n" + head.encode())
    await writer.drain()
    writer.close()
    await writer.wait_closed()
    assert await reader.read() == b""
    assert (await server.http.get("/healthz")).status_code == 200


async def test_a_close_waits_for_the_turn_and_not_for_a_server_that_stops(
    tmp_path: Path, provider: FakeProvider
) -> None:
    provider.script = always(Text("never", chunks=2, delay=30))
    settings = settings_for(tmp_path, provider=provider)
    async with running(settings) as server:
        async with serving(server.engine, settings, pace=ApiTimeouts(shutdown_grace=0.1)) as url:
            await server.http.post("/api/conversations/talk/messages", json={"text": "hello"})
            await server.begun()
            closed = asyncio.create_task(server.http.post(f"{url}/api/conversations/talk/close"))
            await asyncio.sleep(0.1)
        answer = await closed
    assert (answer.status_code, answer.json()["error"]["code"]) == (503, "stopping")
