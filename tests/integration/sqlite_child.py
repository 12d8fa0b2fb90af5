"""Child processes of the SQLite tests."""

from __future__ import annotations

import asyncio
import fcntl
import os
import resource
import signal
import sys
from pathlib import Path

from clew.errors import StoreFull, StoreUnusable
from clew.store.sqlite import SqliteStore, open_sqlite
from tests.integration.sqlite_jobs import append, items

#: The bytes of a database file that stand for its shared lock.
SHARED_FIRST, SHARED_SIZE = 0x40000002, 510


def say(text: object) -> None:
    print(text, flush=True)  # noqa: T201


async def open_in(folder: Path) -> SqliteStore:
    return await open_sqlite(folder / "clew.db", run_dir=folder / "run")


async def own(folder: Path, owner: str) -> None:
    """Register, and live until killed or told to end."""
    async with await open_in(folder) as store:
        await store.register_owner(owner)
        say("registered")
        await asyncio.to_thread(sys.stdin.readline)


async def own_and_fork(folder: Path, owner: str) -> None:
    """Register, and leave a forked child behind that outlives us."""
    store = await open_in(folder)
    await store.register_owner(owner)
    pid = os.fork()
    if pid == 0:
        signal.pause()
    say(pid)
    await asyncio.sleep(600)


async def write(folder: Path, prefix: str, writers: str, each: str) -> None:
    """Append from many tasks at once; print each item once it is acknowledged."""
    async with await open_in(folder) as store:

        async def one(writer: int) -> None:
            for n in range(int(each)):
                item = f"{prefix}-{writer}-{n}"
                await store.write(append, item)
                say(item)

        await asyncio.gather(*(one(writer) for writer in range(int(writers))))


async def open_and_close(folder: Path, times: str) -> None:
    """Open the store again and again, using it a little."""
    for _ in range(int(times)):
        async with await open_in(folder) as store:
            await store.read(items)
            await store.check_available()
    say("done")


async def take_the_file(folder: Path) -> None:
    """Try to take the lock that nobody gets while SQLite has the file open."""
    with (folder / "clew.db").open("r+b") as file:
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, SHARED_SIZE, SHARED_FIRST)
        except BlockingIOError:
            say("refused")
        else:
            say("taken")


async def fill_quota(folder: Path) -> None:
    """Run into a size limit of the operating system, then go on without it."""
    async with await open_in(folder) as store:
        await store.write(append, "before")
        size = (folder / "clew.db-wal").stat().st_size
        _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size + 10_000, hard))
        results = await asyncio.gather(
            *(store.write(append, f"during-{n}", size=4000) for n in range(8)),
            return_exceptions=True,
        )
        resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
        assert all(isinstance(result, StoreFull | int) for result in results), results
        assert any(isinstance(result, StoreFull) for result in results), results
        stored = [f"during-{n}" for n, result in enumerate(results) if isinstance(result, int)]
        await store.write(append, "after")
        assert await store.read(items) == ["before", *stored, "after"]
    say("done")


async def open_as_nobody(folder: Path) -> None:
    """Try to open without the rights of root; print why it failed."""
    await asyncio.to_thread(int)  # imports what nobody could not read
    os.setgid(65534)
    os.setuid(65534)
    try:
        await open_in(folder)
    except StoreUnusable as error:
        say(error)


COMMANDS = {
    function.__name__: function
    for function in (
        own,
        own_and_fork,
        write,
        open_and_close,
        take_the_file,
        fill_quota,
        open_as_nobody,
    )
}


def main() -> None:
    """Run the function that the arguments name."""
    command, where, *rest = sys.argv[1:]
    asyncio.run(COMMANDS[command](Path(where), *rest))
