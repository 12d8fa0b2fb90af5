"""
300 chats with 20 messages each on platforms that fail, under ``clew serve`` that is killed.

Some messages have the agent start a command in the background, whose end it tells in the chat.
``CLEW_SOAK_PLATFORM=telegram`` runs one platform and ``CLEW_SOAK_DATABASE=sqlite`` one database,
otherwise each platform has its turn on both.
"""

from __future__ import annotations

import asyncio
import os
import random
import re
import subprocess
import sys
import threading
import time
from collections import Counter
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import httpx2

from clew.core.delivery import DeliveryState
from clew.engine.fsck import StoreChecker
from clew.plugin.loading import get_features, load_settings_with_features
from clew.store.opening import open_store
from clew.store.transactions import deliveries
from clew.testing.provider import Calls, FakeProvider, ScriptedCall, Text
from clew.testing.telegram import FaultInjector
from tests.channels.fakes import FAKES, Seen
from tests.channels.judging import MARK, MORE, Verdict, answer_to, judge, unmarked
from tests.soak import Table
from tests.soak._stores import DATABASES, fresh, server

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable
    from pathlib import Path

    from clew.store.contract import Tx
    from clew.testing.provider import ProviderMessage, ProviderRequest, Reply
    from tests.channels.fakes import Fake

CHATS = int(os.environ.get("CLEW_SOAK_CHATS", "300"))
MESSAGES = int(os.environ.get("CLEW_SOAK_MESSAGES", "20"))
#: Messages a second that people write.
RATE = float(os.environ.get("CLEW_SOAK_RATE", "20"))
#: Seconds that a process is at work before it is killed: on a busy machine its start alone may take
#: as long. Every fifth is killed sooner, while it starts or right after.
KILL_EVERY, SOONER = 5.0, 5
#: Seconds after the last message in which every answer must be there, and seconds in which some
#: call must come as long as one is missing.
PATIENCE, QUIET = 900.0, 90.0


def answer(request: ProviderRequest) -> Reply:
    """Answer what was said since the last answer, line by line, and start its commands before."""
    answers = [n for n, one in enumerate(request.messages) if _is_answer(one)]
    since = request.messages[answers[-1] + 1 if answers else 0 :]
    texts = "\n".join(text for one in since if one.role == "user" for text in one.texts)
    said, started = _SAID.findall(texts), any(one.calls for one in since)
    asked = [text for text in said if text.startswith("command")]
    if asked and not started:
        return Calls(tuple(_start(text) for text in asked))
    lines = [*map(answer_to, said), *_ENDED.findall(texts)]
    return Text("\n".join(lines) or "nothing", chunks=4)


def _is_answer(message: ProviderMessage) -> bool:
    return message.role == "assistant" and not message.calls


def _start(text: str) -> ScriptedCall:
    line = f"sleep {random.uniform(0, 8):.1f}; echo {end_of(text)}"
    return ScriptedCall("shell", {"command": line, "background": True})


def end_of(text: str) -> str:
    """Return what the command of a message prints, and its chat is told."""
    return text.replace("command", "ended")


#: Of so many messages of a chat one starts a command.
COMMAND_EVERY = 5
_SAID = re.compile(r"^(?:message|command) \d+ of \d+$", re.MULTILINE)
_ENDED = re.compile(r"^ended \d+ of \d+$", re.MULTILINE)


@dataclass
class Run:
    """One campaign, and what it came to."""

    fake: Fake
    command: list[str]
    home: Path
    said: dict[int, list[str]] = field(default_factory=dict[int, list[str]])
    kills: int = 0
    ready: threading.Event = field(default_factory=threading.Event)
    over: threading.Event = field(default_factory=threading.Event)

    def people(self) -> None:
        """Everybody writes their messages, in rounds."""
        begun, number = time.monotonic(), 0
        for n in range(MESSAGES):
            for user in range(1, CHATS + 1):
                kind = "command" if n % COMMAND_EVERY == COMMAND_EVERY // 2 else "message"
                text = f"{kind} {n} of {user}"
                self.said.setdefault(user, []).append(text)
                self.fake.say(text, user=user)
                number += 1
                time.sleep(max(0.0, begun + number / RATE - time.monotonic()))
        self.over.set()

    @contextmanager
    def serving(self) -> Generator[subprocess.Popen[str]]:
        environ = {name: text for name, text in os.environ.items() if name[:5] != "CLEW_"}
        with (self.home / "serve.log").open("ab") as log:
            process = subprocess.Popen(
                self.command, stdout=subprocess.PIPE, stderr=log, env=environ, text=True
            )
            with process:
                listening = threading.Thread(target=self._listen, args=[process], daemon=True)
                listening.start()
                try:
                    yield process
                finally:
                    process.kill()

    def _listen(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        # The thread that killed it closes its output.
        with suppress(ValueError, httpx2.HTTPError):
            for line in process.stdout:
                if line.startswith("ready "):
                    url = line.split()[1]
                    self.fake.served_at(url)
                    # It listens before it has loaded what answers.
                    httpx2.get(f"{url}/readyz", timeout=60)
                    self.ready.set()

    def killed_again_and_again(self) -> None:
        chance = random.Random(1)
        while not self.over.is_set():
            self.ready.clear()
            with self.serving() as process:
                if self.kills % SOONER == SOONER - 1:
                    time.sleep(chance.uniform(0, KILL_EVERY))
                else:
                    self.ready.wait(60)
                    self.over.wait(KILL_EVERY)
                self.kills += process.poll() is None

    def to_the_end(self) -> Verdict:
        """Let one process end everything; what people have seen then."""
        ends = quiet = time.monotonic() + PATIENCE
        calls = 0
        with self.serving():
            while self.judge().wrong and time.monotonic() < min(ends, quiet):
                if self.fake.calls != calls:
                    calls, quiet = self.fake.calls, time.monotonic() + QUIET
                time.sleep(1)
            # A repeat would arrive within this time.
            time.sleep(10)
        return self.judge()

    def judge(self) -> Verdict:
        """Answers to messages have an order; ends of commands come when they come."""
        lines = [line for one in self.fake.seen() for line in _split(one)]
        ends = [one for one in lines if _ENDED.fullmatch(unmarked(one.text))]
        verdict = judge([one for one in lines if one not in ends], self.said)
        told = Counter((one.chat, one.text) for one in ends if not one.text.startswith(MARK))
        verdict.wrong += [f"{chat}: {text!r} twice" for (chat, text), n in told.items() if n > 1]
        shown = {(one.chat, unmarked(one.text)) for one in ends}
        wanted = {(chat, end_of(text)) for chat, text in self.commands}
        verdict.wrong += [f"{chat}: no {text!r}" for chat, text in sorted(wanted - shown)]
        verdict.wrong += [f"{chat}: {text!r} of nobody" for chat, text in sorted(shown - wanted)]
        return verdict

    @property
    def commands(self) -> list[tuple[int, str]]:
        """Chat and text of the messages that start one."""
        said = [(chat, text) for chat, texts in self.said.items() for text in texts]
        return [(chat, text) for chat, text in said if text.startswith("command")]


def _split(message: Seen) -> list[Seen]:
    """Return the lines of a message, each with its marks."""
    mark = f"{MARK} " if message.text.startswith(MARK) else ""
    whole = unmarked(message.text)
    if whole.endswith(MORE):
        return [message]
    return [Seen(message.chat, mark + line) for line in whole.splitlines() if line.strip()]


async def stored(url: str, home: Path, commands: int) -> list[str]:
    """Return the faults of the store."""
    features = get_features(load_settings_with_features(home=home, flags={}, environ={}))
    async with await open_store(url, home=home, features=features.schemas) as store:
        fsck = StoreChecker(store, url=url, home=home, say=lambda _: None, processes=1)
        wrong = [str(finding) for finding in (await fsck.find_problems()).findings]
        left = await store.read(deliveries.list_dead_letters, tuple(DeliveryState), limit=10)
        wrong += [f"delivery {one.id} is {one.state.value}: {one.error}" for one, _ in left]
        row = await store.read(
            lambda t: t.fetch_one(
                "SELECT count(*), count(outcome) FROM inbox WHERE kind = 'message'"
            )
        )
        ends = await store.read(_read_ends)
    if row != (CHATS * MESSAGES, CHATS * MESSAGES):
        wrong.append(f"(messages, outcomes) are {row}")
    if ends != (commands, commands, commands):
        wrong.append(f"(commands, ends, outcomes) are {ends}, of {commands}")
    return wrong


def _read_ends(t: Tx) -> tuple[int, ...]:
    row = t.fetch_one(
        """
        SELECT (SELECT count(*) FROM shell_process), count(*), count(outcome)
        FROM inbox WHERE kind = 'completion'
        """
    )
    assert row is not None
    return row


def campaign(platform: str, database: str, server_url: str) -> tuple[object, ...]:
    faults = FaultInjector(
        cut=0.02, lost=0.02, throttled=0.02, waits=(1, 2, 3), duplicated=0.02, reordered=0.3, seed=1
    )
    with (
        fresh(database, server_url) as (url, home),
        FakeProvider(answer) as provider,
        FAKES[platform](faults) as fake,
    ):
        run = Run(fake, make_command(fake, provider, url, home), home)
        begun = time.monotonic()
        people = threading.Thread(target=run.people, daemon=True)
        people.start()
        run.killed_again_and_again()
        verdict = run.to_the_end()
        took = time.monotonic() - begun
        wrong = [*verdict.wrong, *asyncio.run(stored(url, home, len(run.commands)))]
        if wrong:
            keep = f"/tmp/clew-soak-{platform}-{database}.log"
            print(f"the gateway's log: {keep}", flush=True)
            (home / "serve.log").rename(keep)
        calls = fake.calls
    for sentence in wrong[:20]:
        print(f"{platform}, {database}: {sentence}", flush=True)
    row = (
        platform, database, CHATS * MESSAGES, verdict.answers, len(run.commands), verdict.marked,
        verdict.left, run.kills, calls, f"{took:.0f} s", len(wrong),
    )  # fmt: skip
    print(row, flush=True)
    return row


def make_command(fake: Fake, provider: FakeProvider, url: str, home: Path) -> list[str]:
    settings = {
        "model.name": "openai-chat:fake-model",
        "model.base_url": provider.openai_url,
        "store.url": url,
        "api.port": "0",
        "session.double_text": "queue",
        f"channels.{fake.name}.allow": "*",
        **{f"channels.{fake.name}.{name}": value for name, value in fake.settings.items()},
    }
    flags = [part for name, value in settings.items() for part in ("--set", f"{name}={value}")]
    code = "from clew.cli import main; main()"
    return [sys.executable, "-c", code, "--home", str(home), *flags, "serve"]


def choose(what: str, names: Iterable[str]) -> list[str]:
    only = os.environ.get(f"CLEW_SOAK_{what}")
    return [name for name in names if only in (None, name)]


def run() -> Table:
    platforms, databases = choose("PLATFORM", FAKES), choose("DATABASE", DATABASES)
    with server() as url:
        rows = [
            campaign(platform, database, url) for platform in platforms for database in databases
        ]
    return Table(
        title=f"{CHATS} chats, {MESSAGES} messages each, on platforms that fail",
        columns=(
            "platform", "database", "messages", "answered", "commands", "marked as repeats",
            "beginnings left", "kills", "calls", "took", "violations",
        ),
        rows=tuple(rows),
        passed=bool(rows) and all(row[2] == row[3] and row[-1] == 0 for row in rows),
    )  # fmt: skip
