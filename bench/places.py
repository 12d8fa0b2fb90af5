"""Places for measurements: a folder for files that are made once, and databases."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg

from bench.figures import percentile
from tests import postgres

if TYPE_CHECKING:
    from collections.abc import Generator

#: Kept between runs; ``make clean`` removes it.
BUILD = Path(__file__).parents[1] / "build" / "bench"

#: Settings that the tests' server turns off for speed.
_DURABLE = ("fsync = on", "synchronous_commit = on", "full_page_writes = on")


@contextmanager
def scratch() -> Generator[Path]:
    """Create a folder on the same disk as ``BUILD``, and remove it at the end."""
    BUILD.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="run-", dir=BUILD))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def postgres_database() -> Generator[str]:
    """Yield the URL of an empty database on a server of its own that really writes to the disk."""
    with ExitStack() as stack:
        server = stack.enter_context(postgres.home()).url()
        with psycopg.connect(f"{server}/postgres", autocommit=True) as connection:
            for setting in _DURABLE:
                connection.execute(f"ALTER SYSTEM SET {setting}".encode())
            connection.execute("SELECT pg_reload_conf()")
        yield stack.enter_context(postgres.database(server))


def fsync_millis() -> float:
    """Return the median time in which this disk makes one page durable."""
    times: list[float] = []
    with scratch() as folder, (folder / "page").open("wb", buffering=0) as file:
        for _ in range(200):
            started = time.perf_counter()
            file.write(bytes(4096))
            os.fsync(file.fileno())
            times.append((time.perf_counter() - started) * 1000)
    return percentile(times, 0.5)
