"""Watches: a file or a page is looked at, and the model is asked only when it has changed."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from clew.config.workspaces import find_workspace
from clew.core.scope import scope_of
from clew.errors import UsageError
from clew.features import files, web
from clew.features.schedule import operations
from clew.features.schedule.commands import format_news
from clew.features.schedule.jobs import JobKind, list_jobs
from clew.features.schedule.making import find_kind
from clew.features.schedule.service import Scheduler
from clew.features.schedule.settings import ScheduleSettings
from clew.plugin.registry import Features, Registry
from clew.store.transactions.grants import is_tainted
from clew.testing import Text
from tests.features.job_world import CHAT, JobWorld, open_jobs
from tests.features.test_schedule_fronts import call_schedule
from tests.features.web_servers import page, serve
from tests.waiting import wait_until

if TYPE_CHECKING:
    from pathlib import Path

    from clew.features.schedule.jobs import ScheduledJob
    from clew.testing import ProviderRequest, Reply


class Asked(list[str]):
    """The inputs that the model was asked about."""

    def answer(self, request: ProviderRequest) -> Reply:
        self.append(request.messages[-1].text)
        return Text("roses")


async def add_watch(world: JobWorld, target: str) -> ScheduledJob:
    kind = find_kind("turn", watch=target)
    return await world.add(task="tell me", every="1m", kind=kind, watch=target)


async def test_a_file_asks_nothing_over_a_hundred_slots_and_once_when_it_has_changed(
    tmp_path: Path, store_url: str
) -> None:
    asked = Asked()
    async with open_jobs(tmp_path, store_url, asked.answer, files.register) as world:
        job = await add_watch(world, "notes/plan.txt")
        folder = find_workspace(world.settings, job.scope).root
        for _ in range(100):
            world.clock.move(minutes=1)
            while await world.scheduler.fire_due():
                await world.scheduler.wait_for_commands()
        assert Counter(await world.states(job)) == {"done: first": 1, "done: unchanged": 99}
        assert not asked
        (folder / "notes").mkdir(parents=True)
        (folder / "notes" / "plan.txt").write_text("tulips\nroses\n")
        for _ in range(3):
            await world.step(minutes=1)
        [told] = asked
        assert "notes/plan.txt has changed:" in told
        assert "-[there is no such file]\n+tulips\n+roses" in told
        assert [text for _, text in await world.delivered()] == ["roses"]
        assert (await world.states(job))[-3:] == ["done", *["done: unchanged"] * 2]


async def test_a_watch_that_fails_is_told_once_and_so_is_its_recovery(
    tmp_path: Path, store_url: str
) -> None:
    async with open_jobs(tmp_path, store_url, lambda _: Text("x"), files.register) as world:
        await world.say("hello")
        outside = await add_watch(world, "../other/secret")
        folder = await add_watch(world, "box")
        root = find_workspace(world.settings, folder.scope).root
        await world.step(minutes=1)
        (root / "box").mkdir()
        for _ in range(3):
            await world.step(minutes=1)
        assert {state.partition(":")[0] for state in await world.states(outside)} == {"failed"}
        states = await world.states(folder)
        assert [state.partition(":")[0] for state in states] == ["done", *["failed"] * 3]
        told = [text for _, text in await world.delivered()]
        assert sum("failed" in text for text in told) == 2, told
        (root / "box").rmdir()
        await world.step(minutes=1)
        assert any("works again, after 3 failures" in text for _, text in await world.delivered())
        assert len(world.provider.requests) == 1, "only the greeting"


def scheduler_with(world: JobWorld, **settings: Any) -> Scheduler:
    """A gateway whose feature of the web has other settings."""
    features = Features()
    features.register("web", web.register)
    features.sections["web"].bind(
        replace(world.settings, sections={"web": web.WebSettings(**settings)})
    )
    find = Registry(features, "tests", is_plugin=False).find_watch_source
    return Scheduler(world.engine.feature_context, ScheduleSettings(), find)


async def test_a_page_that_has_changed_is_read_as_text_of_strangers(
    tmp_path: Path, store_url: str
) -> None:
    asked = Asked()
    async with (
        serve() as server,
        open_jobs(tmp_path, store_url, asked.answer, web.register) as world,
    ):
        server.answers["/news"] = page(b"roses", "text/plain")
        world.scheduler = scheduler_with(world)
        refused = await add_watch(world, server.url("/news"))
        await world.step(minutes=1)
        [state] = await world.states(refused)
        assert "is not an address of the public internet" in state
        world.scheduler = scheduler_with(world, allow_private=("127.0.0.1",))
        job = await add_watch(world, server.url("/news"))
        for _ in range(2):
            await world.step(minutes=1)
        assert await world.states(job) == ["done: first", "done: unchanged"]
        server.answers["/news"] = page(b"tulips", "text/plain")
        await world.step(minutes=1)
        last = (await world.fires(job))[-1]
        assert last.conversation is not None
        assert await world.store.read(is_tainted, last.conversation)
        told = asked[-1]
        assert "-roses" in told
        assert "+tulips" in told
        assert "written by others" in told


async def test_the_model_watches_a_file_of_the_workspace_and_none_beside_it(
    tmp_path: Path, store_url: str
) -> None:
    answer = call_schedule(task="tell me", every="1m", watch="plan.txt")
    async with open_jobs(tmp_path, store_url, answer, files.register) as world:
        await world.say("watch my plan")
        [(_, told)] = await world.delivered()
        assert told.startswith("Scheduled. ")
        [job] = await world.store.read(list_jobs, viewer=scope_of(CHAT))
        assert (job.kind, job.watch) == (JobKind.FILE, "plan.txt")
    answer = call_schedule(task="tell me", every="1m", watch="/etc/passwd")
    async with open_jobs(tmp_path, store_url, answer, files.register) as world:
        await world.engine.submit("watch that", target=CHAT)

        async def is_asked() -> bool:
            waiting = "SELECT count(*) FROM turn WHERE state = 'waiting'"
            return await world.store.read(lambda t: t.fetch_value(waiting)) == 1

        await wait_until(is_asked)


async def test_what_cannot_be_watched_is_refused(tmp_path: Path) -> None:
    async with open_jobs(tmp_path, f"sqlite:///{tmp_path}/clew.db") as world:
        with pytest.raises(UsageError, match="with the kinds file and url"):
            await world.add(every="1m", kind=JobKind.FILE)
        with pytest.raises(UsageError, match="with the kinds file and url"):
            await world.add(every="1m", watch="plan.txt")
        given = operations.AddJobParams(task="x", every="1m", watch="https://example.org")
        with pytest.raises(UsageError, match="scheduled by operators only"):
            await world.store.write(
                operations.add_job, "job_x", given, zone="UTC", viewer=scope_of(CHAT)
            )
        job = await add_watch(world, "plan.txt")
        await world.step(minutes=1)
        [state] = await world.states(job)
        assert "its feature is disabled" in state


def test_news_are_the_lines_that_differ() -> None:
    before = "\n".join(map(str, range(50)))
    news = format_news(before, before.replace("25", "twenty-five"))
    changes, _, now = news.partition("\n\nIt says now:\n")
    assert changes.splitlines()[1:] == [" 24", "-25", "+twenty-five", " 26"]
    assert now.count("\n") == 49
