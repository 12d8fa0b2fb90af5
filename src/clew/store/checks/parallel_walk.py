"""
Walk over parts of the log in a separate process, to use every core.

``python -m clew.store.checks.parallel_walk`` is such a process: it reads the parts from
standard input and writes the results to standard output.
"""

from __future__ import annotations

import asyncio
import json
import pickle
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from clew.background import kill_and_wait, start_child
from clew.errors import StoreDamaged, StoreUnavailable
from clew.store.checks.chain import LogSegment, walk_segment
from clew.store.opening import open_store

if TYPE_CHECKING:
    from collections.abc import Sequence

Part = tuple[int, int]


async def walk_in_subprocess(url: str, home: Path, parts: Sequence[Part]) -> list[LogSegment]:
    """
    Run ``walk_segment`` over parts of a store, in another process.

    :raises StoreDamaged: if a page cannot be read
    :raises StoreUnavailable: if the process ended without a result
    """
    child = await start_child(
        sys.executable,
        *("-m", __name__),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        # Not as arguments, which other users can read: the URL may contain a password.
        told = json.dumps({"url": url, "home": str(home), "parts": parts})
        answer, _ = await child.communicate(told.encode())
    finally:
        await kill_and_wait(child)
    if child.returncode != 0:
        raise StoreUnavailable(f"a process that checked entries ended with {child.returncode}")
    found: list[LogSegment] | str = pickle.loads(answer)  # by our own child
    if isinstance(found, str):
        raise StoreDamaged(found)
    return found


async def _walk_parts(url: str, home: Path, parts: Sequence[Part]) -> list[LogSegment] | str:
    try:
        async with await open_store(url, home=home, upgrade=False) as store:
            return [await store.read(walk_segment, first, last) for first, last in parts]
    except StoreDamaged as error:
        return str(error)


def main() -> None:
    """Read the parts from standard input and write the results to standard output."""
    told = json.load(sys.stdin)
    found = asyncio.run(_walk_parts(told["url"], Path(told["home"]), told["parts"]))
    sys.stdout.buffer.write(pickle.dumps(found, protocol=pickle.HIGHEST_PROTOCOL))


if __name__ == "__main__":
    main()
