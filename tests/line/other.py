"""
Another process on the same store: ``python -m tests.line.other URL HOME stop|approve|deny ID``.

It writes its word and ends; whoever works on the conversation has to see it.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from clew.core.approval import ApprovalState
from clew.core.ids import ApprovalId, TurnId
from clew.core.turn import StopRequest
from clew.store.opening import open_store
from clew.store.transactions import approvals, turn_queries

ROOT = Path(__file__).parents[2]


async def say(word: str, what: str, *, url: str, home: Path) -> None:
    """Say it from a process of its own."""
    command = [sys.executable, "-m", "tests.line.other", url, str(home), word, what]
    process = await asyncio.create_subprocess_exec(*command, cwd=ROOT)
    assert await process.wait() == 0


async def _main(url: str, home: str, word: str, what: str) -> None:
    async with await open_store(url, home=Path(home)) as store:
        if word == "stop":
            assert await store.write(turn_queries.request_stop, TurnId(what), StopRequest.STOP)
            return
        state = ApprovalState.APPROVED if word == "approve" else ApprovalState.DENIED
        await store.write(approvals.answer_approval, ApprovalId(what), state, answered_by="another")


if __name__ == "__main__":
    asyncio.run(_main(*sys.argv[1:]))
