"""The matrix of scopes: each person and chat has a canary, which must reach nobody else."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

from clew.core.route import Route, local_route
from clew.core.scope import LOCAL, scope_of
from clew.engine.exports import ConversationExporter
from clew.features import delegation, schedule
from clew.features.memory import extractor, facts, operations
from clew.features.memory.markdown import write_markdown
from clew.features.memory.settings import MemorySettings
from clew.features.schedule.service import Scheduler
from clew.features.schedule.settings import ScheduleSettings
from clew.testing import Text
from tests.features.delegation_world import delegate, do, obey
from tests.features.memory_world import open_memory

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from clew.core.scope import Scope
    from clew.store.contract import Tx
    from clew.testing import ProviderRequest, Reply
    from tests.features.memory_world import MemoryWorld

#: Fronts that share one scope.
LOCAL_FRONTS: Final = ("terminal", "http", "rpc")
#: Ways on which a fact can reach somebody.
WAYS: Final = (
    *("core", "notes", "recall", "sub-agents", "jobs", "commands", "exports", "extraction"),
)
#: The model that looks for facts.
_READER: Final = "reader"
_CANARY: Final = re.compile(r"zq\d{3}[ab]")


@dataclass(kw_only=True)
class ScopeMatrix:
    """What reached whom."""

    scopes: int = 0
    routes: int = 0
    #: Requests and outputs that were searched.
    searched: dict[str, int] = field(default_factory=lambda: dict.fromkeys(WAYS, 0))
    #: By way: whose canary came to whom.
    leaks: list[str] = field(default_factory=list[str])
    #: By way: to whom his own canary did not come.
    lost: list[str] = field(default_factory=list[str])


@dataclass(kw_only=True)
class _Place:
    """One scope, and the routes that lead there."""

    scope: Scope
    number: int
    routes: list[Route]

    def canary(self, which: str) -> str:
        return f"zq{self.number:03}{which}"


def list_routes(fronts: Iterable[str], platforms: Iterable[str], people: int) -> list[Route]:
    """Return local fronts, and of each platform people, groups and a thread in each group."""
    found = [local_route(front) for front in fronts]
    for platform in platforms:
        for number in range(people):
            found.append(Route(platform=platform, kind="dm", chat=f"{number}"))
            # A group with the number of a person, and a thread with that of another.
            group = {"platform": platform, "kind": "group", "chat": f"{number}"}
            found += [Route(**group), Route(**group, thread=f"{number + 1}")]
    return found


async def walk_scopes(
    home: Path, url: str, *, platforms: Sequence[str], people: int, everywhere: bool
) -> ScopeMatrix:
    """
    Tell each scope its canaries, have each route ask for them, and look what comes.

    With ``everywhere`` from all local fronts, and each route hands over tasks and has jobs.
    """
    fronts = LOCAL_FRONTS if everywhere else LOCAL_FRONTS[:1]
    places = _make_places(list_routes(fronts, platforms, people))
    done = ScopeMatrix(scopes=len(places), routes=sum(len(one.routes) for one in places))
    more = {"delegation": delegation.register, "schedule": schedule.register}
    async with open_memory(home, url, _read_or_obey, more=more) as world:
        walk = _Walk(world=world, done=done, everywhere=everywhere)
        for place in places:
            fact = f"Canary {place.canary('a')} sings."
            await world.call("remember", place.routes[0], fact=fact)
        for place in places:
            await walk.greet(place)
        for place in places:
            await world.command(f"/remember Canary {place.canary('b')} sleeps.", place.routes[-1])
        for place in places:
            await walk.visit(place)
        await walk.extract(places)
        await world.check()
    return done


def _make_places(routes: Iterable[Route]) -> list[_Place]:
    found: dict[Scope, _Place] = {}
    for route in routes:
        scope = scope_of(route)
        place = found.setdefault(scope, _Place(scope=scope, number=len(found), routes=[]))
        place.routes.append(route)
    return list(found.values())


def _read_or_obey(request: ProviderRequest) -> Reply:
    """Do as the message says; who reads for facts finds one about every canary."""
    if request.model != _READER:
        return obey(request)
    found = sorted(set(_CANARY.findall(request.last_user_text)))
    return Text("\n".join(f"fact | #1 | Somebody has heard {one}." for one in found) or "NONE")


def _list_found(t: Tx) -> list[tuple[Scope, str]]:
    """Return what was found in what people said, with the scope in which it is told."""
    return t.fetch_all(
        """
        SELECT scope, text FROM memory_fact WHERE text LIKE '%has heard%'
        UNION ALL SELECT scope, text FROM memory_proposal WHERE text LIKE '%has heard%'
        ORDER BY 1, 2
        """
    )


@dataclass(kw_only=True)
class _Walk:
    """One look at all that each place is sent and told."""

    world: MemoryWorld
    done: ScopeMatrix
    everywhere: bool

    async def greet(self, place: _Place) -> None:
        """Open a session on each route."""
        for route in place.routes:
            await self.ask("core", place, route, "hello", own="a")

    async def visit(self, place: _Place) -> None:
        """Look on all ways for what a place is told."""
        for number, route in enumerate(place.routes):
            await self.recall(place, route)
            if not number or self.everywhere:
                await self.hand_over(place, route)
        await self.export(place)

    async def recall(self, place: _Place, route: Route) -> None:
        """Have the model and the person of a route look what is remembered."""
        before = len(self.world.sent)
        await self.world.say(do(("recall", {"query": "canary sings"})), route)
        with_note, with_facts = (one.raw for one in self.world.sent[before:])
        self.judge("notes", place, [with_note], own="ab")
        self.judge("recall", place, [with_facts], own="ab")
        for text in ("/memory", "/memory 1", "/search canary"):
            told = await self.world.command(text, route)
            self.judge("commands", place, [told], own="a" if text == "/memory 1" else "")

    async def hand_over(self, place: _Place, route: Route) -> None:
        """Have other agents of a route work, at once and by a job."""
        before = len(self.world.sent)
        await self.ask("sub-agents", place, route, do(delegate("look for birds")), own="")
        self.judge_first("sub-agents", place, before, "look for birds")
        await self.run_job(place, route)

    async def ask(self, way: str, place: _Place, route: Route, text: str, *, own: str) -> None:
        before = len(self.world.sent)
        await self.world.say(text, route)
        self.judge(way, place, [one.raw for one in self.world.sent[before:]], own=own)

    async def run_job(self, place: _Place, route: Route) -> None:
        """Have a job of a route run in a conversation of its own."""
        before = len(self.world.sent)
        told = await self.world.call("schedule", route, task="look around", every="1d")
        job = re.search(r"job_\w+", told)
        assert job is not None, told
        await self.world.command(f"/jobs run {job[0]}", route)
        scheduler = Scheduler(self.world.engine.feature_context, ScheduleSettings())
        assert await scheduler.fire_due() == 1
        await self.world.settle()
        await self.world.command(f"/jobs remove {job[0]}", route)
        self.judge("jobs", place, [one.raw for one in self.world.sent[before:]], own="")
        self.judge_first("jobs", place, before, "look around")

    async def export(self, place: _Place) -> None:
        """Export a place: its facts, what a client of it sees, and its conversations."""
        read = self.world.store.read
        told: list[Any] = [write_markdown(place.scope, await read(facts.list_active, place.scope))]
        told.append(await read(operations.describe_all, place.scope))
        told.append(await read(operations.search_facts, "sings sleeps", place.scope, limit=100))
        self.judge("exports", place, told, own="ab")
        if place.scope != LOCAL:
            exporter = ConversationExporter(self.world.store)
            names = [await self.world.conversation(route) for route in place.routes]
            lines = [line.decode() async for line in exporter.iter_lines(names)]
            self.judge("exports", place, lines, own="")

    async def extract(self, places: Sequence[_Place]) -> None:
        """Have all conversations read for facts, and look who is told what is found."""
        before, context = len(self.world.sent), self.world.engine.feature_context
        settings = MemorySettings(
            extract="on", extract_after=timedelta(), extract_model=f"openai-chat:{_READER}"
        )
        while await extractor.extract_due(context, settings):
            pass
        prompts = [set(_CANARY.findall(str(one.raw))) for one in self.world.sent[before:]]
        self.done.searched["extraction"] += len(prompts)
        for place in places:
            own = {place.canary(which) for which in "ab"}
            mixed = [one for one in prompts if one & own and one - own]
            self.done.leaks += [f"extraction: {sorted(one)} in one request" for one in mixed]
        found = await self.world.store.read(_list_found)
        for place in places:
            told = [text for scope, text in found if scope == place.scope]
            self.judge("extraction", place, told, own="a")

    def judge_first(self, way: str, place: _Place, before: int, task: str) -> None:
        """Judge the request with which a task began: its session was told everything."""
        for one in self.world.sent[before:]:
            if task in one.user_texts[0] and not one.user_texts[0].startswith("DO "):
                self.judge(way, place, [one.raw], own="ab")
                return
        texts = [one.user_texts[0] for one in self.world.sent[before:]]
        self.done.lost.append(f"{way}: no request of {place.scope}, only {texts}")

    def judge(self, way: str, place: _Place, told: Iterable[Any], *, own: str) -> None:
        """Record whose canaries are in what a place is told."""
        texts = [one if isinstance(one, str) else json.dumps(one, default=str) for one in told]
        self.done.searched[way] += len(texts)
        found = set(_CANARY.findall("\n".join(texts)))
        wanted = {place.canary(which) for which in own}
        known = {place.canary("a"), place.canary("b")}
        self.done.leaks += [f"{way}: {one} to {place.scope}" for one in sorted(found - known)]
        self.done.lost += [f"{way}: {one} to {place.scope}" for one in sorted(wanted - found)]
