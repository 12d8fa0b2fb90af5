"""Jobs and child processes for the tests of the SQLite store."""

from __future__ import annotations

import os
import signal
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

from clew.store.sqlite.jobs import Job
from tests import forking

if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from pathlib import Path

    from clew.store.contract import Tx
    from tests.forking import Forked


def make_log(t: Tx) -> None:
    """A log whose numbers are taken from a counter, as the entries of a conversation are."""
    t.execute(
        """
        CREATE TABLE counter (name TEXT PRIMARY KEY, last INTEGER NOT NULL);
        CREATE TABLE log (
            id @ID, name TEXT NOT NULL REFERENCES counter (name),
            seq INTEGER NOT NULL, item TEXT NOT NULL, body @BYTES, CHECK (seq > 0)
        );
        CREATE UNIQUE INDEX one_seq ON log (name, seq);
        CREATE UNIQUE INDEX one_item ON log (item);
        INSERT INTO counter VALUES ('a', 0), ('b', 0)
        """
    )


def append(t: Tx, item: str, *, name: str = "a", size: int = 10) -> int:
    """Add an item; its number."""
    row = t.fetch_one("UPDATE counter SET last = last + 1 WHERE name = $1 RETURNING last", name)
    assert row is not None
    t.execute(
        "INSERT INTO log (name, seq, item, body) VALUES ($1, $2, $3, $4)",
        name,
        row[0],
        item,
        b"x" * size,
    )
    t.notify(name)
    return row[0]


def items(t: Tx, name: str = "a") -> list[str]:
    """All items, in the order of their numbers."""
    return [
        item for (item,) in t.fetch_all("SELECT item FROM log WHERE name = $1 ORDER BY seq", name)
    ]


def numbers(t: Tx, name: str = "a") -> list[int]:
    """All numbers, in order."""
    return [seq for (seq,) in t.fetch_all("SELECT seq FROM log WHERE name = $1 ORDER BY seq", name)]


def waiting(call: Callable[[Tx], object]) -> Job:
    """A job as the store makes it of a call."""
    return Job(call, (), {})


def start_child(command: str, folder: Path, *args: object) -> Forked:
    """Run a function of ``sqlite_child`` in a process of its own."""
    return forking.piped(
        [command, str(folder), *map(str, args)],
        environ=os.environ,
        stdin=True,
        errors=sys.stderr,
        program="tests.integration.sqlite_child:main",
    )


@contextmanager
def child(command: str, folder: Path, *args: object) -> Generator[Forked]:
    """A child process that does not outlive the block."""
    with start_child(command, folder, *args) as process:
        try:
            yield process
        finally:
            process.kill()


def kill(process: Forked) -> None:
    """End a process without a chance to clean up."""
    process.send_signal(signal.SIGKILL)
    process.wait()


def line_of(process: Forked) -> str:
    """The next line that a child prints; fails if it ends before."""
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line.endswith("\n"), f"the child ended: {process.wait()}"
    return line.strip()
