"""``python -m bench [NAME ...]``: run measurements and print a table; 1 if a target was missed."""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
import time
from typing import TYPE_CHECKING

import uvloop

from bench import (
    appends,
    builtins,
    channels,
    checking,
    cluster,
    dashboard,
    finding,
    imports,
    jobs,
    lasting,
    plugins,
    rotation,
    sandbox,
    searching,
    terminal,
    turns,
)
from bench.figures import number, table
from bench.places import fsync_millis

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from bench.figures import Figure

BENCHES: dict[str, Callable[[], Coroutine[None, None, list[Figure]]]] = {
    "appends": appends.measure,
    "builtins": builtins.measure,
    "channels": channels.measure,
    "cluster": cluster.measure,
    "dashboard": dashboard.measure,
    "dashboard-search": finding.measure,
    "fsck": checking.measure,
    "fsck-postgres": checking.measure_postgres,
    "idle-jobs": jobs.measure,
    "imports": imports.measure,
    "long-log": lasting.measure_log,
    "plugins": plugins.measure,
    "resume": lasting.measure_resume,
    "rotation": rotation.measure,
    "sandbox": sandbox.measure,
    "search": searching.measure,
    "search-postgres": searching.measure_postgres,
    "tui": terminal.measure,
    "turns": turns.measure,
    "turns-postgres": turns.measure_postgres,
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(BENCHES))
    names = parser.parse_args().names or list(BENCHES)
    if unknown := [name for name in names if name not in BENCHES]:
        parser.error(f"unknown: {', '.join(unknown)}; there are {', '.join(BENCHES)}")
    _drop_network_variables()
    figures: list[Figure] = []
    for name in names:
        started = time.monotonic()
        print(f"{name} …", end="", file=sys.stderr, flush=True)
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            figures += runner.run(BENCHES[name]())
        print(f" {time.monotonic() - started:.0f} s", file=sys.stderr)
    print(table(figures))
    print(f"fsync of a page on this disk: {number(fsync_millis())} ms")
    return 0 if all(figure.reached for figure in figures) else 1


def _drop_network_variables() -> None:
    """Measure without proxies or certificates of this machine, which a gateway checks at start."""
    for name in [*os.environ]:
        if name.lower().endswith(("_proxy", "ssl_cert_file", "ssl_cert_dir")):
            del os.environ[name]


if __name__ == "__main__":
    sys.exit(main())
