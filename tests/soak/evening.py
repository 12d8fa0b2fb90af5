"""A real evening in ten minutes: ``clew serve``, jobs of each minute, three restarts."""

from __future__ import annotations

import asyncio
import json
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

from clew.features import schedule
from clew.plugin.registry import Features
from clew.store.opening import open_store
from clew.testing import Calls, FakeProvider, ScriptedCall, Text
from clew.testing.telegram import FakeTelegram
from tests.acceptance.program import Clew, Process, until
from tests.soak import Table
from tests.soak._stores import DATABASES, fresh, server

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from clew.testing import ProviderRequest, Reply

MINUTES = 10
#: Minutes after the first report at which it is restarted, how, and for how many seconds it
#: is off: once in the middle of an answer, once for longer than a minute.
RESTARTS: Final = ((2.5, signal.SIGTERM, 1), (5, signal.SIGKILL, 0), (7.5, signal.SIGKILL, 75))
_USER: Final = 42
_ROUTE: Final = f"agent:main:telegram:dm:{_USER}"
_REPEAT: Final = "(may be a repeat)"


@dataclass
class Evening:
    """One gateway with its chat, and what the model was asked."""

    clew: Clew
    telegram: FakeTelegram
    #: The texts of the tasks that were asked for.
    asked: list[str] = field(default_factory=list[str])
    #: Seconds that an answer takes.
    thinks: float = 0

    def answer(self, request: ProviderRequest) -> Reply:
        """Schedule what a person asks for, and report when it is due."""
        last = request.messages[-1]
        if "runs. It is due" in last.text:
            self.asked.append(last.text)
            time.sleep(self.thinks)
            return Text(f"the garden is fine, {last.text.partition(' due at ')[2][:26]}")
        if last.results:
            return Text("I look after it.")
        return Calls((ScriptedCall("schedule", {"task": "look at the garden", "every": "1m"}),))

    def seen(self, text: str) -> list[str]:
        """The messages in the chat that have a text."""
        return [one.text for one in self.telegram.messages if text in one.text]


@dataclass(frozen=True, kw_only=True)
class Night:
    """What became of an evening."""

    slots: dict[str, int]
    reports: int
    marked: int
    #: Slots that were reported never, or more than once without a mark.
    wrong: tuple[str, ...]
    findings: int
    late: float

    @property
    def row(self) -> tuple[object, ...]:
        states = ", ".join(f"{count} {state}" for state, count in sorted(self.slots.items()))
        return states, self.reports, self.marked, len(self.wrong), self.findings, f"{self.late:.1f}"


def run(minutes: int = MINUTES) -> Table:
    with server() as server_url, ExitStack() as stores, ThreadPoolExecutor() as threads:
        places = [stores.enter_context(fresh(database, server_url)) for database in DATABASES]
        nights = list(threads.map(partial(_spend_at, minutes), places))
    return Table(
        title=f"clew serve for {minutes} minutes, two jobs of each minute, 3 restarts",
        columns=(
            "database", "slots", "reports seen", "marked as possible repeats", "wrong",
            "findings of fsck", "latest acceptance, seconds after its slot",
        ),
        rows=tuple((name, *night.row) for name, night in zip(DATABASES, nights, strict=True)),
        passed=all(not night.wrong and not night.findings for night in nights),
    )  # fmt: skip


def _spend_at(minutes: int, place: tuple[str, Path]) -> Night:
    url, home = place
    return spend(url, home, minutes=minutes)


def spend(url: str, home: Path, *, minutes: int) -> Night:
    """Spend an evening with one gateway."""
    with FakeTelegram() as telegram, ExitStack() as stack:
        evening = Evening(Clew(home), telegram)
        provider = stack.enter_context(FakeProvider(evening.answer))
        evening.clew = evening.clew.asking(provider)
        _write_settings(url, home, telegram)
        _pass_evening(evening, minutes)
        late = asyncio.run(_find_latest(url, home))
        return _read_night(evening, late)


def _write_settings(url: str, home: Path, telegram: FakeTelegram) -> None:
    text = (
        f'[store]\nurl = "{url}"\n[channels.telegram]\ntoken = "{telegram.token}"\n'
        f'base_url = "{telegram.base_url}"\nallow = ["{_USER}"]\n'
    )
    (home / "config.toml").write_text(text, encoding="utf-8")


def _pass_evening(evening: Evening, minutes: int) -> None:
    restarts = [(at * minutes / MINUTES, how, off) for at, how, off in RESTARTS]
    with ExitStack() as running:
        process = running.enter_context(evening.clew.serving())[1]
        evening.telegram.post_message("Look at the garden every minute", user=_USER)
        until(lambda: evening.seen("I look after it."))
        evening.clew.ok(
            "cron", "add", "--every", "1m", "--kind", "message", "--where", "here",
            "--conversation", _ROUTE, "--route", _ROUTE, "stand up",
        )  # fmt: skip
        until(lambda: evening.seen("the garden is fine"))
        started = time.monotonic()
        for at, how, off in restarts:
            _sleep_until(started + at * 60)
            _end(evening, process, how, in_mid_answer=how == signal.SIGKILL and not off)
            running.close()
            time.sleep(off)
            process = running.enter_context(evening.clew.serving())[1]
        _sleep_until(started + minutes * 60)
        # A busy machine takes its time to begin again.
        before = _count_shown(evening)
        until(
            lambda: all(now > then for now, then in zip(_count_shown(evening), before, strict=True))
        )
        for job in evening.clew.data("cron", "list")["items"]:
            evening.clew.ok("cron", "pause", job["id"])
        with suppress(AssertionError):  # the table tells what is missing
            until(lambda: _is_over(evening))
        process.terminate()
        process.communicate(timeout=60)


def _sleep_until(moment: float) -> None:
    time.sleep(max(0.0, moment - time.monotonic()))


def _end(evening: Evening, process: Process, how: signal.Signals, *, in_mid_answer: bool) -> None:
    if in_mid_answer:
        evening.thinks = 5
        before = len(evening.asked)
        until(lambda: len(evening.asked) > before)
        evening.thinks = 0
    process.send_signal(how)
    process.communicate(timeout=60)


def _iter_fires(evening: Evening) -> Iterator[dict[str, Any]]:
    for job in evening.clew.data("cron", "list")["items"]:
        for fire in evening.clew.data("cron", "log", job["id"], "--limit", "1000")["items"]:
            yield {**fire, "kind": job["kind"]}


def _count_shown(evening: Evening) -> tuple[int, int]:
    return len(evening.seen("the garden is fine, ")), len(evening.seen("stand up"))


def _is_over(evening: Evening) -> bool:
    """Return whether every run has ended, and the chat shows as much."""
    fires = list(_iter_fires(evening))
    done = sum(fire["state"] == "done" for fire in fires)
    return sum(_count_shown(evening)) >= done and not any(
        fire["state"] == "started" for fire in fires
    )


async def _find_latest(url: str, home: Path) -> int:
    """Return the longest time between a slot that ran and its acceptance, in milliseconds."""
    features = Features()
    features.register("schedule", schedule.register)
    latest = "SELECT max(at - slot) FROM schedule_fire WHERE state = 'done'"
    async with await open_store(url, home=home, features=features.schemas) as store:
        return await store.read(lambda t: t.fetch_value(latest))


def _read_night(evening: Evening, late: int) -> Night:
    fires = list(_iter_fires(evening))
    slots: dict[str, int] = {}
    for fire in fires:
        why = f" ({fire['reason']})" if fire["reason"] else ""
        slots[fire["state"] + why] = slots.get(fire["state"] + why, 0) + 1
    reports = evening.seen("the garden is fine, ")
    done = [fire for fire in fires if fire["state"] == "done"]
    ran = [datetime.fromisoformat(fire["slot"]) for fire in done if fire["kind"] == "turn"]
    wrong = _judge_reports(reports, [f"{slot:%a %Y-%m-%d %H:%M %z}" for slot in ran])
    messages = evening.seen("stand up")
    if len(messages) != len(done) - len(ran):
        wrong.append(f"{len(messages)} messages for {len(done) - len(ran)} slots")
    wrong += _find_gaps(fires)
    marked = [text for text in [*reports, *messages] if text.startswith(_REPEAT)]
    checked = evening.clew.run("fsck", "--json")
    for text in wrong:
        print("wrong:", text, flush=True)
    return Night(
        slots=slots,
        reports=len(reports) + len(messages),
        marked=len(marked),
        wrong=tuple(wrong),
        findings=len(json.loads(checked.out)["findings"]),
        late=late / 1000,
    )


def _judge_reports(reports: list[str], wanted: list[str]) -> list[str]:
    """Each slot is reported, once or with the mark of a possible repeat."""
    told = [text.partition("fine, ")[2][:26].strip() for text in reports]
    sure = [text.partition("fine, ")[2][:26].strip() for text in reports if _REPEAT not in text]
    return [
        *(f"{slot} was not reported" for slot in wanted if slot not in told),
        *(f"{slot} was reported twice" for slot in set(sure) if sure.count(slot) > 1),
        *(f"{slot} was reported, and is not done" for slot in set(told) - set(wanted)),
    ]


def _find_gaps(fires: list[dict[str, Any]]) -> list[str]:
    """Each minute between the first and the last slot has a row, and no job ends before others."""
    wrong: list[str] = []
    ends: list[datetime] = []
    for kind in ("turn", "message"):
        slots = sorted(datetime.fromisoformat(one["slot"]) for one in fires if one["kind"] == kind)
        seconds = [(b - a).total_seconds() for a, b in pairwise(slots)]
        ends.append(slots[-1])
        wrong += [f"{gap:g} seconds between slots of {kind}" for gap in seconds if gap != 60]
    if abs((ends[0] - ends[1]).total_seconds()) > 60:
        wrong.append(f"the last slots are {ends[0]} and {ends[1]}")
    return wrong
