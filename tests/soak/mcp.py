"""
MCP servers that are dead, that are killed in mid call, that have a thousand tools, and that change
them.

``CLEW_SOAK_KILLS`` and ``CLEW_SOAK_TURNS`` change the run.
"""

from __future__ import annotations

import asyncio
import json
import os
import tempfile
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, Final

from clew.config.toml_edit import to_toml
from clew.features.mcp.connection import CONNECT_TIMEOUT
from clew.features.mcp.definitions import McpTool
from clew.features.mcp.ranking import rank_tools
from clew.features.mcp.settings import McpServer
from tests.acceptance.program import Clew
from tests.features.mcp_catalogue import make_tools, make_wishes
from tests.features.mcp_changes import change_tools
from tests.features.mcp_world import Plan, open_mcp
from tests.integration.test_supervisor import read_memory
from tests.soak import Table
from tests.waiting import PATIENCE, wait_until

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping

    from tests.features.mcp_catalogue import Wish
    from tests.features.mcp_world import McpWorld

KILLS = int(os.environ.get("CLEW_SOAK_KILLS", "100"))
TURNS = int(os.environ.get("CLEW_SOAK_TURNS", "30"))
CHANGES: Final = 50
STARTS: Final = 5
#: Servers that work, and that do not.
_ALIVE, _DEAD = 5, 15
_ECHO: Final = {"echo": {"description": "Say something again"}}
_STORE: Final = "sqlite:///clew.db"

Row = tuple[str, str, str, bool]


def run() -> Table:
    with tempfile.TemporaryDirectory(prefix="clew-soak-") as name:
        home = Path(name)
        found = [
            compare_starts(home / "starts"),
            *asyncio.run(compare_turns(home / "turns", TURNS)),
            *asyncio.run(kill_servers(home / "kills", KILLS)),
            *asyncio.run(compare_requests(home / "tools")),
            *asyncio.run(change_tools(home / "changes", CHANGES)),
            rank_wishes(make_wishes(), 95),
        ]
    return Table(
        title="MCP servers",
        columns=("what", "measured", "must be", "holds"),
        rows=tuple((what, got, must, "yes" if holds else "NO") for what, got, must, holds in found),
        passed=all(holds for *_, holds in found),
    )


def make_servers(home: Path) -> dict[str, McpServer]:
    """Servers of which most are dead or hang."""
    home.mkdir(parents=True, exist_ok=True)
    servers: dict[str, McpServer] = {}
    for number in range(_ALIVE + _DEAD):
        name = f"s{number}"
        begins = None if number < _ALIVE else ("die", "hang", "rave")[number % 3]
        plan = Plan(home / f"{name}.json", _ECHO if begins is None else {}, begins=begins)
        servers[name] = plan.make_server(trust="full")
        if number == _ALIVE:
            servers[name] = McpServer(url="http://127.0.0.1:9/mcp")
    return servers


def compare_starts(home: Path) -> Row:
    """Compare how long a gateway takes to be ready."""
    servers = make_servers(home)
    for name, config in (("none", ""), ("some", _write_config(servers))):
        (home / name).mkdir(parents=True, exist_ok=True)
        (home / name / "config.toml").write_text(config)
    times: dict[str, list[float]] = {"none": [], "some": []}
    for _ in range(STARTS):
        for name, found in times.items():
            clew = Clew(home / name, {"CLEW_MODEL__NAME": "offline"})
            with _measured(found), clew.serving(fresh=True) as (_, process):
                pass
            process.wait(PATIENCE)
    return _compare("ready, seconds", times, 1.1)


def _write_config(servers: Mapping[str, McpServer]) -> str:
    lines = [
        f"[mcp.{name}]\nurl = {to_toml(one.url)}"
        if one.url
        else f'[mcp.{name}]\nlevel = "host"\ncommand = {to_toml([*one.command])}'
        for name, one in servers.items()
    ]
    return "\n".join([*lines, ""])


@contextmanager
def _measured(times: list[float]) -> Generator[None]:
    began = time.perf_counter()
    yield
    times.append(time.perf_counter() - began)


def _compare(what: str, times: Mapping[str, list[float]], most: float) -> Row:
    none, some = median(times["none"]), median(times["some"])
    told = f"{none:.3f} without servers, {some:.3f} with {_ALIVE + _DEAD}: {some / none:.2f}x"
    return what, told, f"≤ {most}x", some <= most * none


async def compare_turns(home: Path, turns: int) -> list[Row]:
    """Compare turns that call no server, and see that each dead one is named with its reason."""
    times: dict[str, list[float]] = {"none": [], "some": []}
    servers = make_servers(home)
    async with (
        open_mcp(home / "none", _STORE, {}) as without,
        open_mcp(home / "some", _STORE, servers) as with_some,
    ):
        with_some.pool.start()
        await wait_until(lambda: with_some.get(f"s{_ALIVE}").status.why)
        for _ in range(turns):
            for name, world in (("none", without), ("some", with_some)):
                await _time_turn(world, times[name])
        shown = await with_some.command("/mcp")
        named = sum(": down since" in line or "before: " in line for line in shown.splitlines())
        hung = sum(": connecting" in line and "before" not in line for line in shown.splitlines())
    told = f"{named} with their reason, {hung} that hang until {CONNECT_TIMEOUT:g} s"
    return [
        _compare("a turn without calls, seconds", times, 1.05),
        ("dead servers in /mcp", told, str(_DEAD), named + hung == _DEAD),
    ]


async def _time_turn(world: McpWorld, times: list[float]) -> None:
    with _measured(times):
        await world.say("hello")


async def kill_servers(home: Path, kills: int) -> list[Row]:
    """Kill servers in mid call, of calls that may be repeated and others."""
    pure = {"act": {"does": "die odd", "annotations": {"read_only_hint": True}}}
    plans = {
        "pure": Plan(home / "pure.json", pure),
        "once": Plan(home / "once.json", {"act": {"does": "die"}}),
    }
    servers = {name: plan.make_server(trust="full") for name, plan in plans.items()}
    async with open_mcp(home / "home", _STORE, servers) as world:
        for name in servers:
            await world.get(name).need(PATIENCE)
        most = max(len(_find_programs(plan)) for plan in plans.values())
        await _kill_in(world, "pure", "once")
        before, tasks = read_memory(os.getpid()), len(asyncio.all_tasks())
        told = [await _kill_in(world, "pure", "once") for _ in range(kills // 2)]
        with suppress(AssertionError):
            # The last connection may still be closing.
            await wait_until(lambda: len(asyncio.all_tasks()) <= tasks, seconds=10)
        grown, left = read_memory(os.getpid()) - before, len(asyncio.all_tasks()) - tasks
        alive = {name: len(_find_programs(plan)) for name, plan in plans.items()}
        calls = {name: len(plan.calls) for name, plan in plans.items()}
    retried = sum(pair[0] == '{"n": 1}' for pair in told)
    unknown = sum(pair[1].startswith("interrupted, outcome unknown") for pair in told)
    rounds = len(told)
    gone = sum(len(_find_programs(plan)) for plan in plans.values())
    wanted = {"pure": 2 * (rounds + 1), "once": rounds + 1}
    is_alone = max(alive.values()) <= most
    return [
        ("pure calls answered after a kill", str(retried), str(rounds), retried == rounds),
        ("other calls whose outcome is unknown", str(unknown), str(rounds), unknown == rounds),
        ("calls that reached a server", str(calls), str(wanted), calls == wanted),
        (
            "processes, then after the end",
            f"{alive}, {gone}",
            f"≤ {most}, 0",
            is_alone and not gone,
        ),
        ("tasks more than before", str(left), "≤ 0", left <= 0),
        ("memory more than before, MB", f"{grown / 1e6:.1f}", "≤ 2", grown <= 2_000_000),
    ]


async def _kill_in(world: McpWorld, *names: str) -> tuple[str, ...]:
    return tuple([await _call(world, name) for name in names])


async def _call(world: McpWorld, name: str) -> str:
    """Call a server that dies of it, once it is up."""
    await wait_until(lambda: _is_up(world, name))
    return await world.call_tool(name, "act", n=1)


async def _is_up(world: McpWorld, name: str) -> bool:
    try:
        await world.get(name).need(PATIENCE)
    except Exception:  # noqa: BLE001  (it is being started again)
        return False
    return True


def _find_programs(plan: Plan) -> list[str]:
    found: list[str] = []
    for one in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if str(plan.path).encode() in one.read_bytes().split(b"\0"):
                found.append(one.parent.name)
        except OSError:
            continue
    return found


async def compare_requests(home: Path) -> list[Row]:
    """Compare the definitions of tools in requests, without servers and with a thousand tools."""
    sizes: list[int] = []
    made = make_tools()
    plans = {name: Plan(home / f"{name}.json", tools) for name, tools in made.items()}
    for servers in ({}, {name: plan.make_server() for name, plan in plans.items()}):
        async with open_mcp(home / str(len(servers)), _STORE, servers) as world:
            for name in servers:
                await world.get(name).need(PATIENCE)
            assert sum(len(one.tools) for one in world.pool.servers.values()) in (0, 1_000)
            await world.say("hello")
            sizes.append(_size(world.sent[-1].raw))
    more = sizes[1] - sizes[0]
    told = f"{sizes[0]:,} and {sizes[1]:,}: {more:,} more"
    what = "bytes of a request, 1,000 tools of 12 servers"
    return [(what, told, "≤ 1,024 more", more <= 1_024)]


def _size(request: Mapping[str, Any]) -> int:
    # Another tool comes with any tool: it reads long results.
    tools = [one for one in request.get("tools", []) if one["function"]["name"].startswith("mcp")]
    return len(json.dumps(tools, separators=(",", ":")))


def rank_wishes(wishes: list[Wish], least: int) -> Row:
    """Look for the tool of each wish among all."""
    tools = [
        McpTool(
            server=server, name=name, description=one["description"], schema=one["schema"],
            annotations={},
        )
        for server, made in make_tools().items()
        for name, one in made.items()
    ]  # fmt: skip
    found = [_is_among_first(wish, tools) for wish in wishes]
    what = f"wishes whose tool is among the first three of {len(tools):,}"
    return what, f"{sum(found)} of {len(wishes)}", f"≥ {least}", sum(found) >= least


def _is_among_first(wish: Wish, tools: list[McpTool]) -> bool:
    first = rank_tools(wish.query, tools)[:3]
    return (wish.server, wish.tool) in {(tool.server, tool.name) for tool in first}
