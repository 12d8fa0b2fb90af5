"""Turns beside plugins whose every hook raises, hangs or answers nonsense, against none."""

from __future__ import annotations

import asyncio
import json
import random
from contextlib import ExitStack
from typing import TYPE_CHECKING

from bench.figures import Figure, percentile
from bench.places import scratch
from bench.turns import provider, serve, turn
from clew.testing.provider import Calls, ScriptedCall, Text

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping
    from pathlib import Path

    from clew.testing.provider import ProviderRequest, Reply

#: Measured turns of each kind beside each plugin, in conversations of this many.
TURNS, IN_ONE = 250, 10
#: Factor by which a turn may take longer than without the plugin.
MOST = 1.1
#: The work of each plugin's hooks, by its name; ``none`` has no plugin.
HOOKS = {
    "none": "",
    "good": "return None",
    "raises": "raise ValueError('as ever')",
    "hangs": "time.sleep(60)",
    "nonsense": "return [object(), {'action': 7}]",
}
_PLUGIN = """
import time
from clew.hooks import specs

def _hook(name):
    def hook():
        {body}
    hook.__name__ = name
    return specs.hookimpl(hook)

for name, made in list(vars(specs).items()):
    if hasattr(made, "clew_spec") and name not in ("register", "configure"):
        globals()[name] = _hook(name)
"""
_TOOLS = """
def look(at: str) -> str:
    \"\"\"Look.\"\"\"
    return f"seen: {at}"

tools = [look]
"""
_WITH_A_TOOL = "look at it"


def script(request: ProviderRequest) -> Reply:
    """Answer as the provider: call the tool where one is asked for, else echo."""
    if request.last_user_text == _WITH_A_TOOL and not request.new_results:
        return Calls([ScriptedCall("look", {"at": "it"})])
    return Text(request.last_user_text)


async def measure() -> list[Figure]:
    return await asyncio.to_thread(_measure)


def _measure() -> list[Figure]:
    with ExitStack() as stack:
        folder = stack.enter_context(scratch())
        asked = stack.enter_context(provider("bench.plugins:script"))
        ports: dict[str, int] = {}
        for name in HOOKS:
            _prepare(folder / name, name)
            errors = stack.enter_context((folder / f"{name}.log").open("w"))
            enabled = [] if name == "none" else [f"plugins.enabled={name}"]
            serving = serve(
                folder / name, asked, None, more=["tools.modules=looking", *enabled], errors=errors
            )
            ports[name] = stack.enter_context(serving).port
        for port in ports.values():
            turn(port, "first")
        first = turn(ports["hangs"], "first", text=_WITH_A_TOOL)
        for _ in range(20):
            for port in ports.values():
                turn(port, "warm", text=_WITH_A_TOOL)
        times = {kind: _times(ports, kind) for kind in ("plain", _WITH_A_TOOL)}
        logs = {name: _named(folder / f"{name}.log", name) for name in HOOKS}
    return [
        *_figures(times["plain"], "a turn"),
        *_figures(times[_WITH_A_TOOL], "a turn with a tool"),
        Figure(name="the first turn with a tool, every hook hangs", value=first, unit="ms"),
        *(
            Figure(
                name=f"records that name the plugin: {name}",
                value=count,
                unit="",
                target=1,
                at_least=True,
            )
            for name, count in logs.items()
            if name not in ("none", "good")
        ),
    ]


def _prepare(home: Path, name: str) -> None:
    plugins = home / "home" / "plugins"
    plugins.mkdir(parents=True, mode=0o700)
    (plugins / f"{name}.py").write_text(_PLUGIN.format(body=HOOKS[name] or "pass"))
    (plugins / "looking.py").write_text(_TOOLS)


def _times(ports: Mapping[str, int], kind: str) -> dict[str, list[float]]:
    """Milliseconds by plugin; all of them in each round, so that the machine is the same to all."""
    times: dict[str, list[float]] = {name: [] for name in ports}
    names = list(ports)
    text = None if kind == "plain" else kind
    for number in range(TURNS):
        random.shuffle(names)
        for name in names:
            talk = f"{kind}{number // IN_ONE}".replace(" ", "-")
            times[name].append(turn(ports[name], talk, text=text))
    return times


def _figures(times: Mapping[str, list[float]], what: str) -> Generator[Figure]:
    without = times["none"]
    for name, does in _DOES.items():
        mine = times[name]
        # Of turns that were made in the same round: what else the machine does passes over both.
        pairs = [ours / theirs for ours, theirs in zip(mine, without, strict=True)]
        yield Figure(
            name=f"{what}, a plugin that {does}, against none",
            value=percentile(pairs, 0.5),
            unit="x",
            target=MOST,
            ratio=percentile(mine, 0.9) / percentile(without, 0.9),
            baseline="at p90",
        )
    yield Figure(name=f"{what}, no plugin", value=percentile(without, 0.5), unit="ms")


_DOES = {
    "good": "does nothing",
    "raises": "raises",
    "hangs": "hangs",
    "nonsense": "answers nonsense",
}


def _named(log: Path, name: str) -> int:
    """Return the number of records that name the plugin."""
    records = [json.loads(line) for line in log.read_text().splitlines() if line.startswith("{")]
    return sum(record.get("plugin") == name for record in records)
