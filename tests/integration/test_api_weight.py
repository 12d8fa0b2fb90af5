"""Many messages, large ones, and clients that take their time: the others are served."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import pytest

from clew.engine.validation import MAX_MESSAGE_LENGTH
from tests.contract import invariants
from tests.crowd import talk_to
from tests.integration.api_server import TOKEN, running, settings_for

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path

    from tests.integration.api_server import Server

_HEAD = (
    "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\n"
    f"Authorization: Bearer {TOKEN}\r\nContent-Type: application/json\r\n"
)


@pytest.fixture
async def server(tmp_path: Path) -> AsyncGenerator[Server]:
    async with running(settings_for(tmp_path)) as found:
        yield found


@pytest.mark.slow
@pytest.mark.timeout(900)
async def test_a_hundred_tiny_messages_are_answered_each_once(
    store_url: str, tmp_path: Path
) -> None:
    async with running(settings_for(tmp_path, store_url=store_url)) as server:
        wrong = await talk_to(server.http, messages=100, conversations=10, at_once=10)
        assert wrong == []
        listed = (await server.engine.list_conversations(limit=100)).items
        assert sorted(one.last_seq for one in listed) == [20] * 10
        assert await server.store.read(invariants.check) == []


@pytest.mark.parametrize(
    "begun",
    [b"POST /v1/chat", _HEAD.encode(), (_HEAD + 'Content-Length: 500\r\n\r\n{"mess').encode()],
    ids=["line", "head", "body"],
)
async def test_a_hundred_stalled_clients_block_nobody(server: Server, begun: bytes) -> None:
    async with dangling(server, begun, clients=100) as writers:
        for number in range(5):
            for writer in writers:
                writer.write(b"x")
            answer = await server.say(str(number))
            assert answer.json()["choices"][0]["message"]["content"] == f"You said: {number}"


@asynccontextmanager
async def dangling(
    server: Server, begun: bytes, *, clients: int
) -> AsyncGenerator[list[asyncio.StreamWriter]]:
    """Clients that send the beginning of a request."""
    host, _, port = server.url.removeprefix("http://").partition(":")
    writers = [(await asyncio.open_connection(host, int(port)))[1] for _ in range(clients)]
    try:
        for writer in writers:
            writer.write(begun)
        yield writers
    finally:
        for writer in writers:
            writer.transport.abort()


async def test_the_longest_message_is_answered_and_a_longer_one_refused_with_the_limit(
    store_url: str, tmp_path: Path
) -> None:
    long = "labyrinth " * (MAX_MESSAGE_LENGTH // 10)
    async with running(settings_for(tmp_path, store_url=store_url)) as server:
        answer = await server.say(long)
        assert answer.status_code == 200
        assert long.strip() in answer.json()["choices"][0]["message"]["content"]
        refused = await server.say("x" * (MAX_MESSAGE_LENGTH + 1))
        assert refused.status_code == 400
        assert f"{MAX_MESSAGE_LENGTH:,}" in refused.json()["error"]["message"]
        entries = await server.engine.read_entries(await server.engine.resolve_name("talk"))
        assert len(entries) == 2
        assert entries[0].text == long


async def test_bodies_of_fifty_megabytes_are_refused_while_others_are_served(
    server: Server,
) -> None:
    async def body() -> AsyncGenerator[bytes]:
        for _ in range(50):
            yield b" " * 1024 * 1024

    async def large(headers: dict[str, str]) -> int:
        answer = await server.http.post("/v1/chat/completions", content=body(), headers=headers)
        return answer.status_code

    declared = {"Content-Length": str(50 * 1024 * 1024)}
    async with asyncio.TaskGroup() as tasks:
        sent = [tasks.create_task(large(each)) for each in (declared, {}, declared, {})]
        answers = [(await server.say("hello there")).status_code for _ in range(5)]
    assert answers == [200] * 5
    assert [task.result() for task in sent] == [413] * 4
    assert len((await server.engine.list_conversations(adhoc=True)).items) == 1
