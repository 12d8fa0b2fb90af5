"""
A walk over parts of the log in a process of its own, so that every core takes part.

``python -m clew.store.checks.walking`` is such a process: it is told on standard input what to walk
through, and hands back on standard output what it has found.
"""

from __future__ import annotations

import asyncio
import json
import pickle
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from clew.errors import StoreDamaged, StoreUnavailable
from clew.store.checks.chain import Stretch, walk
from clew.store.opening import open_store

if TYPE_CHECKING:
    from collections.abc import Sequence

Part = tuple[int, int]


async def walk_apart(url: str, home: Path, parts: Sequence[Part]) -> list[Stretch]:
    """
    ``walk`` over parts of a store, in another process.

    :raises StoreDamaged: if a page cannot be read
    :raises StoreUnavailable: if the process ended without an answer
    """
    child = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", __name__),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        # Not among the arguments, which others can read: the address may have a password.
        told = json.dumps({"url": url, "home": str(home), "parts": parts})
        answer, _ = await child.communicate(told.encode())
    finally:
        with suppress(ProcessLookupError):
            child.kill()
    if child.returncode != 0:
        raise StoreUnavailable(f"a process that checked entries ended with {child.returncode}")
    found: list[Stretch] | str = pickle.loads(answer)  # by our own child
    if isinstance(found, str):
        raise StoreDamaged(found)
    return found


async def _walk(url: str, home: Path, parts: Sequence[Part]) -> list[Stretch] | str:
    try:
        async with await open_store(url, home=home, upgrade=False) as store:
            return [await store.read(walk, first, last) for first, last in parts]
    except StoreDamaged as error:
        return str(error)


def main() -> None:
    """Do as told."""
    told = json.load(sys.stdin)
    found = asyncio.run(_walk(told["url"], Path(told["home"]), told["parts"]))
    sys.stdout.buffer.write(pickle.dumps(found, protocol=pickle.HIGHEST_PROTOCOL))


if __name__ == "__main__":
    main()
