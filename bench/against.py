"""
``python -m bench.against PROGRAM``: turns of this checkout beside those of another one.

PROGRAM is the ``clew`` of the other checkout's environment. Both gateways run at the same time and
take turns in turn, so that whatever else the machine does slows both alike: the ratios hold on a
busy machine, the milliseconds do not. ``--set NAME=VALUE`` is a setting of this checkout's gateway.
"""

from __future__ import annotations

import argparse
import subprocess
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING

from bench.figures import Figure, percentile, table
from bench.lasting import kill_in_a_request, wait_until_answered
from bench.places import postgres_database, scratch
from bench.turns import CLEW, at_once, get, provider, rss, serve, talk, turn

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence
    from pathlib import Path

    from bench.turns import Server

_ROUNDS, _STARTS = 15, 5
#: Exchanges before the measured ones.
_SHORT, _LONG = 18, 200


class _Pair:
    """This checkout's program, with its settings, and the other one."""

    def __init__(self, other: str, settings: Sequence[str]) -> None:
        self._programs = ((CLEW, settings), (other, ()))

    def serve(
        self, stack: ExitStack, folder: Path, asked: str, urls: Sequence[str | None]
    ) -> list[Server]:
        return [
            stack.enter_context(
                serve(folder / str(number), asked, url, more=settings, program=program)
            )
            for number, ((program, settings), url) in enumerate(
                zip(self._programs, urls, strict=True)
            )
        ]

    def time_starts(self, folder: Path, asked: str) -> Generator[Figure]:
        """Yield the seconds until a gateway is ready, and until it has answered."""
        ready: list[list[float]] = [[], []]
        answered: list[list[float]] = [[], []]
        versions: list[list[float]] = [[], []]
        resumed: list[list[float]] = [[], []]
        for number in range(_STARTS):
            for which, (program, settings) in enumerate(self._programs):
                place = folder / f"start{which}"
                started = time.perf_counter()
                with serve(place, asked, None, more=settings, program=program) as server:
                    get(server.port, "/v1/models")
                    ready[which].append(time.perf_counter() - started)
                    turn(server.port, f"start{number}")
                    answered[which].append(time.perf_counter() - started)
                started = time.perf_counter()
                subprocess.run([program, "--version"], check=True, stdout=subprocess.DEVNULL)
                versions[which].append(time.perf_counter() - started)
                kill_in_a_request(place, f"killed{number}", program=program)
                started = time.perf_counter()
                with serve(place, asked, None, more=settings, program=program) as server:
                    wait_until_answered(server.port, f"killed{number}")
                    resumed[which].append(time.perf_counter() - started)
        yield _compare("models answered after exec", ready, unit="s")
        yield _compare("first answer after exec", answered, unit="s")
        yield _compare("clew --version", versions, unit="s")
        yield _compare("a killed turn is answered, after exec", resumed, unit="s")


def _compare(
    name: str, values: Sequence[Sequence[float]], *, share: float = 0.5, unit: str = "ms"
) -> Figure:
    mine, theirs = (percentile(one, share) for one in values)
    baseline = f"the other ({theirs:.3g} {unit})"
    return Figure(name=name, value=mine, unit=unit, ratio=mine / theirs, baseline=baseline)


def _time_turns(where: str, servers: Sequence[Server]) -> Generator[Figure]:
    rows: dict[str, Callable[[Server, int], float]] = {
        "a turn, 40 messages of context": lambda server, number: turn(server.port, f"c{number}"),
        "the same, streamed": lambda server, number: turn(server.port, f"c{number}", stream=True),
        "a turn, 400 messages of context": lambda server, _: turn(server.port, "long"),
    }
    times: dict[str, list[list[float]]] = {name: [[], []] for name in rows}
    for server in servers:
        talk(server.port, "long", _LONG)
    for number in range(_ROUNDS):
        for server in servers:
            talk(server.port, f"c{number}", _SHORT)
        for name, take in [*rows.items()] * 3:
            for which, server in enumerate(servers):
                times[name][which].append(take(server, number))
    for name, values in times.items():
        for share, label in ((0.5, "p50"), (0.95, "p95")):
            yield _compare(f"{name}, {label}, {where}", values, share=share)
    yield _compare(
        f"320 turns, 8 at once, {where}", [[320 / at_once(s.port, "r")] for s in servers], unit="s"
    )
    memory = [[rss(server.process.pid)] for server in servers]
    yield _compare(f"memory after all of these, {where}", memory, unit="MB")


def _measure(pair: _Pair) -> Generator[Figure]:
    with ExitStack() as stack:
        asked, folder = stack.enter_context(provider()), stack.enter_context(scratch())
        yield from pair.time_starts(folder, asked)
        yield from _time_turns("SQLite", pair.serve(stack, folder, asked, (None, None)))
    with ExitStack() as stack:
        asked, folder = stack.enter_context(provider()), stack.enter_context(scratch())
        urls = [stack.enter_context(postgres_database()) for _ in range(2)]
        yield from _time_turns("PostgreSQL", pair.serve(stack, folder, asked, urls))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.against", description=__doc__)
    parser.add_argument("program", help="the other checkout's clew")
    parser.add_argument("--set", action="append", default=[], dest="settings", metavar="NAME=VALUE")
    arguments = parser.parse_args()
    print(table(_measure(_Pair(arguments.program, arguments.settings))))


if __name__ == "__main__":
    main()
