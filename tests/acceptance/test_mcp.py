"""``clew mcp`` as programs start it: over pipes, past a kill of the gateway, and by itself."""

from __future__ import annotations

import asyncio
import json
from contextlib import AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any

import pytest
from mcp import Client, StdioServerParameters

from clew.testing import FakeProvider, Hang, reply_by_user_text
from clew.testing.provider.scripts import count_user_texts
from tests.acceptance.typed import programs
from tests.integration.mcp_clients import call
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from tests.acceptance.program import Clew

pytestmark = pytest.mark.timeout(900)


@asynccontextmanager
async def over_pipes(clew: Clew) -> AsyncGenerator[Client]:
    """The official client of a ``clew mcp`` that it starts itself."""
    with programs() as folder:
        program = StdioServerParameters(
            command=str(folder / "clew"), args=["mcp"], env=clew.environ
        )
        async with Client(program) as client:
            yield client


async def test_a_message_is_stored_once_although_the_gateway_is_killed(clew: Clew) -> None:
    script = reply_by_user_text({"first": [Hang()]}, default=count_user_texts)
    given = {"conversation": "talk", "text": "first", "key": "one"}
    async with AsyncExitStack() as stack:
        provider = stack.enter_context(FakeProvider(script))
        asking = clew.asking(provider)
        _, gateway = stack.enter_context(asking.serving())
        client = await stack.enter_async_context(over_pipes(asking))
        sending = asyncio.create_task(call(client, "send_message", **given))
        await wait_until(lambda: provider.requests)
        gateway.kill()
        stack.enter_context(asking.serving())
        first = await sending
        again = await call(client, "send_message", **given)
        assert again["inbox_id"] == first["inbox_id"]
        assert again["text"] == "turn 1: I have seen: first"
    assert [text for who, text in asking.said("talk") if who == "user"] == ["first"]


def test_without_a_gateway_it_works_by_itself_and_garbage_does_not_end_it(clew: Clew) -> None:
    first = {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "t", "version": "1"},
    }
    said = {"name": "send_message", "arguments": {"conversation": "talk", "text": "hi there"}}
    lines = [
        "hello", "{ not json", "[]", json.dumps({"jsonrpc": "2.0"}),
        _request(1, "initialize", first), _request(2, "tools/call", said),
    ]  # fmt: skip
    with clew.started("mcp", piped=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write("".join(f"{line}\n" for line in lines))
        process.stdin.flush()
        answers = [json.loads(process.stdout.readline()) for _ in lines]
        process.stdin.close()
        assert process.wait(60) == 0
    assert [each["error"]["code"] for each in answers[:4]] == [-32700] * 4
    assert answers[4]["result"]["serverInfo"]["name"] == "clew"
    assert answers[5]["result"]["structuredContent"]["text"] == "You said: hi there"


def test_what_was_sent_before_the_end_of_the_input_is_answered(clew: Clew) -> None:
    client = {"name": "t", "version": "1"}
    first = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client}
    said = {"name": "send_message", "arguments": {"conversation": "talk", "text": "the last"}}
    lines = [_request(1, "initialize", first), _request(2, "tools/call", said)]
    ran = clew.run("mcp", text="".join(f"{line}\n" for line in lines))
    assert ran.code == 0
    answers = [json.loads(line) for line in ran.out.splitlines()]
    assert answers[1]["result"]["structuredContent"]["text"] == "You said: the last"


def _request(number: int, method: str, params: dict[str, Any]) -> str:
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params})
