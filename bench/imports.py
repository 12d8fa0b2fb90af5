"""``clew import`` of a large Hermes store: its rate, its memory, and a gateway beside it."""

from __future__ import annotations

import asyncio
import json
import os
import random
import re
import sqlite3
import subprocess
import time
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Final

from bench.figures import Figure, percentile
from bench.places import scratch
from bench.turns import CLEW, provider, serve, talk, turn

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bench.turns import Server

#: Messages of the store, and of each of its sessions.
MESSAGES: Final = int(os.environ.get("CLEW_BENCH_MESSAGES", "60000"))
_EACH: Final = 120
#: Turns that are measured without an import; beside one, as many as it takes.
_TURNS: Final = 150

_SCHEMA: Final = """
CREATE TABLE schema_version (version INTEGER NOT NULL);
INSERT INTO schema_version VALUES (21);
CREATE TABLE sessions (
  id TEXT PRIMARY KEY, source TEXT NOT NULL, user_id TEXT, model TEXT, system_prompt TEXT,
  parent_session_id TEXT, started_at REAL NOT NULL, ended_at REAL, end_reason TEXT, title TEXT);
CREATE TABLE messages (
  id INTEGER PRIMARY KEY AUTOINCREMENT, session_id TEXT NOT NULL, role TEXT NOT NULL, content TEXT,
  tool_call_id TEXT, tool_calls TEXT, tool_name TEXT, timestamp REAL NOT NULL, finish_reason TEXT,
  reasoning TEXT);
CREATE INDEX idx_messages_session ON messages(session_id, timestamp);
"""
_INSERT: Final = """
INSERT INTO messages (session_id, role, content, tool_call_id, tool_calls, tool_name, timestamp,
  finish_reason, reasoning)
VALUES (:session, :role, :content, :answers, :calls, :tool, :at, :finish, :reasoning)
"""


async def measure() -> list[Figure]:
    """Measure it on SQLite, where a gateway and an import share one file."""
    return await asyncio.to_thread(_measure)


def _measure() -> list[Figure]:
    with scratch() as folder, provider() as asked:
        home = folder / "hermes"
        size = make_store(home, MESSAGES)
        alone = _Import(folder / "alone", home).wait()
        with serve(folder, asked, None) as server:
            talk(server.port, "beside", 20)
            quiet = [turn(server.port, "beside") for _ in range(_TURNS)]
            busy = list(_turn_beside(server, _Import(folder / "home", home)))
    before, after = percentile(quiet, 0.5), percentile(busy, 0.5)
    return [
        Figure(
            name=f"messages imported, of {MESSAGES:,} in {size / 1e6:.0f} MB",
            value=alone.entries / alone.seconds,
            unit="/s",
            target=5000,
            at_least=True,
        ),
        Figure(name="memory of the import", value=alone.memory, unit="MB", target=200),
        Figure(
            name="a turn of a gateway beside it, p50",
            value=after,
            unit="ms",
            target=1.5 * before,
            ratio=after / before,
            baseline=f"without it ({before:.1f} ms)",
        ),
    ]


class _Import:
    """A run of the command."""

    def __init__(self, home: Path, source: Path) -> None:
        command = (CLEW, "--home", str(home), "import", "hermes", str(source), "--json")
        self._began = time.perf_counter()
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        self.seconds, self.entries, self.memory = 0.0, 0, 0.0

    def wait(self) -> _Import:
        while self.process.poll() is None:
            self.memory = _read_peak(self.process.pid) or self.memory
            time.sleep(0.05)
        self.seconds = time.perf_counter() - self._began
        assert self.process.stdout is not None
        self.entries = json.load(self.process.stdout)["taken"]["entries"]
        return self


def _read_peak(pid: int) -> float:
    """Return the largest resident memory of a process so far, in MB; 0 once it has ended."""
    found = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    return int(found[1]) / 1024 if found else 0


def _turn_beside(server: Server, run: _Import) -> Iterator[float]:
    while run.process.poll() is None:
        yield turn(server.port, "beside")
    assert run.process.returncode == 0


def make_store(folder: Path, messages: int) -> int:
    """Write a ``state.db`` as Hermes Agent does, and return its size in bytes."""
    folder.mkdir()
    file = folder / "state.db"
    chance = random.Random(5)
    words = ["".join(chance.choices("abcdefghiklmnoprstu", k=n % 9 + 2)) for n in range(8000)]
    with closing(sqlite3.connect(file)) as database:
        database.executescript(f"PRAGMA synchronous = OFF; {_SCHEMA}")
        for number in range(messages // _EACH):
            name = f"2026{number:08d}"
            begun = 1_767_600_000 + number * 7200
            database.execute(
                "INSERT INTO sessions (id, source, model, started_at, title) "
                "VALUES (?, 'cli', 'openai/gpt-5', ?, ?)",
                (name, begun, f"Talk {number}"),
            )
            database.executemany(_INSERT, _make_messages(chance, words, name, begun))
        database.commit()
    return file.stat().st_size


def _make_messages(
    chance: random.Random, words: list[str], session: str, begun: int
) -> Iterator[dict[str, object]]:
    """Yield questions, calls with short and long results, and answers."""

    def say(*lengths: int) -> str:
        return " ".join(chance.choices(words, k=chance.choice(lengths)))

    empty = dict.fromkeys(("content", "answers", "calls", "tool", "finish", "reasoning"))
    made = 0
    while made < _EACH:
        rows: list[dict[str, str]] = [{"role": "user", "content": say(9, 17, 57)}]
        for number in range(chance.randrange(4)):
            name = f"call_{session}_{made}_{number}"
            function = {"name": "terminal", "arguments": json.dumps({"command": say(9)})}
            calls = json.dumps([{"id": name, "type": "function", "function": function}])
            result = say(43, 214, 714)
            rows += [
                {"role": "assistant", "content": "", "calls": calls, "finish": "tool_calls"},
                {"role": "tool", "content": result, "answers": name, "tool": "terminal"},
            ]
        rows.append({"role": "assistant", "content": say(29, 86, 214), "finish": "stop"})
        for place, row in enumerate(rows, made):
            yield {**empty, **row, "session": session, "at": begun + place * 7}
        made += len(rows)
