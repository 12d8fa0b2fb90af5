"""A client that closes its connection: its turn goes on if it can come back for the answer."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from clew.api.timeouts import ApiTimeouts
from clew.core.turn import StopRequest, TurnOutcome
from clew.store.transactions import turn_queries
from clew.testing import FakeProvider, Text
from tests.integration.api_server import always, events_of, running, settings_for, until
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterator
    from pathlib import Path

    import httpx2

    from clew.core.turn import Turn
    from tests.integration.api_server import Server

CASES: dict[str, tuple[dict[str, str], TurnOutcome]] = {
    "header": ({"X-Clew-Conversation": "talk"}, TurnOutcome.ANSWERED),
    "key": ({"Idempotency-Key": "k1"}, TurnOutcome.ANSWERED),
    "neither": ({}, TurnOutcome.CANCELLED),
}


@pytest.fixture
def provider() -> Iterator[FakeProvider]:
    with FakeProvider(always(Text("a b c d e f g h", chunks=8, delay=0.08))) as fake:
        yield fake


@pytest.fixture
async def server(tmp_path: Path, provider: FakeProvider) -> AsyncGenerator[Server]:
    async with running(settings_for(tmp_path, provider=provider)) as found:
        yield found


async def only_turn(server: Server) -> Turn | None:
    """The first turn of the only conversation, once it began."""
    found = (await server.engine.list_conversations(adhoc=True)).items
    if not found:
        return None
    entries = await server.engine.read_entries(found[0].id)
    if not entries or entries[0].turn_id is None:
        return None
    return await server.store.read(turn_queries.get_turn, entries[0].turn_id)


async def has_begun(server: Server) -> bool:
    return await only_turn(server) is not None


async def is_over(server: Server) -> bool:
    turn = await only_turn(server)
    return turn is not None and turn.outcome is not None


async def hang_up(server: Server, headers: dict[str, str], *, stream: bool) -> None:
    """Close the connection while the answer is being made."""
    body = {"messages": [{"role": "user", "content": "hello"}], "stream": stream}
    path = "/v1/chat/completions"
    if stream:
        async with server.http.stream("POST", path, json=body, headers=headers) as answer:
            async for _ in answer.aiter_bytes():
                break
        return
    asked = asyncio.create_task(server.http.post(path, json=body, headers=headers))
    await until(lambda: has_begun(server))
    asked.cancel()
    with suppress(asyncio.CancelledError):
        await asked


@pytest.mark.parametrize("stream", [False, True], ids=["plain", "streamed"])
@pytest.mark.parametrize("case", CASES)
async def test_a_caller_that_can_return_finds_the_answer(
    server: Server, case: str, stream: bool
) -> None:
    headers, outcome = CASES[case]
    await hang_up(server, headers, stream=stream)
    await until(lambda: is_over(server))
    turn = await only_turn(server)
    assert turn is not None
    assert turn.outcome is outcome
    assert turn.stop is (StopRequest.CANCEL if outcome is TurnOutcome.CANCELLED else None)


async def read_stream(server: Server, headers: dict[str, str], lines: list[str]) -> httpx2.Response:
    """Ask, and read the lines of the answer one by one."""
    body = {"messages": [{"role": "user", "content": "hello"}], "stream": True}
    async with server.http.stream(
        "POST", "/v1/chat/completions", json=body, headers=headers
    ) as answer:
        async for line in answer.aiter_lines():
            lines.append(line)  # noqa: PERF401  (each as it comes)
        return answer


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("words", [False, True], ids=["before words", "after words"])
async def test_a_server_that_stops_cancels_nothing(
    tmp_path: Path, provider: FakeProvider, case: str, words: bool
) -> None:
    headers, _ = CASES[case]
    # It takes minutes: nobody waits for its end.
    provider.script = always(Text("a b c d " * 250, chunks=1000, delay=0.1 if words else 60))
    settings = settings_for(tmp_path, provider=provider)
    lines: list[str] = []
    async with running(settings, pace=ApiTimeouts(shutdown_grace=0.05)) as server:
        asked = asyncio.create_task(read_stream(server, headers, lines))
        await until(lambda: has_begun(server))
        await wait_until(lambda: not words or '"b "' in "".join(lines))
    answer = await asked
    if words:
        assert answer.status_code == 200
        assert events_of("\n".join(lines))[-1]["error"]["code"] == "stopping"
        assert "data: [DONE]" not in lines
    else:
        assert (answer.status_code, json.loads("".join(lines))["error"]["code"]) == (
            503,
            "stopping",
        )
        again = "true" if "Idempotency-Key" in headers else "false"
        assert answer.headers["x-should-retry"] == again
    provider.script = always(Text("a b c d"))
    async with running(settings) as server:
        await until(lambda: is_over(server))
        turn = await only_turn(server)
    assert turn is not None
    assert turn.outcome is TurnOutcome.ANSWERED
