"""
50 voice notes of people, with a service that fails, under ``clew serve`` that is killed.

The service answers with errors, nonsense or nothing to most requests. At the end it is well, and
each chat sends ``/retry``. ``CLEW_SOAK_DATABASE=sqlite`` runs one database.
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

from clew.core.file_reading import TOO_LATE
from clew.engine.fsck import StoreChecker
from clew.plugin.loading import get_features, load_settings_with_features
from clew.store.opening import open_store
from clew.testing.provider import FakeProvider, Text
from clew.testing.telegram import FakeTelegram, FaultInjector
from tests.channels.fakes import FAKES
from tests.features.voice_service import VoiceServer, make_ogg
from tests.soak import Table
from tests.soak._stores import DATABASES, fresh, server
from tests.soak.channels import Run, choose, make_command

if TYPE_CHECKING:
    from pathlib import Path

    from clew.store.contract import Tx
    from clew.testing.provider import ProviderRequest, Reply
    from tests.features.voice_service import Heard

CHATS, NOTES = 10, 50
#: Voice notes a second.
RATE = 1.0
#: Kills at least, while people record.
KILLS = 6
#: Seconds until all must be answered.
PATIENCE = 100.0
#: What the service does, and how often of ten times; it hears the others.
FAILURES: tuple[tuple[Heard, int], ...] = ((500, 2), (429, 2), (b"<html>", 1), ("", 1), (None, 1))
_NUMBER = re.compile(r"^in (\d+)$", re.MULTILINE)


class Ears:
    """What the service hears: by chance, nothing; when it is well, everything."""

    def __init__(self) -> None:
        self.is_well = False
        self.heard: Counter[int] = Counter()
        self._chance = random.Random(1)
        self._failures = [what for what, times in FAILURES for _ in range(times)]

    def hear(self, content: bytes) -> Heard:
        number = next(n for n in range(NOTES) if make_note(n) == content)
        lot = self._chance.randrange(10)
        if not self.is_well and lot < len(self._failures):
            return self._failures[lot]
        self.heard[number] += 1
        return f"this is note {number}"


def make_note(number: int) -> bytes:
    return make_ogg(f"{number};" * (number + 1), number + 1)


def answer(request: ProviderRequest) -> Reply:
    """Answer with the number of the last note, and whether its transcript was there."""
    said = [text for one in request.messages if one.role == "user" for text in one.texts]
    numbers = _NUMBER.findall(said[-1])
    if not numbers:
        return Text("Nothing.")
    heard = f"this is note {numbers[-1]}\n" in said[-1]
    return Text(f"{'Heard' if heard else 'Unread'} {numbers[-1]}.")


class VoiceRun(Run):
    """One campaign."""

    @property
    def telegram(self) -> FakeTelegram:
        return next(one for one in vars(self.fake).values() if isinstance(one, FakeTelegram))

    def people(self) -> None:
        begun = time.monotonic()
        for number in range(NOTES):
            file = self.telegram.add_file("voice.ogg", make_note(number))
            voice = {"file_id": file, "duration": number + 1, "mime_type": "audio/ogg"}
            self.telegram.post_message(user=number % CHATS + 1, voice=voice, caption=f"in {number}")
            time.sleep(max(0.0, begun + number / RATE - time.monotonic()))
        while self.kills < KILLS and time.monotonic() < begun + PATIENCE:
            time.sleep(1)
        self.over.set()

    def answers(self, *, marked: bool = True) -> Counter[str]:
        """Return how often each answer came; not ``marked``, without those that may be repeats."""
        seen = [one.text for one in self.fake.seen()]
        texts = [text for text in seen if marked or "may be a repeat" not in text]
        return Counter(
            found for text in texts for found in re.findall(r"(?:Heard|Unread) \d+", text)
        )

    def notices(self) -> int:
        return sum("There is no transcript" in one.text for one in self.fake.seen())

    def finish(self, ears: Ears) -> None:
        """Let one process answer everything; then the service is well, and people ask again."""
        with self.serving():
            _wait(lambda: {int(one.split()[1]) for one in self.answers()} >= set(range(NOTES)))
            ears.is_well = True
            for user in range(1, CHATS + 1):
                self.telegram.post_message("/retry", user=user)
            last = range(NOTES - CHATS, NOTES)
            _wait(lambda: all(self.answers()[f"Heard {number}"] for number in last))
            # A repeat would arrive within this time.
            time.sleep(8)


def _wait(is_done: object) -> None:
    assert callable(is_done)
    ends = time.monotonic() + PATIENCE
    while time.monotonic() < ends and not is_done():
        time.sleep(1)


async def _judge(url: str, home: Path) -> tuple[int, int, int, list[str]]:
    """Return the notes that were heard, told why not, and late; and what is wrong in the store."""
    features = get_features(load_settings_with_features(home=home, flags={}, environ={}))
    async with await open_store(url, home=home, features=features.schemas) as store:
        digests, texts = await store.read(_read_digests), await store.read(_read_texts)
        fsck = StoreChecker(store, url=url, home=home, say=lambda _: None, processes=1)
        wrong = [str(finding) for finding in (await fsck.find_problems()).findings]
    wanted = {hashlib.sha256(make_note(number)).digest() for number in range(NOTES)}
    wrong += ["a recording is not stored"] * len(wanted - digests)
    first: dict[int, str] = {}
    for text in texts:
        for number in _NUMBER.findall(text):
            first.setdefault(int(number), text)
    heard = [n for n, text in first.items() if f"\nthis is note {n}\n[end of" in text]
    unread = [n for n, text in first.items() if ", no transcript: " in text]
    for number in set(range(NOTES)) - {*heard, *unread}:
        wrong.append(f"note {number} has neither a transcript nor a reason: {first.get(number)!r}")
    late = [n for n in unread if TOO_LATE in first[n]]
    return len(heard), len(unread), len(late), wrong


def _read_digests(t: Tx) -> set[bytes]:
    return {bytes(one) for one in t.fetch_column("SELECT sha256 FROM attachment")}


def _read_texts(t: Tx) -> list[str]:
    return t.fetch_column(
        "SELECT text FROM entry WHERE role = 'user' ORDER BY conversation_id, seq"
    )


def campaign(database: str, server_url: str) -> tuple[object, ...]:
    faults = FaultInjector(cut=0.02, lost=0.02, throttled=0.02, waits=(1, 2), seed=1)
    ears = Ears()
    with (
        fresh(database, server_url) as (url, home),
        FakeProvider(answer) as provider,
        FAKES["telegram"](faults) as fake,
        VoiceServer(ears.hear).running() as service,
    ):
        command = make_command(fake, provider, url, home)
        more = ("--set", f"voice.stt.base_url={service.url}", "--set", "voice.stt.timeout=4s")
        run = VoiceRun(fake, [*command[:-1], *more, command[-1]], home)
        begun = time.monotonic()
        threading.Thread(target=run.people, daemon=True).start()
        run.killed_again_and_again()
        run.finish(ears)
        took, answers = time.monotonic() - begun, run.answers()
        once = run.answers(marked=False)
        heard, unread, late, wrong = asyncio.run(_judge(url, home))
        asked = service.count("transcriptions")
    for number in range(NOTES):
        if not answers[f"Heard {number}"] + answers[f"Unread {number}"]:
            wrong.append(f"note {number} was never answered")
        elif number < NOTES - CHATS and once[f"Heard {number}"] + once[f"Unread {number}"] > 1:
            wrong.append(f"note {number} was answered twice")
    again = sum(answers[f"Heard {number}"] > 0 for number in range(NOTES - CHATS, NOTES))
    if again < CHATS:
        wrong.append(f"only {again} of {CHATS} notes were heard after /retry")
    for sentence in wrong[:20]:
        print(f"{database}: {sentence}", flush=True)
    twice = sum(times > 1 for times in ears.heard.values())
    row = (
        "telegram", database, NOTES, heard, unread, late, run.notices(), f"{again} of {CHATS}",
        asked, twice, run.kills, f"{took:.0f} s", len(wrong),
    )  # fmt: skip
    print(row, flush=True)
    return row


def run() -> Table:
    with server() as url:
        rows = [campaign(database, url) for database in choose("DATABASE", DATABASES)]
    return Table(
        title=f"{NOTES} voice notes in {CHATS} chats, with a service that fails",
        columns=(
            "platform", "database", "notes", "heard", "told why not", "of them late", "notices",
            "heard after /retry", "requests", "heard twice", "kills", "took", "violations",
        ),
        rows=tuple(rows),
        passed=bool(rows) and all(row[-1] == 0 for row in rows),
    )  # fmt: skip
