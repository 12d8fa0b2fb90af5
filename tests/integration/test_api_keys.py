"""Idempotency keys: the first answer again, whenever and however it is asked for."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from clew.api.timeouts import ApiTimeouts
from clew.testing import Fail, FakeProvider, Text, count_user_texts
from tests.integration.api_server import always, events_of, running, settings_for, until

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterator
    from pathlib import Path

    import httpx2

    from tests.integration.api_server import Server


@pytest.fixture
def provider() -> Iterator[FakeProvider]:
    with FakeProvider(count_user_texts) as fake:
        yield fake


@pytest.fixture
async def server(tmp_path: Path, provider: FakeProvider) -> AsyncGenerator[Server]:
    async with running(settings_for(tmp_path, provider=provider)) as found:
        yield found


async def ask(
    server: Server,
    text: str = "hello",
    key: str = "k1",
    *,
    stream: bool = False,
    headers: dict[str, str] | None = None,
) -> httpx2.Response:
    body: dict[str, Any] = {"messages": [{"role": "user", "content": text}]}
    if stream:
        body |= {"stream": True, "stream_options": {"include_usage": True}}
    sent = {"Idempotency-Key": key, "X-Clew-Conversation": "talk", **(headers or {})}
    return await server.http.post("/v1/chat/completions", json=body, headers=sent)


def text_of(answer: httpx2.Response) -> str:
    if answer.headers["content-type"] == "application/json":
        return answer.json()["choices"][0]["message"]["content"]
    chunks = events_of(answer.text)
    return "".join(
        choice["delta"].get("content", "") for chunk in chunks for choice in chunk["choices"]
    )


async def test_the_same_key_gives_the_first_answer_again(
    store_url: str, tmp_path: Path, provider: FakeProvider
) -> None:
    settings = settings_for(tmp_path, provider=provider, store_url=store_url)
    async with running(settings) as server:
        first, second = await ask(server), await ask(server)
        other = await ask(server, key="k2")
    async with running(settings) as server:
        third = await ask(server)
        streamed = await ask(server, stream=True)
        entries = await server.engine.read_entries(await server.engine.resolve_name("talk"))
    assert first.json() == second.json() == third.json()
    for again in (second, third, streamed):
        for name in ("X-Clew-Conversation", "X-Clew-Session", "X-Clew-Turn"):
            assert again.headers[name] == first.headers[name]
    assert text_of(streamed) == text_of(first)
    assert events_of(streamed.text)[-1]["usage"] == first.json()["usage"]
    assert events_of(streamed.text)[0]["id"] == first.json()["id"]
    assert text_of(other) == "turn 2: I have seen: hello | hello"
    assert len(entries) == 4


async def test_a_streamed_answer_is_given_again_as_a_plain_one(server: Server) -> None:
    first, again = await ask(server, stream=True), await ask(server)
    assert text_of(first) == text_of(again) == "turn 1: I have seen: hello"


@pytest.mark.parametrize("stream", [False, True], ids=["plain", "streamed"])
async def test_the_same_key_joins_the_answer_while_it_is_made(
    server: Server, provider: FakeProvider, stream: bool
) -> None:
    provider.script = always(Text("one two three four", chunks=8, delay=0.1))
    first = asyncio.create_task(ask(server, stream=stream))
    await server.begun()
    # In the middle of the text: who joins is told what came before.
    await asyncio.sleep(0.35)
    joined = await ask(server, stream=True)
    assert text_of(joined) == text_of(await first) == "one two three four"
    assert joined.headers["X-Clew-Turn"] == (await first).headers["X-Clew-Turn"]
    assert len(provider.wait_until_settled()) == 1


async def test_many_at_once_with_one_key_have_one_turn(
    store_url: str, tmp_path: Path, provider: FakeProvider
) -> None:
    settings = settings_for(tmp_path, provider=provider, store_url=store_url)
    async with running(settings) as server:
        answers = await asyncio.gather(*(ask(server, stream=n % 2 == 0) for n in range(8)))
        assert {text_of(answer) for answer in answers} == {"turn 1: I have seen: hello"}
        assert {answer.headers["X-Clew-Turn"] for answer in answers} == {
            answers[0].headers["X-Clew-Turn"]
        }
    assert len(provider.wait_until_settled()) == 1


@pytest.mark.parametrize("stream", [False, True], ids=["plain", "streamed"])
async def test_a_failure_is_given_again_too(
    server: Server, provider: FakeProvider, stream: bool
) -> None:
    provider.script = always(Fail("authentication"))
    first = await ask(server)
    provider.script = count_user_texts
    again = await ask(server, stream=stream)
    assert first.status_code == again.status_code == 502
    assert first.json() == again.json()
    assert first.headers["x-should-retry"] == again.headers["x-should-retry"] == "false"
    assert len(provider.wait_until_settled()) == 1


@pytest.mark.parametrize(
    ("text", "headers"),
    [
        ("something else", {}),
        ("hello", {"X-Clew-Conversation": "elsewhere"}),
        ("hello", {"X-Clew-Double-Text": "reject"}),
    ],
    ids=["text", "conversation", "rule"],
)
async def test_the_same_key_for_another_request_is_refused(
    server: Server, text: str, headers: dict[str, str]
) -> None:
    await ask(server)
    refused = await ask(server, text, headers=headers)
    assert (refused.status_code, refused.json()["error"]["code"]) == (
        422,
        "idempotency_key_reused",
    )


async def test_a_key_that_led_to_nothing_stays_free(server: Server) -> None:
    wrong = await ask(server, headers={"X-Clew-Conversation": "cnv_0123456789abcdef0123456789"})
    assert wrong.status_code == 404
    empty = await ask(server, text="  ")
    assert empty.status_code == 400
    assert (await ask(server)).status_code == 200


@pytest.mark.parametrize("key", ["", "x" * 256], ids=["empty", "long"])
async def test_a_key_has_a_size(server: Server, key: str) -> None:
    assert (await ask(server, key=key)).status_code == 400


async def test_a_resent_history_is_taken_once_per_key(
    server: Server, provider: FakeProvider
) -> None:
    body = {"messages": [{"role": "user", "content": "hello"}]}
    first, again = [
        await server.http.post("/v1/chat/completions", json=body, headers={"Idempotency-Key": "k1"})
        for _ in range(2)
    ]
    assert first.json() == again.json()
    assert len(provider.wait_until_settled()) == 1


async def test_a_turn_that_another_process_ends_is_answered_under_its_key(
    tmp_path: Path, provider: FakeProvider
) -> None:
    provider.script = always(Text("late but whole", chunks=9, delay=1))
    settings = settings_for(tmp_path, provider=provider)
    async with running(settings, pace=ApiTimeouts(shutdown_grace=0.1)) as server:
        asked = asyncio.create_task(ask(server))
        await server.begun()
    cut_off = await asked
    assert cut_off.status_code == 503
    assert cut_off.json()["error"]["code"] == "stopping"
    # It may be sent again, but need not be for the message to be answered.
    assert cut_off.headers["x-should-retry"] == "true"
    assert "retry-after" not in cut_off.headers
    provider.script = always(Text("late but whole"))
    async with running(settings) as server:
        answer = await ask(server)
        entries = await server.engine.read_entries(await server.engine.resolve_name("talk"))
    assert text_of(answer) == "late but whole"
    assert [entry.text for entry in entries] == ["hello", "late but whole"]


async def test_an_answer_whose_client_went_away_is_fetched_with_the_key(
    server: Server, provider: FakeProvider
) -> None:
    provider.script = always(Text("for whoever asks", chunks=4, delay=0.1))
    asked = asyncio.create_task(ask(server))
    await server.begun()
    asked.cancel()
    await until(lambda: _done(server))
    assert text_of(await ask(server, stream=True)) == "for whoever asks"
    assert len(provider.wait_until_settled()) == 1


async def _done(server: Server) -> bool:
    return await server.engine.get_unfinished_turn(await server.engine.resolve_name("talk")) is None
