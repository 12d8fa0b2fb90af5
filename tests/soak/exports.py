"""
A thousand conversations leave one store and come into others on both databases, with imports that
are killed; and every byte of an export is changed once, every line taken out, every two swapped.
"""

from __future__ import annotations

import asyncio
import io
import itertools
import random
import subprocess
import time
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from clew.core.export_format.verify import verify_export
from clew.core.ids import IdGenerator
from clew.engine.exports import ConversationExporter
from clew.engine.imports import ConversationImporter, open_section
from clew.store.opening import open_store
from tests.acceptance.program import CLEW, Clew
from tests.contract import invariants
from tests.exported import made, verified
from tests.soak import Table
from tests.soak._stores import DATABASES, fresh, server

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path

    from clew.store.contract import Store

CONVERSATIONS, LONGEST = 1000, 10_000
#: Seconds after which an import is killed, at most; it grows, so that the import comes to its end.
PATIENCE = 1.0


@dataclass(frozen=True, kw_only=True)
class Row:
    database: str
    entries: int
    export: float
    verify: float
    take_in: float
    #: Milliseconds of the longest write.
    slowest: float
    kills: int
    wrong: list[str]


def run() -> Table:
    rng = random.Random(7)
    lengths = [LONGEST, *(rng.randrange(60) for _ in range(CONVERSATIONS - 1))]
    export = made(*lengths, tombstones=10)
    with server() as url:
        rows = [_on(database, url, export) for database in DATABASES]
    missed = _missed(made(4, 3, 0, tombstones=1))
    for told in [*missed[:10], *(told for row in rows for told in row.wrong[:10])]:
        print(told)
    return Table(
        title="Exports",
        columns=(
            "database", "conversations", "entries", "MB", "export s", "verify s", "import s",
            "slowest write ms", "killed imports", "wrong", "changes not found",
        ),
        rows=tuple(
            (
                row.database, CONVERSATIONS, row.entries, round(len(export) / 1e6, 1),
                round(row.export, 1), round(row.verify, 1), round(row.take_in, 1),
                round(row.slowest), row.kills, len(row.wrong), len(missed),
            )
            for row in rows
        ),
        passed=not missed and all(not row.wrong and row.slowest <= 100 for row in rows),
    )  # fmt: skip


def _on(database: str, server_url: str, export: bytes) -> Row:
    wrong: list[str] = []
    began = time.monotonic()
    found = verify_export(io.BytesIO(export))
    verifying = time.monotonic() - began
    wrong += [str(finding) for finding in found.findings]
    with fresh(database, server_url) as (url, home):
        taking, slowest, writing, told = asyncio.run(_there_and_back(url, home, export))
    wrong += told
    with fresh(database, server_url) as (url, home):
        kills, told = _killed(url, home, export)
    return Row(
        database=database,
        entries=found.entries,
        export=writing,
        verify=verifying,
        take_in=taking,
        slowest=slowest,
        kills=kills,
        wrong=wrong + told,
    )


class Timed:
    """A store that knows how long its longest write took."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.slowest = 0.0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    async def write(self, job: Any, *args: Any, **kwargs: Any) -> Any:
        began = time.monotonic()
        try:
            return await self._store.write(job, *args, **kwargs)
        finally:
            self.slowest = max(self.slowest, (time.monotonic() - began) * 1000)


@asynccontextmanager
async def _opened(url: str, home: Path) -> AsyncGenerator[Store]:
    async with await open_store(url, home=home) as store:
        yield store


async def _there_and_back(
    url: str, home: Path, export: bytes
) -> tuple[float, float, float, list[str]]:
    async with _opened(url, home) as store:
        timed: Any = Timed(store)
        began = time.monotonic()
        new = await _take_in(timed, export)
        taking, slowest = time.monotonic() - began, timed.slowest
        began = time.monotonic()
        again = await _exported(store)
        writing = time.monotonic() - began
        wrong = [] if again == export else ["what was exported again is not the same"]
        if twice := await _take_in(store, export):
            wrong.append(f"a second import brought {twice} entries, the first one {new}")
        wrong += await store.read(invariants.check)
    return taking, slowest, writing, wrong


async def _take_in(store: Store, export: bytes) -> int:
    found = verified(export)
    ids = IdGenerator(lambda: time.time_ns() // 1_000_000)
    async with ConversationImporter(store, ids, version="soak").register_owner() as imports:
        source = io.BytesIO(export)
        taken = [
            await imports.import_conversation(open_section(source, outline))
            for outline in found.conversations
        ]
        await imports.import_tombstones(found.tombstones)
    return sum(one.entries for one in taken)


async def _exported(store: Store) -> bytes:
    return b"".join([line async for line in ConversationExporter(store).iter_lines(None)])


def _killed(url: str, home: Path, export: bytes) -> tuple[int, list[str]]:
    """Import with the program and kill it, again and again, until it comes to its end."""
    path = home / "export.jsonl"
    path.write_bytes(export)
    clew = Clew(home, {"CLEW_MODEL__NAME": "offline", "CLEW_STORE__URL": url})
    rng = random.Random(1)
    for kills in itertools.count():
        with subprocess.Popen(
            [CLEW, "sessions", "import", str(path)], env=clew.environ, stdout=subprocess.DEVNULL
        ) as process:
            try:
                process.wait(timeout=3 + rng.random() * PATIENCE * (kills + 1))
            except subprocess.TimeoutExpired:
                process.kill()
                continue
        told = asyncio.run(_after(url, home, export))
        return kills, told if process.returncode == 0 else [*told, "the import failed"]
    raise AssertionError("unreachable")


async def _after(url: str, home: Path, export: bytes) -> list[str]:
    async with _opened(url, home) as store:
        same = await _exported(store) == export
        wrong = [] if same else ["after kills what was exported again is not the same"]
        return wrong + await store.read(invariants.check)


def _missed(export: bytes) -> list[str]:
    """The changes that are not found."""
    rng = random.Random(3)
    missed: list[str] = []
    for at in range(len(export)):
        changed = bytearray(export)
        changed[at] ^= 1 << rng.randrange(8)
        line = export.count(b"\n", 0, at) + 1
        if not any(one.line == line for one in verified(bytes(changed)).findings):
            missed.append(f"byte {at} was changed, and line {line} is not named")
    lines = io.BytesIO(export).readlines()
    missed += [
        f"line {at + 1} was taken out"
        for at in range(len(lines))
        if verified(b"".join(lines[:at] + lines[at + 1 :])).is_clean
    ]
    for one, other in itertools.combinations(range(len(lines)), 2):
        swapped = list(lines)
        swapped[one], swapped[other] = lines[other], lines[one]
        if verified(b"".join(swapped)).is_clean:
            missed.append(f"lines {one + 1} and {other + 1} were swapped")
    return missed
