"""
200 files that the agent sends and 200 that people send, under ``clew serve`` that is killed.

Connections are cut, answers lost and calls refused meanwhile. ``CLEW_SOAK_PLATFORM=telegram`` runs
one platform and ``CLEW_SOAK_DATABASE=sqlite`` one database. People send files on Telegram.
"""

from __future__ import annotations

import asyncio
import hashlib
import random
import re
import threading
import time
from collections import Counter
from typing import TYPE_CHECKING

from clew.store.opening import open_store
from clew.testing.provider import Calls, FakeProvider, ScriptedCall, Text
from clew.testing.telegram import FakeTelegram, FaultInjector
from tests.channels.fakes import FAKES
from tests.contract import invariants
from tests.soak import Table
from tests.soak._stores import DATABASES, fresh, server
from tests.soak.channels import Run, choose, make_command

if TYPE_CHECKING:
    from pathlib import Path

    from clew.store.contract import Tx
    from clew.testing.provider import ProviderRequest, Reply

CHATS, FILES = 20, 200
#: Files a second that are asked for, or sent.
RATE = 4.0
#: Seconds until all must be there.
PATIENCE = 400.0
PLATFORMS = ("telegram", "discord", "slack", "mattermost")
_ASKED = re.compile(r"^(?:file|in) (\d+)$", re.MULTILINE)


def make_text(number: int) -> str:
    """Return the text of a file; each has another one."""
    chance = random.Random(number)
    lines = chance.randrange(1, 400)
    return "".join(f"{number};{chance.random()};ü 😀 `<&>`\n" for _ in range(lines))


def make_bytes(number: int) -> bytes:
    chance = random.Random(number)
    return f"{number}".encode() + b"\0" + chance.randbytes(chance.randrange(1, 60_000))


def answer(request: ProviderRequest) -> Reply:
    """Write the files that were asked for, send them, and answer."""
    answers = [
        n for n, one in enumerate(request.messages) if one.role == "assistant" and not one.calls
    ]
    since = request.messages[answers[-1] + 1 if answers else 0 :]
    texts = "\n".join(text for one in since if one.role == "user" for text in one.texts)
    asked = [int(found) for found in _ASKED.findall(texts)]
    done = [call.name for one in since for call in one.calls]
    if not asked or "in " in texts:
        return Text("Seen: " + " ".join(map(str, asked)))
    if "write_file" not in done:
        calls = [_call("write_file", n, content=make_text(n)) for n in asked]
    elif "send_file" not in done:
        calls = [_call("send_file", n) for n in asked]
    else:
        return Text("Sent: " + " ".join(map(str, asked)))
    return Calls(calls)


def _call(tool: str, number: int, **more: str) -> ScriptedCall:
    return ScriptedCall(tool, {"path": f"{number}.txt", **more})


class FileRun(Run):
    """One campaign: people ask for files, and on Telegram send some."""

    incoming: bool = False

    def people(self) -> None:
        begun = time.monotonic()
        for number in range(FILES):
            user = number % CHATS + 1
            if self.incoming:
                self._send(number, user)
            else:
                self.fake.say(f"file {number}", user=user)
            time.sleep(max(0.0, begun + number / RATE - time.monotonic()))
        self.over.set()

    def _send(self, number: int, user: int) -> None:
        telegram = next(one for one in vars(self.fake).values() if isinstance(one, FakeTelegram))
        file = telegram.add_file(f"{number}.bin", make_bytes(number))
        document = {"file_id": file, "file_name": f"{number}.bin"}
        telegram.post_message(user=user, document=document, caption=f"in {number}")

    def finish(self, is_done: object) -> None:
        """Let one process end everything."""
        assert callable(is_done)
        ends = time.monotonic() + PATIENCE
        with self.serving():
            while time.monotonic() < ends and not is_done():
                time.sleep(1)
            # A repeat would arrive within this time.
            time.sleep(8)


def _sent(run: FileRun) -> Counter[str]:
    return Counter(one.name for one in run.fake.files())


def _judge_out(run: FileRun) -> tuple[int, int, list[str]]:
    """Return the files that came, those that came twice, and what is wrong."""
    found, wrong = _sent(run), list[str]()
    for number in range(FILES):
        name = f"{number}.txt"
        if not found[name]:
            wrong.append(f"{name} never came")
        elif found[name] > 1 and run.fake.exact:
            wrong.append(f"{name} came {found[name]} times")
    for one in run.fake.files():
        number = int(one.name.partition(".")[0])
        if one.content != make_text(number).encode():
            wrong.append(f"{one.name} has other bytes")
    repeated = sum(1 for count in found.values() if count > 1)
    marked = sum("may be a repeat" in one.text for one in run.fake.seen())
    if sum(found.values()) - len(found) > marked:
        wrong.append("a repeat was not marked")
    return len(found), repeated, wrong


async def _judge_in(url: str, home: Path) -> tuple[int, int, list[str]]:
    async with await open_store(url, home=home) as store:
        stored = await store.read(_read_digests)
        wrong = await store.read(invariants.check)
    found = Counter(stored)
    wanted = {hashlib.sha256(make_bytes(number)).digest(): number for number in range(FILES)}
    wrong += [f"{number}.bin is not stored" for one, number in wanted.items() if not found[one]]
    wrong += [f"{wanted[one]}.bin {n} times" for one, n in found.items() if n > 1]
    return len(found), 0, wrong


def _read_digests(t: Tx) -> list[bytes]:
    return [
        bytes(one)
        for one in t.fetch_column("SELECT sha256 FROM attachment WHERE name LIKE '%.bin'")
    ]


def campaign(
    platform: str, database: str, server_url: str, *, incoming: bool
) -> tuple[object, ...]:
    faults = FaultInjector(cut=0.02, lost=0.02, throttled=0.02, waits=(1, 2), seed=1)
    with (
        fresh(database, server_url) as (url, home),
        FakeProvider(answer) as provider,
        FAKES[platform](faults) as fake,
    ):
        run = FileRun(fake, make_command(fake, provider, url, home), home)
        run.incoming = incoming
        begun = time.monotonic()
        threading.Thread(target=run.people, daemon=True).start()
        run.killed_again_and_again()
        if incoming:
            run.finish(lambda: not fake.waiting and _is_answered(run))
            found, repeated, wrong = asyncio.run(_judge_in(url, home))
        else:
            run.finish(lambda: len(_sent(run)) == FILES)
            found, repeated, wrong = _judge_out(run)
            wrong += asyncio.run(_check(url, home))
        took = time.monotonic() - begun
    for sentence in wrong[:20]:
        print(f"{platform}, {database}: {sentence}", flush=True)
    way = "in" if incoming else "out"
    row = (
        platform, database, way, FILES, found, repeated, run.kills, f"{took:.0f} s", len(wrong),
    )  # fmt: skip
    print(row, flush=True)
    return row


def _is_answered(run: FileRun) -> bool:
    said = " ".join(one.text for one in run.fake.seen())
    return all(re.search(rf"\b{number}\b", said) for number in range(FILES))


async def _check(url: str, home: Path) -> list[str]:
    async with await open_store(url, home=home) as store:
        return await store.read(invariants.check)


def run() -> Table:
    platforms, databases = choose("PLATFORM", PLATFORMS), choose("DATABASE", DATABASES)
    with server() as url:
        rows = [
            campaign(platform, database, url, incoming=incoming)
            for database in databases
            for platform in platforms
            for incoming in ((False, True) if platform == "telegram" else (False,))
        ]
    return Table(
        title=f"{FILES} files in {CHATS} chats, on platforms that fail",
        columns=(
            "platform", "database", "way", "files", "came", "came again, marked", "kills", "took",
            "violations",
        ),
        rows=tuple(rows),
        passed=bool(rows) and all(row[3] == row[4] and row[-1] == 0 for row in rows),
    )  # fmt: skip
