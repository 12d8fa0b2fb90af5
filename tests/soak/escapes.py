"""
Ways out of the sandbox, thirty times each, as root and as an ordinary user; and three commands that
take all they can, beside a loop that must go on.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from bench.figures import percentile
from clew.sandbox.bubblewrap import BubblewrapSandbox
from clew.sandbox.escape_check import ESCAPES
from clew.sandbox.request import CommandLimits, SandboxRequest, find_python
from clew.sandbox.runner import run_command
from tests.integration.test_sandbox_escapes import ADD_SOURCE, as_nobody, find_common_python
from tests.soak import Table

if TYPE_CHECKING:
    from collections.abc import Awaitable

ROUNDS = 30
#: Seconds in which a command that takes everything must have ended.
PATIENCE = 5.0
#: Factor by which other work of the process may be slower meanwhile.
MOST = 1.2
MEBIBYTE = 1024 * 1024
GREEDY = {
    "10 GB on the disk": "for i in $(seq 100); do head -c 100000000 /dev/zero > $i; done; sleep 60",
    "10,000 processes": "i=0; while [ $i -lt 10000 ]; do sleep 60 & i=$((i+1)); done; wait",
    "all memory": "PYTHON -I -c 'import os; os.fork(); os.fork(); x = []\n"
    'while True: x.append(b"x" * 2**20)\'',
}


def run() -> Table:
    rows: list[tuple[object, ...]] = []
    programs = {"root": [sys.executable], "an ordinary user": [*as_nobody(), find_common_python()]}
    for who, program in programs.items():
        for name, closed in _count_closed(*program).items():
            tried = ROUNDS * len(ESCAPES)
            rows.append(
                (f"{name}, {who}", f"{closed:,} of {tried:,} closed", _answer(closed == tried))
            )
    for name, ended, seconds, slower in asyncio.run(_greedy()):
        said = f"{ended}; {seconds:.1f} s; work beside it {slower:.2f}x"
        held = seconds <= PATIENCE and slower <= MOST and "stopped" in ended
        rows.append((name, said, _answer(held)))
    return Table(
        title=f"{len(ESCAPES)} ways out of the sandbox, {ROUNDS} times each",
        columns=("what", "found", "as it should be"),
        rows=tuple(rows),
        passed=all(row[-1] == "yes" for row in rows),
    )


_SCRIPT = f"""
{ADD_SOURCE}
import asyncio, json, sys, tempfile
from pathlib import Path
from clew.sandbox.bubblewrap import BubblewrapSandbox
from clew.sandbox.escape_check import try_escapes
from clew.sandbox.landlock import LandlockSandbox

async def count(sandbox, folder):
    assert (await sandbox.probe()).works
    found = [each for _ in range({ROUNDS}) for each in await try_escapes(sandbox, folder)]
    for each in found:
        if not each.stopped:
            print(sandbox.name, each.title, each.detail, file=sys.stderr)
    return sum(each.stopped for each in found)

with tempfile.TemporaryDirectory() as name:
    made = BubblewrapSandbox(Path(name)), LandlockSandbox()
    print(json.dumps({{each.name: asyncio.run(count(each, Path(name))) for each in made}}))
"""


def _answer(held: bool) -> str:
    return "yes" if held else "no"


def _count_closed(*program: str) -> dict[str, int]:
    """Count the stopped attempts by sandbox; print the others."""
    done = subprocess.run(
        [*program, "-I", "-c", _SCRIPT],
        env={"HOME": "/nonexistent", "PATH": os.environ["PATH"]},
        cwd="/",
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return json.loads(done.stdout)


async def _greedy() -> list[tuple[str, str, float, float]]:
    """Measure how and when each greedy command ends, and how it slows a loop beside it."""
    folder = Path(tempfile.mkdtemp())
    sandbox, python = BubblewrapSandbox(folder), find_python()
    limits = CommandLimits(memory=512 * MEBIBYTE, disk=512 * MEBIBYTE)
    request = SandboxRequest(workspace=folder / "local", limits=limits, readable=python.readable)
    found: list[tuple[str, str, float, float]] = []
    try:
        alone = await _measure_work(asyncio.sleep(1))
        for name, script in GREEDY.items():
            argv = ["sh", "-c", script.replace("PYTHON", str(python.executable))]
            command = asyncio.ensure_future(run_command(argv, request, sandbox))
            begun = time.monotonic()
            beside = await _measure_work(command)
            done = await command
            found.append((name, done.ending, time.monotonic() - begun, beside / alone))
    finally:
        shutil.rmtree(folder)
    return found


async def _measure_work(until: Awaitable[object]) -> float:
    """The median milliseconds of a piece of work in this process, done again and again."""
    task = asyncio.ensure_future(until)
    times: list[float] = []
    while not task.done():
        begun = time.perf_counter()
        sum(range(50_000))
        times.append(time.perf_counter() - begun)
        await asyncio.sleep(0.001)
    return percentile(times, 0.5) * 1000
