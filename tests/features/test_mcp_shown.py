"""Tools of MCP servers in the list of a session: frozen there, and called as they are now."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest

from clew.core.route import local_route
from clew.features.mcp.definitions import McpTool
from clew.features.mcp.shown_tools import is_presentable, make_shown_name
from tests.features.delegation_world import do
from tests.features.mcp_changes import change_plan, change_tools, list_shown
from tests.features.mcp_world import Plan, open_mcp
from tests.features.memory_world import HOME
from tests.waiting import PATIENCE

if TYPE_CHECKING:
    from pathlib import Path


async def test_a_list_stays_while_its_tools_appear_change_and_vanish(tmp_path: Path) -> None:
    # ``make soak mcp`` changes them fifty times.
    rows = await change_tools(tmp_path, 8)
    assert [row for row in rows if not row[-1]] == []


async def test_names_in_a_list_lead_to_one_tool_each(tmp_path: Path, store_url: str) -> None:
    names = ["b__c", "ü ß/日本", "x" * 200, "x" * 199 + "y", "A", "a.b", "_a"]
    plans = {name: Plan(tmp_path / f"{name}.json", {one: {} for one in names}) for name in "ab"}
    plans["a__b"] = Plan(tmp_path / "ab.json", {"c": {}, "_a": {}})
    plans["a_"] = Plan(tmp_path / "a_.json", {"a": {}, "_a": {}})
    servers = {name: plan.make_server(trust="full", show=True) for name, plan in plans.items()}
    async with open_mcp(tmp_path, store_url, servers) as world:
        for server in servers:
            await world.get(server).need(PATIENCE)
        tools = [tool for one in world.pool.servers.values() for tool in one.tools.values()]
        calls = [
            (make_shown_name(tool.server, tool.name), {"at": f"{tool.server} {tool.name}"})
            for tool in tools
        ]
        told = await world.say(do(*calls))
        assert told.removeprefix("told: ").split(" | ") == [json.dumps(args) for _, args in calls]
        shown = list_shown(world)
        assert len(set(shown)) == len(shown) == len(tools)
        assert all(re.fullmatch("[a-zA-Z0-9_-]{1,64}", name) for name in shown)
        for name, plan in plans.items():
            assert plan.calls
            assert all(args == {"at": f"{name} {tool}"} for tool, args, _ in plan.calls)


async def test_a_listed_tool_is_decided_about_as_the_call_that_it_stands_for(
    tmp_path: Path, store_url: str
) -> None:
    plan = Plan(tmp_path / "plan.json", {"echo": {}})
    async with open_mcp(tmp_path, store_url, {"talk": plan.make_server(show=True)}) as world:
        await world.get("talk").need(PATIENCE)
        await world.engine.submit(do(("mcp__talk__echo", {"n": 1})), target=HOME)
        asked = await world.question()
        assert asked.tool == "mcp_call"
        assert json.loads(asked.args) == {"server": "talk", "tool": "echo", "args": {"n": 1}}
        assert plan.calls == []
        assert (await world.command(f"/approve {asked.id}")).startswith("Allowed: mcp_call")
        await world.settle()
        assert [args for _, args, _ in plan.calls] == [{"n": 1}]


@pytest.mark.both_databases
async def test_a_reload_lists_the_tools_of_now_and_says_what_it_costs(
    tmp_path: Path, store_url: str
) -> None:
    ten: dict[str, Any] = {f"t{n}": {} for n in range(10)}
    plan, other = Plan(tmp_path / "plan.json", ten), Plan(tmp_path / "other.json", {"one": {}})
    servers = {
        "box": plan.make_server(trust="full", show=True),
        "behind": other.make_server(trust="full"),
    }
    async with open_mcp(tmp_path, store_url, servers) as world:
        await world.get("box").need(PATIENCE)
        assert "no conversation here yet" in await world.command("/mcp reload")
        await world.say("hello")
        assert len(list_shown(world)) == 10
        # One more: new lists have none of them, this one keeps what it has.
        await change_plan(world, "box", plan, {**ten, "t10": {}})
        assert json.loads(await world.call("mcp__box__t3", n=1)) == {"n": 1}
        assert len(list_shown(world)) == 10
        await world.say("hello", local_route("later"))
        assert list_shown(world) == []

        await change_plan(world, "box", plan, {"t0": {}, "new": {}})
        told = await world.command("/mcp reload")
        assert "Listed from now on: box 2." in told
        assert re.search(r"reads the context, about [\d,]+ tokens, without its cache", told)
        await world.say("again")
        assert list_shown(world) == ["mcp__box__t0", "mcp__box__new"]
        # The context is as it was.
        assert [one.text for one in world.sent[-1].messages][:2] == ["hello", "done: hello"]
        # A server that is down is a state, not a tool that is missing.
        plan.write({}, begins="die")
        world.get("box").lose(OSError("pulled out"))
        assert "the MCP server box is " in await world.call("mcp__box__new")
        await world.check()


@pytest.mark.parametrize(
    ("schema", "presentable"),
    [
        ({"type": "object", "properties": {"a": {"type": "string"}}}, True),
        ({}, True),
        ({"type": "string"}, False),
        ({"type": "object", "anyOf": [{"required": ["a"]}]}, False),
        ({"type": "object", "properties": {"a b": {}}}, False),
        ({"type": "object", "properties": {"a": {"$ref": "http://127.0.0.1:9/x"}}}, False),
        ({"type": "object", "properties": {"a": {"type": 7}}}, False),
        ({"type": "object", "description": "\ud800"}, False),
        ({"type": "object", "description": "x" * 9_000}, False),
    ],
)
def test_a_schema_that_a_provider_may_refuse_is_only_found(
    schema: dict[str, Any], presentable: bool
) -> None:
    tool = McpTool(server="s", name="t", description="", schema=schema, annotations={})
    assert is_presentable(tool) is presentable
