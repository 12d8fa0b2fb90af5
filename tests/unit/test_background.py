"""Tasks and child processes end with whoever waits for them."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

import pytest

from clew.sandbox.protocol import run_program
from tests.waiting import wait_until


async def test_a_program_ends_with_whoever_waits_for_it(tmp_path: Path) -> None:
    told = tmp_path / "pid"
    # What it has started keeps its pipes open.
    script = f"sleep 99 & echo $! $$ > {told}.new; mv {told}.new {told}; exec sleep 99"
    waiting = asyncio.create_task(run_program(["/bin/sh", "-c", script]))
    await wait_until(told.exists)
    left, process = map(int, told.read_text().split())
    waiting.cancel()
    try:
        with pytest.raises(asyncio.CancelledError):
            await waiting
        with pytest.raises(ProcessLookupError):
            os.kill(process, 0)
        os.kill(left, 0)
    finally:
        os.kill(left, signal.SIGKILL)


async def test_a_start_that_is_cancelled_leaves_no_pipe_open() -> None:
    await run_program(["/bin/sh", "-c", "true"])
    before = _count_descriptors()
    for rounds in range(30):
        waiting = asyncio.create_task(run_program(["/bin/sh", "-c", "sleep 1"]))
        for _ in range(rounds):
            await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
    assert _count_descriptors() == before


def _count_descriptors() -> int:
    return len(list(Path("/dev/fd").iterdir()))
