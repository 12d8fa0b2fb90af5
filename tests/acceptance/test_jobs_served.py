"""Jobs of a chat on ``clew serve``: what people see of them on the platform."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import httpx2
import pytest

from clew.testing import Calls, FakeProvider, Hang, ScriptedCall, Text
from clew.testing.telegram import FakeTelegram
from tests.acceptance.program import Clew, until
from tests.databases import ON_POSTGRES

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from clew.testing import ProviderRequest, Reply

OLD, NEW = -5, -1005
_TOKEN = "s3cret"
_HEADERS = {"Authorization": f"Bearer {_TOKEN}"}


def schedule_or_report(request: ProviderRequest) -> Reply:
    last = request.messages[-1]
    if "runs. It is due" in last.text:
        return Text("the garden is fine")
    if last.results:
        return Text("I look after it.")
    if "every hour" in last.text:
        return Calls((ScriptedCall("schedule", {"task": "the garden", "every": "1h"}),))
    return Text("hello")


@pytest.fixture
def telegram() -> Iterator[FakeTelegram]:
    with FakeTelegram() as telegram:
        yield telegram


@pytest.fixture
def clew(tmp_path: Path, store_url: str, telegram: FakeTelegram) -> Iterator[Clew]:
    """A gateway with a group on Telegram."""
    (tmp_path / "config.toml").write_text(
        f'[store]\nurl = "{store_url}"\n[api]\ntoken = "{_TOKEN}"\n[channels.telegram]\n'
        f'token = "{telegram.token}"\nbase_url = "{telegram.base_url}"\nallow = ["42"]\n'
        'groups = ["*"]\nstream = false\n',
        encoding="utf-8",
    )
    with FakeProvider(schedule_or_report) as provider:
        yield Clew(tmp_path).asking(provider)


def run_job(url: str) -> None:
    """Have the only job run at once."""
    with httpx2.Client(base_url=url, headers=_HEADERS, timeout=60) as http:
        [job] = http.get("/api/jobs").json()["items"]
        assert http.post(f"/api/jobs/{job['id']}/run").status_code == 200


def read_log(clew: Clew) -> list[dict[str, Any]]:
    [job] = clew.data("cron", "list")["items"]
    return clew.data("cron", "log", job["id"])["items"]


@pytest.mark.slow
@pytest.mark.parametrize("store_url", ON_POSTGRES, indirect=True)
def test_a_job_reports_to_its_chat_when_that_has_moved_and_the_gateway_died_in_mid_delivery(
    clew: Clew, telegram: FakeTelegram
) -> None:
    """C8.4: the route leads elsewhere, the group has another id, the gateway is killed."""

    def reports(chat: int) -> int:
        return sum("garden is fine" in text for text in telegram.list_texts(chat))

    with clew.serving() as (url, process):
        telegram.post_message("@clew_bot every hour, the garden", chat=OLD)
        until(lambda: "I look after it." in telegram.list_texts(OLD))
        telegram.post_message("/new@clew_bot", chat=OLD)
        telegram.post_message("@clew_bot hello", chat=OLD)
        until(lambda: "hello" in telegram.list_texts(OLD))
        run_job(url)
        until(lambda: reports(OLD) == 1)
        telegram.migrate_group(OLD, NEW)
        until(lambda: telegram.pending_count == 0)
        telegram.post_message("/jobs@clew_bot", chat=NEW)
        until(lambda: "the garden (every 1h" in "".join(telegram.list_texts(NEW)))
        telegram.throttle_chat(NEW, 2)
        refused = len(telegram.calls)
        run_job(url)
        until(lambda: any(call.chat == NEW for call in telegram.calls[refused:]))
        process.kill()
    with clew.serving():
        until(lambda: reports(NEW) == 1)
        assert reports(OLD) == 1
        assert [fire["state"] for fire in read_log(clew)] == ["done", "done"]
    assert clew.data("fsck")["findings"] == []


@pytest.mark.slow
@pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)
def test_a_job_that_takes_the_gateway_down_each_time_is_not_run_again_at_every_start(
    clew: Clew, telegram: FakeTelegram
) -> None:
    asked = list[str]()

    def crash_or_report(request: ProviderRequest) -> Reply:
        if "runs. It is due" not in request.messages[-1].text:
            return schedule_or_report(request)
        asked.append(request.messages[-1].text)
        return Hang()

    def told() -> list[str]:
        return [text for text in telegram.list_texts(OLD) if "restart" in text]

    with FakeProvider(crash_or_report) as provider:
        clew = clew.asking(provider)
        with clew.serving() as (url, process):
            telegram.post_message("@clew_bot every hour, the garden", chat=OLD)
            until(lambda: "I look after it." in telegram.list_texts(OLD))
            run_job(url)
            until(lambda: len(asked) == 1)
            process.kill()
        for start in (2, 3):
            with clew.serving() as (_, process):
                until(lambda start=start: len(asked) == start)
                process.kill()
        for _ in range(2):
            with clew.serving():
                until(lambda: [fire["state"] for fire in read_log(clew)] == ["failed"])
                until(lambda: len(told()) >= 1)
                # Whatever was due before it has been looked at.
                seen = telegram.list_texts(OLD).count("hello")
                telegram.post_message("@clew_bot hello", chat=OLD)
                until(lambda seen=seen: telegram.list_texts(OLD).count("hello") > seen)
    assert len(asked) == 3
    assert len(told()) == 1, told()
    assert clew.data("fsck")["findings"] == []
