"""Tasks and child processes end with whoever waits for them."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
from contextlib import suppress
from pathlib import Path

import pytest

from clew.background import shield_until_done
from clew.sandbox.protocol import run_program
from tests.waiting import wait_until


async def test_a_program_ends_with_whoever_waits_for_it(tmp_path: Path) -> None:
    told = tmp_path / "pid"
    # What has left its session keeps its pipes open.
    script = f"""
    setsid sleep 99 & left=$!
    sleep 99 & echo $left $! $$ > {told}.new; mv {told}.new {told}; exec sleep 99
    """
    waiting = asyncio.create_task(run_program(["/bin/sh", "-c", script]))
    await wait_until(told.exists)
    left, beside, process = map(int, told.read_text().split())
    await wait_until(lambda: os.getpgid(left) == left)
    waiting.cancel()
    try:
        with pytest.raises(asyncio.CancelledError):
            await waiting
        with pytest.raises(ProcessLookupError):
            os.kill(process, 0)
        await wait_until(lambda: not _lives(beside))
        assert _lives(left)
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


async def test_shielded_work_is_waited_for_however_often_its_caller_is_cancelled() -> None:
    reports: list[str] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, told: reports.append(str(told)))
    may_end = asyncio.Event()
    ends: list[str] = []

    async def fail_later() -> None:
        await may_end.wait()
        ends.append("ended")
        raise ValueError("nobody is left to be told")

    caller = asyncio.create_task(shield_until_done(fail_later()))
    for _ in range(3):
        await asyncio.sleep(0)
        caller.cancel()
    await asyncio.sleep(0)
    assert not caller.done()
    may_end.set()
    with pytest.raises(asyncio.CancelledError):
        await caller
    assert ends == ["ended"]
    del caller
    gc.collect()
    assert reports == []


async def test_shielded_work_is_cancelled_after_its_grace() -> None:
    caller = asyncio.create_task(shield_until_done(asyncio.sleep(3600), grace=0.01))
    await asyncio.sleep(0)
    caller.cancel()
    await asyncio.sleep(0)
    caller.cancel()
    with pytest.raises(asyncio.CancelledError):
        await caller


def _lives(process: int) -> bool:
    with suppress(OSError):
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
        return state != "Z"
    return False


def _count_descriptors() -> int:
    return len(list(Path("/dev/fd").iterdir()))
