"""A gateway with all built-in features beside one without any: turns, memory, start."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack
from typing import TYPE_CHECKING

from bench.figures import Figure, percentile
from bench.places import scratch
from bench.turns import provider, rss, serve, turn
from clew.plugin.loading import BUILT_IN

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from bench.turns import Server

#: Measured turns, in conversations of ``IN_ONE``.
TURNS, IN_ONE = 300, 10
#: Limits for all features together: factor for a turn, and megabytes.
LONGER, LARGER = 1.25, 12.0
_KINDS = {"none": ["features.disabled=" + ",".join(BUILT_IN)], "all": []}


async def measure() -> list[Figure]:
    return await asyncio.to_thread(_measure)


def _measure() -> list[Figure]:
    with ExitStack() as stack:
        folder = stack.enter_context(scratch())
        asked = stack.enter_context(provider())
        ready = _times_to_start(folder, asked)
        servers = {
            kind: stack.enter_context(serve(folder / kind, asked, None, more=more))
            for kind, more in _KINDS.items()
        }
        times = _times_of_turns(servers)
        memory = {kind: rss(server.process.pid) for kind, server in servers.items()}
    middle = {kind: percentile(each, 0.5) for kind, each in times.items()}
    started = {kind: percentile(each, 0.5) for kind, each in ready.items()}
    ratio = middle["all"] / middle["none"]
    return [
        Figure(name="a turn with all built-ins", value=middle["all"], unit="ms"),
        Figure(name="the same, relative to none", value=ratio, unit="x", target=LONGER),
        Figure(
            name="memory of all built-ins",
            value=memory["all"] - memory["none"],
            unit="MB",
            target=LARGER,
        ),
        Figure(
            name="ready after exec, all built-ins",
            value=started["all"],
            unit="s",
            target=0.5,
            ratio=started["all"] / started["none"],
            baseline="none",
        ),
    ]


def _times_to_start(folder: Path, asked: str) -> dict[str, list[float]]:
    ready: dict[str, list[float]] = {kind: [] for kind in _KINDS}
    for kind, more in (*_KINDS.items(),) * 5:
        with serve(folder / f"{kind}-start", asked, None, more=more) as server:
            ready[kind].append(server.ready)
    return ready


def _times_of_turns(servers: Mapping[str, Server]) -> dict[str, list[float]]:
    """Milliseconds; both in each round, so that the machine is the same to both."""
    times: dict[str, list[float]] = {kind: [] for kind in servers}
    for number in range(-IN_ONE, TURNS):
        for kind, server in servers.items():
            times[kind].append(turn(server.port, f"c{number // IN_ONE}"))
    return {kind: each[IN_ONE:] for kind, each in times.items()}
