"""Following a conversation over HTTP: every entry once, from wherever a client was."""

from __future__ import annotations

import asyncio
import json
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from clew.api.timeouts import ApiTimeouts
from clew.testing import (
    Calls,
    CutStream,
    FakeProvider,
    ScriptedCall,
    Text,
    count_user_texts,
    reply_in_sequence,
)
from tests.integration.api_server import always, running, settings_for

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Iterator
    from pathlib import Path

    from tests.integration.api_server import Server


@pytest.fixture
def provider() -> Iterator[FakeProvider]:
    with FakeProvider(count_user_texts) as fake:
        yield fake


@pytest.fixture
async def server(tmp_path: Path, provider: FakeProvider) -> AsyncGenerator[Server]:
    async with running(settings_for(tmp_path, provider=provider)) as found:
        yield found


class Event(NamedTuple):
    name: str
    data: Any
    id: int | None


async def events(
    server: Server, name: str = "talk", *, after: int = 0, last_id: int | None = None
) -> AsyncGenerator[Event]:
    """The events of a conversation, as a browser's EventSource reads them."""
    headers = {} if last_id is None else {"Last-Event-ID": str(last_id)}
    path = f"/api/conversations/{name}/events"
    async with server.http.stream("GET", path, params={"after": after}, headers=headers) as answer:
        assert answer.status_code == 200
        assert answer.headers["content-type"].startswith("text/event-stream")
        async with aclosing(_parsed(answer.aiter_lines())) as parsed:
            async for event in parsed:
                yield event


async def _parsed(lines: AsyncIterator[str]) -> AsyncGenerator[Event]:
    fields: dict[str, str] = {}
    async for line in lines:
        if line:
            field, _, value = line.partition(": ")
            fields[field] = value
        elif "event" in fields:
            found = fields.get("id")
            data = json.loads(fields["data"])
            yield Event(fields["event"], data, None if found is None else int(found))
            fields = {}
        else:
            fields = {}


async def until_closed(heard: AsyncGenerator[Event], turns: int = 1) -> list[Event]:
    """The events up to the end of a turn, or of several."""
    found: list[Event] = []
    async with asyncio.timeout(120), aclosing(heard):
        async for event in heard:
            found.append(event)
            turns -= event.name == "turn_closed"
            if turns == 0:
                return found
    raise AssertionError(f"the stream ended after {found}")


async def listening(heard: AsyncGenerator[Event]) -> asyncio.Task[list[Event]]:
    """``until_closed`` in the background, once the first event shows that it is followed."""
    assert (await anext(heard)).name == "entry"
    return asyncio.create_task(until_closed(heard))


async def take(heard: AsyncGenerator[Event], count: int) -> list[Event]:
    found: list[Event] = []
    async with asyncio.timeout(120), aclosing(heard):
        async for event in heard:
            found.append(event)
            if len(found) == count:
                break
    return found


async def say(server: Server, text: str) -> None:
    answer = await server.http.post("/api/conversations/talk/messages", json={"text": text})
    assert answer.status_code == 202


async def test_a_turn_is_reported_as_it_happens(server: Server, provider: FakeProvider) -> None:
    await server.say("before")
    provider.script = reply_in_sequence(
        [
            Calls([ScriptedCall("nothing")], text="let me look"),
            Text("there is no such tool", chunks=3),
        ]
    )
    heard = await listening(events(server, after=1))
    await say(server, "hello")
    found = await heard
    entries = [event for event in found if event.name == "entry"]
    assert [event.id for event in entries] == list(range(3, 3 + len(entries)))
    assert [event.data["seq"] for event in entries] == [event.id for event in entries]
    assert all(event.id is None for event in found if event.name != "entry")
    assert entries[0].data["text"] == "hello"
    assert entries[-1].data["text"] == "there is no such tool"
    pieces = [event.data["text"] for event in found if event.name == "delta"]
    assert "".join(pieces) == "let me lookthere is no such tool"
    assert found[-1].data["outcome"] == "answered"
    assert found[-1].data["turn"] == entries[0].data["turn"]


async def test_from_any_seq_the_rest_comes_once_and_in_order(
    store_url: str, tmp_path: Path, provider: FakeProvider
) -> None:
    settings = settings_for(tmp_path, provider=provider, store_url=store_url)
    async with running(settings) as server:
        for text in ("one", "two", "three"):
            await server.say(text)
        last = 6
        for after in range(last):
            by_query = await take(events(server, after=after), last - after)
            by_header = await take(events(server, after=0, last_id=after), last - after)
            assert [event.id for event in by_query] == list(range(after + 1, last + 1))
            assert by_query == by_header


async def test_a_resubscribed_client_misses_and_repeats_nothing(server: Server) -> None:
    await say(server, "one")
    seen = [event for event in await until_closed(events(server)) if event.name == "entry"]
    await say(server, "two")
    await say(server, "three")
    async with asyncio.timeout(120):
        while len(seen) < 6:
            for event in await take(events(server, last_id=seen[-1].id), 1):
                assert event.name in ("entry", "delta", "snapshot", "turn_begun", "turn_closed")
                seen += [event] if event.name == "entry" else []
    assert [event.id for event in seen] == [1, 2, 3, 4, 5, 6]


async def test_a_late_subscriber_gets_the_text_so_far(
    server: Server, provider: FakeProvider
) -> None:
    await server.say("before")
    provider.script = always(Text("abcdefgh", chunks=8, delay=0.2))
    early = await listening(events(server, after=1))
    first = events(server, after=2)
    await say(server, "hello")
    async with aclosing(first):
        while (await anext(first)).name not in ("delta", "snapshot"):
            """Until some of the text has come."""
    late = await until_closed(events(server, after=3))
    snapshot = late[0]
    assert snapshot.name == "snapshot"
    assert snapshot.id is None
    assert snapshot.data["text"]
    pieces = "".join(event.data["text"] for event in late if event.name == "delta")
    assert snapshot.data["text"] + pieces == "abcdefgh"
    whole = [event.data["text"] for event in await early if event.name in ("snapshot", "delta")]
    assert "".join(whole) == "abcdefgh"


async def test_an_attempt_that_failed_is_taken_back(server: Server, provider: FakeProvider) -> None:
    await server.say("before")
    provider.script = reply_in_sequence(
        [CutStream(2, Text("lost words", chunks=4)), Text("the answer")]
    )
    heard = await listening(events(server, after=1))
    await say(server, "hello")
    names = [event.name for event in await heard if event.name != "turn_begun"]
    assert "retracted" in names
    assert names.index("retracted") > names.index("delta")
    assert names[-1] == "turn_closed"


async def test_many_followers_hear_the_same(server: Server) -> None:
    await server.say("before")
    heard = [events(server) for _ in range(5)]
    firsts = [await anext(each) for each in heard]
    rest = [asyncio.create_task(until_closed(each, turns=2)) for each in heard]
    await say(server, "one")
    await say(server, "two")
    entries = [
        [first, *(event for event in await each if event.name == "entry")]
        for first, each in zip(firsts, rest, strict=True)
    ]
    assert [event.id for event in entries[0]] == [1, 2, 3, 4, 5, 6]
    assert all(each == entries[0] for each in entries)


@pytest.mark.parametrize("value", ["x", "-1", "1.5", "9" * 16, "²"])
async def test_a_last_id_that_is_none_is_refused(server: Server, value: str) -> None:
    await server.say("hello")
    answer = await server.http.get(
        "/api/conversations/talk/events", headers=[(b"Last-Event-ID", value.encode())]
    )
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, "last-event-id")


async def test_the_server_does_not_wait_for_followers_when_it_stops(
    tmp_path: Path, provider: FakeProvider
) -> None:
    async with running(
        settings_for(tmp_path, provider=provider), pace=ApiTimeouts(shutdown_grace=30)
    ) as server:
        await server.say("hello")
        heard = events(server)
        assert (await anext(heard)).id == 1
        rest = asyncio.create_task(_rest(heard))
        await asyncio.sleep(0.05)
    assert [event.id for event in await rest] == [2]


async def _rest(heard: AsyncGenerator[Event]) -> list[Event]:
    return [event async for event in heard if event.name == "entry"]
