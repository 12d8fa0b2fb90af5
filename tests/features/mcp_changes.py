"""Tools of an MCP server that appear, change and vanish while a session has them in its list."""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING, Any, Final

from tests.features.mcp_world import Plan, open_mcp
from tests.features.memory_world import HOME
from tests.waiting import PATIENCE

if TYPE_CHECKING:
    from pathlib import Path

    from tests.features.mcp_world import McpWorld

#: Tools at the beginning, and all that there ever are.
_FIRST, _ALL = 4, 6
_GONE: Final = ("is not available any more", "has no tool")

Row = tuple[str, str, str, bool]


def list_shown(world: McpWorld) -> list[str]:
    """The tools of servers in the newest request."""
    names = [one["function"]["name"] for one in world.sent[-1].raw["tools"]]
    return [name for name in names if name.startswith("mcp__")]


async def change_plan(world: McpWorld, server: str, plan: Plan, tools: dict[str, Any]) -> None:
    """Have a server offer other tools, and say so."""
    plan.write(tools)
    world.get(server).forget_list()


async def change_tools(home: Path, rounds: int) -> list[Row]:
    """Change a server's tools before each call, seeded; some calls fit them, others do not."""
    chance, live = random.Random(4), {f"t{n}": 0 for n in range(_FIRST)}
    plan = Plan(home / "plan.json", _describe(live))
    server = plan.make_server(trust="full", show=True)
    right = refused = 0
    async with open_mcp(home, "sqlite:///clew.db", {"box": server}) as world:
        await world.get("box").need(PATIENCE)
        await world.say("hello")
        listed = len(list_shown(world))
        for version in range(1, rounds + 1):
            _change(live, version, chance)
            await change_plan(world, "box", plan, _describe(live))
            asked, sent = _choose(live, version, chance)
            args = {f"v{sent}": 1}
            if asked < _FIRST:
                told = await world.call(f"mcp__box__t{asked}", HOME, **args)
            else:  # not in the list: called by its name at once
                told = await world.call_tool("box", f"t{asked}", **args)
            now = live.get(f"t{asked}")
            right += now == sent and told == json.dumps(args)
            refused += now != sent and _is_told_why(told, now)
        prefixes = {_read_prefix(one.raw) for one in world.sent}
    reached, requests = len(plan.calls), len(world.sent)
    return [
        ("tools in the list of the session", str(listed), str(_FIRST), listed == _FIRST),
        (
            f"calls after {rounds} changes: right, refused with the reason",
            f"{right}, {refused}",
            f"{rounds} in all, some of each",
            right + refused == rounds and min(right, refused) > 0,
        ),
        ("calls that reached the server", str(reached), str(right), reached == right),
        (f"prefixes of {requests} requests", str(len(prefixes)), "1", len(prefixes) == 1),
    ]


def _choose(live: dict[str, int], version: int, chance: random.Random) -> tuple[int, int]:
    """Return the number of a tool, and the version of it that a call takes it for."""
    asked = chance.randrange(_ALL)
    return asked, chance.choice([live.get(f"t{asked}", version), 0])


def _describe(live: dict[str, int]) -> dict[str, Any]:
    return {name: _take(version) for name, version in live.items()}


def _take(version: int) -> dict[str, Any]:
    """A tool that takes nothing but the argument of its version."""
    name = f"v{version}"
    only = {"properties": {name: {"type": "integer"}}, "additionalProperties": False}
    return {"description": f"version {version}", "schema": {**only, "required": [name]}}


def _change(live: dict[str, int], version: int, chance: random.Random) -> None:
    name = f"t{chance.randrange(_ALL)}"
    if live.pop(name, None) is None or chance.random() < 0.6:
        live[name] = version


def _is_told_why(told: str, version: int | None) -> bool:
    if version is None:
        return any(one in told for one in _GONE)
    return f'"required":["v{version}"]' in told


def _read_prefix(raw: Any) -> str:
    system = [one for one in raw["messages"] if one["role"] == "system"]
    return json.dumps([raw["tools"], system])
