"""A turn that runs a command, in a process that is killed; the next process goes on with it."""

from __future__ import annotations

import asyncio
import os
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clew import runtime
from clew.core.route import local_route
from clew.engine.engine import Engine
from clew.plugin.loading import get_features, load_settings_with_features
from clew.store.opening import open_store
from clew.testing import Calls, FakeProvider, ScriptedCall, Text
from tests.killing import processes
from tests.killing.child import until_terminated
from tests.killing.killer import Killer, Place, WatchedStore
from tests.killing.records import Log
from tests.waiting import block_until

if TYPE_CHECKING:
    from clew.testing import ProviderRequest, Reply

KILLED = -9
#: The places around a call, around its process, and in the middle of the script.
RUNNING = "running"
PLACES = (
    "journal.record_intent before",
    "journal.record_intent inside",
    "journal.record_intent after",
    "processes.ask_process inside",
    "processes.ask_process after",
    "processes.mark_running before",
    "processes.mark_running inside",
    "processes.settle_process before",
    "processes.settle_process inside",
    "processes.settle_process after",
    "journal.record_result before",
    "journal.record_result inside",
    "journal.record_result after",
    RUNNING,
)


@dataclass(frozen=True, kw_only=True, slots=True)
class CommandJob:
    """Orders of a process."""

    home: Path
    store_url: str
    provider: str
    place: Place | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcome:
    """Result of a run."""

    #: Starts of the script, and its complete runs.
    begun: int
    ended: int
    told: str
    #: True if a process of the command outlived its call.
    left: bool

    @property
    def is_right(self) -> bool:
        """True if the script ran once, and its own call got its output."""
        return (self.begun, self.ended, self.left) == (1, 1, False) and self.told.startswith("ran")


def kill_in_a_command(home: Path, store_url: str, place: str) -> Outcome:
    """Kill the gateway at a place of a call, let another one go on, and look."""
    mark = f"clew-{os.getpid()}-{home.name}"
    waits = "import os, time\nwhile not os.path.exists('gate'): time.sleep(0.05)"
    waits = waits if place == RUNNING else ""
    code = (
        f"'{mark}'\nopen('begun', 'a').write('x')\n{waits}\nopen('ended', 'a').write('x')\n"
        "print('ran')"
    )
    work = home / "work" / "local"

    def answer(request: ProviderRequest) -> Reply:
        if any(message.results for message in request.messages):
            return Text("done")
        return Calls((ScriptedCall("run_python", {"code": code}),))

    with FakeProvider(answer) as provider:
        job = CommandJob(home=home, store_url=store_url, provider=provider.openai_url)
        at = None if place == RUNNING else Place(name=place)
        process = processes.fork(run_turn, replace(job, place=at))
        if place == RUNNING:
            block_until((work / "begun").exists)
            process.kill()
        assert processes.ended(process) == KILLED
        following = processes.fork(run_turn, job)
        if place == RUNNING:
            assert find_processes(mark), "it goes on without a gateway"
            (work / "gate").touch()
        assert processes.ended(following) == 0
        sent: dict[str, Any] = provider.requests[-1].json or {}
    [told] = [each["content"] for each in sent["messages"] if each["role"] == "tool"]
    return Outcome(
        begun=_count(work / "begun"),
        ended=_count(work / "ended"),
        told=told,
        left=_is_left(mark),
    )


def run_turn(job: CommandJob) -> None:
    """Say one thing, and wait for the answer."""
    asyncio.run(until_terminated(_run(job)))


async def _run(job: CommandJob) -> None:
    killer = Killer(job.place, Log(job.home / "fronts.log"), job.home)
    flags = {
        "model.name": "openai-chat:fake-model",
        "model.base_url": job.provider,
        "store.url": job.store_url,
    }
    settings = load_settings_with_features(home=job.home, flags=flags, environ={})
    schemas = get_features(settings).schemas
    opened = await open_store(job.store_url, home=job.home, features=schemas)
    _watch_files(killer)
    async with WatchedStore(opened, killer.reach) as store:
        services = runtime.build_services(settings, store)
        async with Engine(services, role="test", version="0") as engine:
            killer.arm()
            said = replace(engine.new_input("go"), event=("test", "bot", "1"))
            await engine.wait_for_input(await engine.submit(said, target=local_route("main")))


def _watch_files(killer: Killer) -> None:
    """Make two places of the moment in which a file of a workspace gets its new content."""
    rename = os.rename

    def watched(*args: Any, **kwargs: Any) -> None:
        killer.reach("file written, not in its place")
        rename(*args, **kwargs)
        killer.reach("file in its place")

    os.rename = watched


def find_processes(mark: str) -> list[int]:
    """The processes with a mark among their arguments."""
    found: list[int] = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if mark.encode() in (process / "cmdline").read_bytes():
                found.append(int(process.name))
    return found


def _is_left(mark: str) -> bool:
    try:
        block_until(lambda: not find_processes(mark))
    except AssertionError:
        return True
    return False


def _count(path: Path) -> int:
    return len(path.read_text()) if path.exists() else 0
