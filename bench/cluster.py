"""Several gateways on one PostgreSQL: turns per second, and how long each takes."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg

from bench.figures import Figure, percentile
from bench.places import postgres_database, scratch
from bench.turns import Server, provider, serve, turn

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence

SIZES = (1, 2, 4)
CLIENTS, TURNS = 8, 40
#: Plain turns whose commits are counted, one after the other.
COUNTED = 50
_WRITES = "SELECT pg_snapshot_xmax(pg_current_snapshot())::text::bigint"


async def measure() -> list[Figure]:
    """With 1, 2 and 4 gateways; the clients and the model are on the same cores."""
    return await asyncio.to_thread(_measure)


def _measure() -> list[Figure]:
    figures: list[Figure] = []
    alone = 0.0
    for size in SIZES:
        with ExitStack() as stack:
            url = stack.enter_context(postgres_database())
            running = _gateways(stack, size, url)
            ports = [server.port for server in running]
            if size == 1:
                figures.append(_commits(url, ports[0]))
            with _cpu(url, running) as spent:
                rate, times = _at_once(ports)
        alone = alone or rate
        figures += _figures(size, rate, times, alone)
        figures += [
            Figure(name=f"{size}: CPU of {who} per turn", value=millis, unit="ms")
            for who, millis in spent.items()
        ]
    cores = os.cpu_count() or 1
    return [*figures, Figure(name="cores that all of this shared", value=cores, unit="")]


def _gateways(stack: ExitStack, size: int, url: str) -> list[Server]:
    """Gateways that have each answered once."""
    asked, folder = stack.enter_context(provider()), stack.enter_context(scratch())
    homes = [_home(folder, number) for number in range(size)]
    running = [stack.enter_context(serve(home, asked, url)) for home in homes]
    for server in running:
        turn(server.port, f"warm{server.port}")
    return running


def _home(folder: Path, number: int) -> Path:
    home = folder / f"gateway{number}"
    home.mkdir()
    return home


def _figures(size: int, rate: float, times: Sequence[float], alone: float) -> list[Figure]:
    name = f"{size} gateway{'s' * (size > 1)}, {CLIENTS} clients"
    return [
        Figure(
            name=f"{name}: turns",
            value=rate,
            unit="/s",
            ratio=None if size == 1 else rate / alone,
            baseline="one gateway",
        ),
        Figure(name=f"{name}: p50", value=percentile(times, 0.5), unit="ms"),
        Figure(name=f"{name}: p95", value=percentile(times, 0.95), unit="ms"),
    ]


def _at_once(ports: Sequence[int]) -> tuple[float, list[float]]:
    """Clients with a conversation each; every message goes to the next gateway."""
    times: list[float] = []

    def talk(number: int) -> None:
        asked = [ports[(number + count) % len(ports)] for count in range(TURNS)]
        times.extend(turn(port, f"at-once{number}") for port in asked)

    threads = [threading.Thread(target=talk, args=(number,)) for number in range(CLIENTS)]
    started = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return CLIENTS * TURNS / (time.perf_counter() - started), times


def _commits(url: str, port: int) -> Figure:
    """Transactions that wrote, per plain turn: each took a number, also what the server did."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("ALTER SYSTEM SET autovacuum = off")
        connection.execute("SELECT pg_reload_conf()")
        turn(port, "counted")
        before = _written(connection)
        for _ in range(COUNTED):
            turn(port, "counted")
        written = _written(connection) - before
    return Figure(name="commits of a plain turn", value=written / COUNTED, unit="", target=3.5)


def _written(connection: psycopg.Connection) -> int:
    row = connection.execute(_WRITES).fetchone()
    assert row is not None
    return row[0]


@contextmanager
def _cpu(url: str, running: Sequence[Server]) -> Generator[dict[str, float]]:
    """Measure the CPU time per turn in the block, in ms: of the gateways, and of the database."""
    with psycopg.connect(url) as connection:
        postmaster = _stat(connection.info.backend_pid)[1]

        def spent() -> tuple[float, float]:
            gateways = sum(_stat(server.process.pid)[0] for server in running)
            backends = [pid for pid in _pids() if postmaster in (pid, _stat(pid)[1])]
            return gateways, sum(_stat(pid)[0] for pid in backends)

        found: dict[str, float] = {}
        before = spent()
        yield found
        after = spent()
    for who, old, new in zip(("the gateways", "the database"), before, after, strict=True):
        found[who] = (new - old) / (CLIENTS * TURNS)


def _pids() -> list[int]:
    return [int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit()]


def _stat(pid: int) -> tuple[float, int]:
    """Return the CPU time of a process and of its ended children, in ms, and its parent."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except FileNotFoundError:
        return 0.0, 0
    ticks = sum(int(field) for field in fields[11:15])
    return ticks * 1000 / os.sysconf("SC_CLK_TCK"), int(fields[1])
