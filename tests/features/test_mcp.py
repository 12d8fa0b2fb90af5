"""MCP servers: found, called, decided about, broken off, and ended with the gateway."""

from __future__ import annotations

import json
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx2
import pytest

from clew.api.app import create_app
from clew.core.effect import Effect
from clew.core.route import local_route
from clew.features.mcp import trying
from clew.features.mcp.arguments import find_problem
from clew.features.mcp.connection import ServerDown
from clew.features.mcp.definitions import McpTool, list_tools, replace_tools
from clew.features.mcp.settings import McpServer
from clew.store.transactions.approvals import list_open_approvals
from tests.features.delegation_world import do
from tests.features.mcp_catalogue import make_wishes
from tests.features.mcp_world import McpWorld, Plan, open_mcp
from tests.integration.api_server import TOKEN
from tests.soak.mcp import compare_requests, kill_servers, rank_wishes
from tests.waiting import PATIENCE, wait_until

_ECHO = {
    "echo": {
        "description": "Say something again",
        "schema": {"properties": {"text": {"type": "string"}}},
    }
}
_READS = {"annotations": {"read_only_hint": True}}


async def test_a_tool_is_found_by_its_words_and_called(tmp_path: Path, store_url: str) -> None:
    plan = Plan(tmp_path / "plan.json", {**_ECHO, "add": {"description": "Add two numbers"}})
    server = plan.make_server(official=True, trust="full")
    async with open_mcp(tmp_path, store_url, {"talk": server}) as world:
        await world.get("talk").need(PATIENCE)
        found = await world.call("mcp_find", query="say something again please")
        assert 'tool "add"' not in found
        assert '"text":{"type":"string"}' in found
        assert json.loads(await world.call_tool("talk", "echo", text="hi")) == {"text": "hi"}
        wrong = await world.call_tool("talk", "echo", text=7)
        assert "was not called: text: 7 is not of type 'string'. It takes" in wrong
        assert "no tool 'ech'; there are echo" in await world.call_tool("talk", "ech")
        assert [name for name, *_ in plan.calls] == ["echo"]


async def test_a_tool_that_changes_or_vanishes_is_called_as_it_is_now(
    tmp_path: Path, store_url: str
) -> None:
    plan = Plan(tmp_path / "plan.json", _ECHO)
    async with open_mcp(tmp_path, store_url, {"talk": plan.make_server(trust="full")}) as world:
        await world.get("talk").need(PATIENCE)
        await world.call_tool("talk", "echo", text="one")
        needs = {"required": ["to"], "properties": {"to": {"type": "string"}}}
        plan.write({"echo": {"schema": needs}, "new": {}})
        world.get("talk").forget_list()
        assert "'to' is a required property" in await world.call_tool("talk", "echo", text="two")
        assert json.loads(await world.call_tool("talk", "new")) == {}
        plan.write({"new": {}})
        world.get("talk").forget_list()
        assert "has no tool 'echo'" in await world.call_tool("talk", "echo", to="me")
        assert [args for _, args, _ in plan.calls] == [{"text": "one"}, {}]
        first, *rest = [request.raw["tools"] for request in world.sent]
        assert all(tools == first for tools in rest)


async def test_annotations_count_only_as_far_as_the_server_is_trusted(
    tmp_path: Path, store_url: str
) -> None:
    plan = Plan(tmp_path / "plan.json", {"look": _READS, "change": {}})
    servers = {name: plan.make_server(trust=name) for name in ("none", "annotations", "full")}
    async with open_mcp(tmp_path, store_url, servers) as world:
        for server in servers:
            await world.get(server).need(PATIENCE)
        pairs = [(server, tool) for server in servers for tool in ("look", "change")]
        asks = [pair for pair in pairs if await _asks(world, *pair)]
        assert asks == [("none", "look"), ("none", "change"), ("annotations", "change")]
        # The answer to a call of no server needs nobody's word.
        assert not await _asks(world, "nowhere", "look")
        assert "there is no MCP server 'nowhere'" in await world.call_tool("nowhere", "look")


def find_programs(word: str) -> list[str]:
    """Return the processes of this machine with a word in their command line."""
    found: list[str] = []
    for one in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            if word.encode() in one.read_bytes().split(b"\0"):
                found.append(one.parent.name)
    return found


async def _asks(world: McpWorld, server: str, tool: str) -> bool:
    """Have the model call a tool; whether a person is asked."""
    route = local_route(f"{server}-{tool}")
    arguments: dict[str, Any] = {"server": server, "tool": tool, "args": {}}
    accepted = await world.engine.submit(do(("mcp_call", arguments)), target=route)

    async def is_settled() -> str | None:
        conversation = await world.conversation(route)
        if await world.store.read(list_open_approvals, conversation):
            return "asks"
        entries = await world.log(route)
        return "ran" if any("told: " in entry.text for entry in entries) else None

    assert accepted
    return await wait_until(is_settled) == "asks"


@pytest.mark.parametrize(
    ("does", "annotations", "told"),
    [
        ("die once", {"read_only_hint": True}, '{"n": 1}'),
        ("die once", {"idempotent_hint": True}, '{"n": 1}'),
        ("die once", {}, "interrupted, outcome unknown: "),
        ("fail", {}, "error: talk refuses: "),
    ],
)
async def test_a_call_that_is_broken_off_is_repeated_only_if_it_may_be(
    tmp_path: Path, store_url: str, does: str, annotations: dict[str, Any], told: str
) -> None:
    plan = Plan(tmp_path / "plan.json", {"act": {"does": does, "annotations": annotations}})
    async with open_mcp(tmp_path, store_url, {"talk": plan.make_server(trust="full")}) as world:
        await world.get("talk").need(PATIENCE)
        assert (await world.call_tool("talk", "act", n=1)).startswith(told)
        keys = [key for _, _, key in plan.calls]
        assert len(keys) == (2 if told == '{"n": 1}' else 1)
        is_keyed = "idempotent_hint" in annotations
        assert len(set(keys)) == 1
        assert (keys[0] is not None) == is_keyed


async def test_dead_servers_are_named_with_their_reason(tmp_path: Path, store_url: str) -> None:
    dead = Plan(tmp_path / "dead.json", {}, begins="die")
    noisy = Plan(tmp_path / "noisy.json", _ECHO, begins="garbage")
    servers = {
        "dead": dead.make_server(),
        "gone": McpServer(command=("/nonexistent/program",), level="host"),
        "far": McpServer(url="http://127.0.0.1:9/mcp"),
        "noisy": noisy.make_server(trust="full"),
    }
    async with open_mcp(tmp_path, store_url, servers) as world:
        world.pool.start()
        ends = [world.get(name) for name in ("dead", "gone", "far")]
        await wait_until(lambda: all(one.status.why for one in ends))
        await world.get("noisy").need(PATIENCE)
        assert json.loads(await world.call_tool("noisy", "echo", text="hi")) == {"text": "hi"}

        # Also while it is tried again.
        shown = await world.command("/mcp")
        assert "no licence" in shown
        assert "noisy (a command at host): up" in shown
        assert await _show_reason(world, "") is None
        assert "no licence" in str(await _show_reason(world, TOKEN))
        for finding in await trying.check_servers({"dead": servers["dead"]}, world.settings):
            assert "no licence" in finding.detail


async def _show_reason(world: McpWorld, token: str) -> str | None:
    """What ``/readyz`` says of a server that is dead."""
    transport = httpx2.ASGITransport(app=create_app(world.engine, world.settings))
    headers = {"Authorization": f"Bearer {token}"}
    async with httpx2.AsyncClient(transport=transport, base_url="http://localhost") as http:
        told = await http.get("/readyz", headers=headers)
    assert (told.status_code, told.json()["status"]) == (200, "ok")
    return told.json()["parts"]["mcp:dead"]["why"]


@pytest.mark.parametrize("level", ["work", "host"])
async def test_a_server_runs_at_its_level_and_ends_with_its_connection(
    tmp_path: Path, store_url: str, level: str
) -> None:
    place = tmp_path / "clew.db.private"
    place.write_text("secret")
    plan = Plan(
        tmp_path / "server" / "plan.json",
        {"look": {"does": "look", "place": str(place), **_READS}},
    )
    readable = (sys.prefix, sys.base_prefix, str(plan.path.parent), str(Path(__file__).parent))
    server = plan.make_server(level=level, readable=readable)
    async with open_mcp(tmp_path / "home", store_url, {"box": server}) as world:
        connection = world.get("box")
        try:
            await connection.need(PATIENCE)
        except ServerDown as error:
            if "there is no sandbox" not in str(error):
                raise
            pytest.skip(str(error))
        result = await connection.call(connection.tools["look"], {}, key=None)
        seen = json.loads(result.content[0].text)
        assert seen["there"] is (level == "host")
        assert "CLEW_HOME" not in seen["env"]
        before = find_programs(str(plan.path))
        assert before
        await connection.close()
        await wait_until(lambda: not find_programs(str(plan.path)))


async def test_tools_of_any_name_are_kept_as_they_are(store_url: str, tmp_path: Path) -> None:
    names = ["a__b", "ü ß/日本", "x" * 200, "A__B", "a.b"]
    plan = Plan(
        tmp_path / "plan.json", {name: {"description": name} for name in [*names, "y" * 300]}
    )
    async with open_mcp(tmp_path, store_url, {"odd": plan.make_server(trust="full")}) as world:
        await world.get("odd").need(PATIENCE)
        for name in names:
            assert json.loads(await world.call_tool("odd", name, at=name)) == {"at": name}
        assert [name for name, *_ in plan.calls] == names
        assert world.get("odd").left_out == 1
        stored = await world.store.read(list_tools, ["odd"])
        assert {one.name for one in stored} == set(names)


async def test_resources_are_listed_and_read(tmp_path: Path, store_url: str) -> None:
    plan = Plan(tmp_path / "plan.json", {}, resources={"note://milk": "buy milk"})
    async with open_mcp(tmp_path, store_url, {"notes": plan.make_server()}) as world:
        await world.get("notes").need(PATIENCE)
        assert "Resource notes note://milk" in await world.call("mcp_find", query="notes")
        assert await world.call("mcp_read", server="notes", uri="note://milk") == "buy milk"
        assert "refuses" in await world.call("mcp_read", server="notes", uri="note://bread")


@pytest.mark.both_databases
async def test_tools_are_stored_until_their_server_lists_them_no_more(
    tmp_path: Path, store_url: str
) -> None:
    async with open_mcp(tmp_path, store_url, {}) as world:
        await world.store.write(replace_tools, "s", [_tool("one"), _tool("two")])
        changed = _tool("two", description="other \u0000")
        await world.store.write(replace_tools, "s", [changed])
        assert await world.store.read(list_tools, ["s"]) == [changed]
        assert await world.store.read(list_tools, ["t"]) == []


def _tool(name: str, description: str = "") -> McpTool:
    return McpTool(server="s", name=name, description=description, schema={}, annotations={})


async def test_servers_killed_in_mid_call_leave_nothing_behind(tmp_path: Path) -> None:
    # ``make soak mcp`` kills a hundred times, and compares memory and times as well.
    *rows, _ = await kill_servers(tmp_path, 4)
    assert [row for row in rows if not row[-1]] == []


async def test_a_thousand_tools_make_requests_hardly_longer_and_are_found(tmp_path: Path) -> None:
    rows = [*await compare_requests(tmp_path), rank_wishes(make_wishes()[:10], 10)]
    assert [row for row in rows if not row[-1]] == []


def test_arguments_are_compared_with_any_schema_without_fetching_anything() -> None:
    assert find_problem({"type": "object", "required": ["a"]}, {}) == "'a' is a required property"
    assert find_problem({"$ref": "http://127.0.0.1:9/schema"}, {}) is None
    assert find_problem({"type": 7}, {}) is None
    evil = {"properties": {"a": {"type": "string", "pattern": "^(a+)+$"}}}
    assert find_problem(evil, {"a": "a" * 60 + "!"}) is None


def test_a_server_that_is_not_trusted_cannot_lower_the_class_of_a_tool() -> None:
    hints = {"readOnlyHint": True, "idempotentHint": True}
    tool = McpTool(server="s", name="t", description="", schema={}, annotations=hints)
    assert tool.find_effect("none") is Effect.ONCE
    assert tool.find_effect("annotations") is Effect.PURE
