"""A command in the sandbox against the same command without, one after the other."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING

from bench.figures import Figure, percentile
from bench.places import scratch
from clew.sandbox.bubblewrap import BubblewrapSandbox
from clew.sandbox.protocol import limit_argv
from clew.sandbox.request import SandboxPolicy, SandboxRequest
from clew.sandbox.runner import run_command
from clew.sandbox.selection import make_candidates
from clew.sandbox.unconfined import UnconfinedHost

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from clew.sandbox.protocol import Sandbox

COMMANDS = 100
#: Milliseconds that the level ``work`` may add, with the sandbox that is in force.
MOST = 15.0
#: Milliseconds that the level ``net`` may add to ``work``.
MOST_NET = 5.0
NET = "net"


class PlainCommand(UnconfinedHost):
    """A command without anything around it but its limits."""

    end_signal = None

    def wrap(self, argv: Sequence[str], request: SandboxRequest) -> list[str]:
        return limit_argv(argv, request)


async def measure() -> list[Figure]:
    with scratch() as folder:
        candidates = make_candidates(SandboxPolicy(folder=folder))
        found = [each for each in candidates if (await each.probe()).works]
        times = await _times(folder, [PlainCommand(), *found])
    plain, net = times.pop("no sandbox"), times.pop(NET, None)
    return [
        Figure(name="a command without a sandbox", value=percentile(plain, 0.5), unit="ms"),
        *(
            Figure(
                name=f"a command in {name}, more than without",
                value=percentile(mine, 0.5) - percentile(plain, 0.5),
                unit="ms",
                target=MOST if name == found[0].name else None,
                ratio=percentile(mine, 0.5) / percentile(plain, 0.5),
                baseline="without",
            )
            for name, mine in times.items()
        ),
        *(() if net is None else (_compare_net(net, times[found[0].name]),)),
    ]


def _compare_net(net: list[float], work: list[float]) -> Figure:
    return Figure(
        name="a command at the level net, more than at work",
        value=percentile(net, 0.5) - percentile(work, 0.5),
        unit="ms",
        target=MOST_NET,
        ratio=percentile(net, 0.5) / percentile(work, 0.5),
        baseline="at work",
    )


async def _times(folder: Path, sandboxes: list[Sandbox]) -> dict[str, list[float]]:
    """Milliseconds by sandbox; all in each round, so that the machine is the same to all."""
    times: dict[str, list[float]] = {each.name: [] for each in sandboxes}
    request = SandboxRequest(workspace=folder / "workspace")
    runs = [(each.name, each, request) for each in sandboxes]
    # Without a gateway behind it: the way to the socket is what costs at the start.
    reaching = replace(request, level="net", proxy=folder / "net.sock")
    runs += [(NET, each, reaching) for each in sandboxes if isinstance(each, BubblewrapSandbox)]
    for _ in range(COMMANDS):
        for name, sandbox, each in runs:
            begun = time.perf_counter()
            await run_command(["/bin/true"], each, sandbox)
            times.setdefault(name, []).append((time.perf_counter() - begun) * 1000)
    return times
