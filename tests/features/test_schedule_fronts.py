"""Jobs on every front: the tool of the model, ``/jobs``, HTTP, JSON-RPC and ``clew cron``."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import httpx2
import pytest

from clew.clock import from_millis
from clew.commands.runner import CommandRunner
from clew.core.scope import scope_of
from clew.errors import UsageError
from clew.features import schedule
from clew.features.schedule.editing import ScheduleEdit, edit_schedule
from clew.plugin.registry import Features
from clew.runtime import make_command_registry
from clew.testing import Calls, ScriptedCall, Text
from clew.wire.framing import RpcRequest, write_message
from tests.acceptance.program import Clew, until
from tests.features.job_world import CHAT, LOCAL_OWNER, open_jobs

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from clew.testing import ProviderRequest, Reply


def call_schedule(**args: object) -> Callable[[ProviderRequest], Reply]:
    """The model schedules once, and repeats what it was told."""

    def answer(request: ProviderRequest) -> Reply:
        last = request.messages[-1]
        if last.results or "runs. It is due" in last.text:
            return Text(last.results[0].text if last.results else "done it")
        return Calls((ScriptedCall("schedule", args),))

    return answer


async def test_the_model_schedules_and_is_told_the_next_three_times(
    tmp_path: Path, store_url: str
) -> None:
    answer = call_schedule(task="tell the news", cron="30 8 * * 1-5", zone="Europe/Berlin")
    async with open_jobs(tmp_path, store_url, answer) as world:
        await world.say("every morning, please")
        [(_, told)] = await world.delivered()
        assert (
            "tell the news (cron 30 8 * * 1-5, Europe/Berlin): next Mon 2026-11-30 08:30 +0100"
            in told
        )
        assert told.count("08:30 +0100") == 3
        await world.step(days=1)
        assert (await world.delivered())[-1][1] == "done it"


async def test_a_job_makes_no_job_that_comes_again(tmp_path: Path, store_url: str) -> None:
    def answer(request: ProviderRequest) -> Reply:
        last = request.messages[-1]
        if last.results:
            return Text(last.results[0].text)
        return Calls((ScriptedCall("schedule", {"task": "again", "every": "1m"}),))

    async with open_jobs(tmp_path, store_url, answer) as world:
        await world.say("go")
        for _ in range(3):
            await world.step(minutes=1)
        told = [text for _, text in await world.delivered()]
        assert told[0].startswith("Scheduled. ")
        assert len(told) == 4
        assert all("only a job with one time" in text for text in told[1:])


@pytest.mark.parametrize(
    ("schedule", "zones", "slots"),
    [
        # At 12:00:30 UTC on 29 November, 13:00 in Berlin and 07:00 in New York.
        ({"cron": "0 8 * * *"}, ["America/New_York"], ["29 13:00", "30 13:00"]),
        ({"cron": "0 8 * * *"}, ["America/New_York", "Europe/Berlin"], ["30 07:00", "01 07:00"]),
        ({"cron": "*/30 * * * *"}, ["Asia/Kolkata"], ["29 12:30", "29 13:00"]),
        ({"every": "1h"}, ["Asia/Kolkata"], ["29 13:00", "29 14:00"]),
        ({"at": "2026-11-29T14:00"}, ["America/New_York"], ["29 19:00"]),
    ],
)
async def test_a_job_that_moves_to_another_zone_fires_by_its_clocks_and_nothing_twice(
    tmp_path: Path, store_url: str, schedule: dict[str, Any], zones: list[str], slots: list[str]
) -> None:
    async with open_jobs(tmp_path, store_url) as world:
        job = await world.add(zone="Europe/Berlin", **schedule)
        for zone in zones:
            await world.store.write(edit_schedule, job, ScheduleEdit(zone=zone))
        assert (await world.get(job)).zone == zones[-1]
        await world.step(days=1.99)
        fired = [from_millis(fire.slot) for fire in await world.fires(job)]
        assert [f"{slot:%d %H:%M}" for slot in fired][: len(slots)] == slots


@pytest.mark.parametrize(
    ("edit", "slots"),
    [
        (ScheduleEdit(cron="15 * * * *"), ["29 13:15", "29 14:15"]),
        (ScheduleEdit(cron="0 8 * * *", zone="America/New_York"), ["29 13:00", "30 13:00"]),
        # Counted from now.
        (ScheduleEdit(every="2h"), ["29 14:30", "29 16:30"]),
        (ScheduleEdit(at="2026-11-30T01:00"), ["30 00:00"]),
    ],
)
async def test_a_job_whose_schedule_is_edited_keeps_its_log_and_fires_by_the_new_one(
    tmp_path: Path, store_url: str, edit: ScheduleEdit, slots: list[str]
) -> None:
    async with open_jobs(tmp_path, store_url) as world:
        job = await world.add(zone="Europe/Berlin", every="30m")
        await world.step(minutes=30)
        await world.store.write(edit_schedule, job, edit)
        await world.step(days=1.5)
        fired = [f"{from_millis(fire.slot):%d %H:%M}" for fire in await world.fires(job)]
        assert fired[: len(slots) + 1] == ["29 12:30", *slots]
        with pytest.raises(UsageError, match="nothing changes"):
            await world.store.write(edit_schedule, job, ScheduleEdit())


async def test_a_zone_is_changed_once_what_is_due_by_the_old_one_has_its_row(
    tmp_path: Path, store_url: str
) -> None:
    async with open_jobs(tmp_path, store_url) as world:
        job = await world.add(zone="Europe/Berlin", cron="0 14 * * *")
        world.clock.move(hours=3)
        with pytest.raises(UsageError, match="is due since 2026-11-29T13:00Z"):
            await world.store.write(edit_schedule, job, ScheduleEdit(zone="America/New_York"))
        await world.step()
        # By the clock there 14:00 comes again, and a clock that is put back finds no old slot.
        world.clock.move(hours=-2.5)
        await world.store.write(edit_schedule, job, ScheduleEdit(zone="Europe/Paris"))
        await world.step(days=1)
        assert await world.states(job) == ["done"]
        await world.step(hours=2)
        assert [f"{from_millis(fire.slot):%d %H}" for fire in await world.fires(job)] == [
            "29 13", "30 13",
        ]  # fmt: skip
        with pytest.raises(UsageError, match="no time zone 'Mars'"):
            await world.store.write(edit_schedule, job, ScheduleEdit(zone="Mars"))


@pytest.mark.both_databases
async def test_a_person_lists_shows_and_changes_jobs_in_the_chat(
    tmp_path: Path, store_url: str
) -> None:
    features = Features()
    features.register("schedule", schedule.register)
    async with open_jobs(tmp_path, store_url) as world:
        runner = CommandRunner(world.engine, make_command_registry(features))

        async def say(text: str) -> str:
            reply = await runner.run_command(text, target=CHAT, viewer=scope_of(CHAT))
            return reply.text

        await world.say("hello")
        assert (await say("/jobs")).startswith("There are no jobs.")
        job = await world.add(every="1h")
        other = await world.add(every="1h", owner=LOCAL_OWNER)
        assert (await say("/jobs")).startswith(f"{job.id}  look after the garden (every 1h, UTC)")
        assert other.id not in await say("/jobs")
        assert "there is no job" in (await say(f"/jobs remove {other.id}")).lower()
        assert "(every 1h, Asia/Tokyo)" in await say(f"/jobs zone {job.id} Asia/Tokyo")
        edited = await say(f"/jobs cron {job.id} 30 8 * * 1-5")
        assert "(cron 30 8 * * 1-5, Asia/Tokyo)" in edited
        assert "(cron 0 * * * *, Asia/Tokyo)" in await say(f"/jobs cron {job.id} @hourly")
        assert "(every 1h, Asia/Tokyo)" in await say(f"/jobs every {job.id} 1h")
        assert "five fields" in await say(f"/jobs cron {job.id} 8")
        assert "paused by hand" in await say(f"/jobs pause {job.id}")
        await world.step(hours=2.5)
        assert await world.states(job) == []
        assert "next" in await say(f"/jobs resume {job.id}")
        await say(f"/jobs run {job.id}")
        await world.step(seconds=1)
        assert await world.states(job) == ["done"]
        assert "done" in await say(f"/jobs {job.id}")
        assert await say(f"/jobs remove {job.id}") == "Removed: look after the garden."
        assert (await say("/jobs")).startswith("There are no jobs.")


def test_programs_and_the_command_line_manage_jobs(tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (home / "config.toml").write_text('[api]\ntoken = "s3cret"\n', encoding="utf-8")
    clew = Clew(home, {"CLEW_MODEL__NAME": "offline"})
    added = clew.data("cron", "add", "--cron", "0 8 * * *", "--zone", "Europe/Berlin", "the news")
    assert (added["schedule"], added["where"], len(added["next"])) == (
        {"cron": "0 8 * * *"}, "fresh", 3,
    )  # fmt: skip
    wrong = clew.run("cron", "add", "--cron", "* * * * * *", "the news")
    assert wrong.code == 2
    assert "has 6 fields, and a cron expression has five" in wrong.err
    headers = {"Authorization": "Bearer s3cret"}
    with (
        clew.serving() as (url, _),
        httpx2.Client(base_url=url, headers=headers, timeout=60) as http,
    ):
        made = http.post("/api/jobs", json={"task": "water it", "every": "1h"}).json()
        assert made.get("schedule") == {"every": "1h"}, made
        refused = http.post("/api/jobs", json={"task": "water it", "every": "5s"})
        assert refused.status_code == 400
        assert "too short" in refused.json()["error"]["message"]
        assert http.post(f"/api/jobs/{made['id']}/run").json()["id"] == made["id"]

        def is_done() -> bool:
            items = http.get(f"/api/jobs/{made['id']}/fires").json()["items"]
            return [item["state"] for item in items] == ["done"]

        until(is_done)
        # In a process of its own: a gateway sees what it has asked for.
        clew.ok("cron", "run", added["id"])
        until(lambda: [one["state"] for one in clew.data("cron", "log", added["id"])["items"]]
              == ["done"])  # fmt: skip
        moved = http.patch(f"/api/jobs/{made['id']}", json={"zone": "Asia/Tokyo"}).json()
        assert moved["zone"] == "Asia/Tokyo"
        assert http.get("/api/jobs/job_none").status_code == 404
        assert http.delete(f"/api/jobs/{made['id']}").json()["task"] == "water it"
        assert [one["id"] for one in http.get("/api/jobs").json()["items"]] == [added["id"]]
    edited = clew.data("cron", "edit", added["id"], "--zone", "America/New_York")
    assert edited["zone"] == "America/New_York"
    edited = clew.data("cron", "edit", added["id"], "--every", "3h")
    assert (edited["schedule"], edited["zone"]) == ({"every": "3h"}, "America/New_York")
    frames = [
        RpcRequest(id=n, method=f"job.{action}", params={"job": added["id"]})
        for n, action in enumerate(("pause", "resume", "remove"))
    ]
    lines = clew.ok("rpc", text="\n".join(map(write_message, frames))).splitlines()
    told: dict[int, Any] = {one["id"]: one["result"] for one in map(json.loads, lines)}
    assert [told[n]["state"] for n in range(3)] == ["paused", "on", "on"]
    assert clew.data("cron", "list") == {"items": []}
