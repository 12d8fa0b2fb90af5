"""Several gateways on one PostgreSQL: turns per second, and how long each takes."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING

import psycopg

from bench.figures import Figure, percentile
from bench.places import postgres_database, scratch
from bench.turns import provider, serve, turn

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

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
            ports = _gateways(stack, size, url)
            if size == 1:
                figures.append(_commits(url, ports[0]))
            rate, times = _at_once(ports)
        alone = alone or rate
        figures += _figures(size, rate, times, alone)
    cores = os.cpu_count() or 1
    return [*figures, Figure(name="cores that all of this shared", value=cores, unit="")]


def _gateways(stack: ExitStack, size: int, url: str) -> list[int]:
    """The ports of gateways that have each answered once."""
    asked, folder = stack.enter_context(provider()), stack.enter_context(scratch())
    homes = [_home(folder, number) for number in range(size)]
    ports = [stack.enter_context(serve(home, asked, url)).port for home in homes]
    for port in ports:
        turn(port, f"warm{port}")
    return ports


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
