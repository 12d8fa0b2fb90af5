"""Child processes of the PostgreSQL tests."""

from __future__ import annotations

import asyncio
import os
import sys
import time

from clew.store.postgres import open_postgres


def say(text: object) -> None:
    print(text, flush=True)  # noqa: T201


async def own(url: str, owner: str) -> None:
    """Register, and live until killed or told to end."""
    async with await open_postgres(url) as store:
        await store.register_owner(owner)
        say("registered")
        await asyncio.to_thread(sys.stdin.readline)


async def own_and_fork(url: str, owner: str) -> None:
    """Register, and leave a forked child behind that outlives us."""
    store = await open_postgres(url)
    await store.register_owner(owner)
    pid = os.fork()
    if pid == 0:
        time.sleep(600)  # noqa: ASYNC251 - a child without an event loop
        os._exit(0)
    say(pid)
    await asyncio.sleep(600)


async def wake(url: str, topic: str) -> None:
    """Commit once with a topic."""
    async with await open_postgres(url) as store:
        await store.write(lambda t: t.notify(topic))


if __name__ == "__main__":
    asyncio.run(globals()[sys.argv[1]](*sys.argv[2:]))
