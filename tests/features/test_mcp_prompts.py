"""Prompts of MCP servers as chat commands, and what a server gets that asks the client."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from clew.core.command_text import is_command
from clew.features.mcp.prompts import parse_arguments
from clew.store.transactions.grants import is_tainted
from tests.features.mcp_world import Plan, open_mcp
from tests.features.memory_world import HOME
from tests.waiting import PATIENCE

if TYPE_CHECKING:
    from pathlib import Path

_ARGUMENTS = [{"name": "file", "required": True}, {"name": "how"}]


async def test_a_prompt_is_listed_and_sent_by_its_command(tmp_path: Path, store_url: str) -> None:
    prompts = {"review": {"description": "Look at a file", "arguments": _ARGUMENTS}, "Ü-1": {}}
    plan = Plan(tmp_path / "plan.json", {}, prompts=prompts)
    async with open_mcp(tmp_path, store_url, {"my-files": plan.make_server()}) as world:
        await world.get("my-files").need(PATIENCE)
        shown = await world.command("/mcp my-files")
        assert "- /my-files:review file=… [how=…]: Look at a file" in shown
        sent = await world.command("/my-files:review file='a b.py' how=fast")
        text = 'review with {"file": "a b.py", "how": "fast"}'
        assert sent == f"Sent, from my-files: {text} [assistant] {text}"
        await world.settle()
        question, answer = await world.log()
        assert question.text == f"{text}\n\n[assistant] {text}"
        assert answer.text == f"done: {text}"
        # A stranger may have written it.
        conversation = await world.conversation()
        assert await world.store.read(is_tainted, conversation)
        assert "Ü-1 with {}" in await world.command("/my-files:Ü-1")
        # Its turn is not cut off in the middle of a request by the end of the test.
        await world.settle()
        assert "File is missing: /my-files:review file=…" in await world.command("/my-files:review")
        assert "no prompt 'reviev'; there are" in await world.command("/my-files:reviev x")
        assert "no MCP server 'files'" in await world.command("/files:review")
        plan.write({}, begins="die", prompts=prompts)
        world.get("my-files").lose(OSError("pulled out"))
        assert "The MCP server my-files is " in await world.command("/my-files:review file=a")


@pytest.mark.parametrize(
    ("text", "names", "arguments"),
    [
        ("", ["a"], {}),
        ("a=1 b='x y'", ["a", "b"], {"a": "1", "b": "x y"}),
        ("look at x=1", ["a", "b"], {"a": "look at x=1"}),
        ("it's", ["a"], {"a": "it's"}),
    ],
)
def test_arguments_are_named_or_the_whole_text_is_the_first(
    text: str, names: list[str], arguments: dict[str, str]
) -> None:
    assert parse_arguments(text, names) == arguments


@pytest.mark.parametrize(
    ("text", "is_one"),
    [
        ("/files:review now", True),
        ("/files:review@bot", True),
        ("/etc/hosts is broken", False),
        ("/tmp/a:b", False),
        ("/Files:x", False),
        ("/a::b", False),
    ],
)
def test_a_name_with_a_colon_is_a_command(text: str, is_one: bool) -> None:
    assert is_command(text) is is_one


async def test_a_server_that_asks_the_client_is_refused(tmp_path: Path, store_url: str) -> None:
    asked = ("elicitation/create", "sampling/createMessage")
    plan = Plan(tmp_path / "plan.json", {one: {"does": "ask", "asks": one} for one in asked})
    async with open_mcp(tmp_path, store_url, {"curious": plan.make_server(trust="full")}) as world:
        await world.get("curious").need(PATIENCE)
        for one in asked:
            told = json.loads(await world.call("mcp_call", HOME, server="curious", tool=one))
            assert told["error"]["code"] < 0
            assert "not supported" in told["error"]["message"]
