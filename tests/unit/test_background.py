"""Tasks and child processes end with whoever waits for them."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING

import pytest

from clew.sandbox.protocol import run_program
from tests.waiting import wait_until

if TYPE_CHECKING:
    from pathlib import Path


async def test_a_program_ends_with_whoever_waits_for_it(tmp_path: Path) -> None:
    told = tmp_path / "pid"
    waiting = asyncio.create_task(
        run_program(["/bin/sh", "-c", f"echo $$ > {told}.new; mv {told}.new {told}; exec sleep 99"])
    )
    await wait_until(told.exists)
    process = int(told.read_text())
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    with pytest.raises(ProcessLookupError):
        os.kill(process, 0)
