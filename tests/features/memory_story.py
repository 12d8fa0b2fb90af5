"""Weeks of chats of three people and their group, with all that happens to conversations."""

from __future__ import annotations

import json
import re
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from random import Random
from typing import TYPE_CHECKING, Final

from clew.core.route import Route, local_route
from clew.core.session import COMPRESSION
from clew.testing import Text
from tests.contract.lifecycle.doubles import SUMMARY
from tests.features.delegation_world import obey
from tests.features.memory_world import open_memory
from tests.killing.plans import SUMMARISE

if TYPE_CHECKING:
    from pathlib import Path

    from clew.store.contract import Tx
    from clew.testing import ProviderRequest, Reply
    from tests.features.memory_world import MemoryWorld

#: Each talks on a front of its own, Ann at the operator's terminal; ``team`` is a group of all.
ROUTES: Final = {
    "ann": local_route("talk"),
    "ben": Route(platform="slack", kind="dm", chat="D2"),
    "cem": Route(platform="discord", kind="dm", chat="3"),
    "team": Route(platform="telegram", kind="group", chat="-4"),
}
THINGS: Final = (
    *("bicycle", "garden", "passport", "piano", "boat", "kettle", "ladder", "camera", "carpet"),
    *("violin", "lantern", "teapot", "window", "mattress", "helmet", "compass", "drawer", "oven"),
)
PLACES: Final = ("in Rome", "at work", "of his mother", "for winter", "from school", "on the roof")
#: Said before a compaction, so that there is something to leave out.
_LONG: Final = "a long story " * 500
#: Tokens of the model's window.
_WINDOW: Final = 16_000
_FACT: Final = re.compile(r"The key of the [a-z ]+ is \w+\.")
_VALUE: Final = re.compile(r"\b(ann|ben|cem|team)x\d{4}\b")


@dataclass(kw_only=True)
class StoryEnd:
    """What came of a story."""

    questions: int = 0
    #: Sessions that ended with a summary of what was said in them.
    compactions: int = 0
    restarts: int = 0
    corrections: int = 0
    forgotten: int = 0
    requests: int = 0
    #: Questions whose request did not have the right fact.
    wrong: list[str] = field(default_factory=list[str])
    #: Requests with a fact of somebody else, or with one that was forgotten.
    leaks: list[str] = field(default_factory=list[str])


@dataclass(kw_only=True)
class _Known:
    """A fact as its owner knows it."""

    number: int
    value: str


@dataclass(kw_only=True)
class Story:
    """The people, what they have told, and what must come of it."""

    seed: int
    days: int
    questions: int
    #: Messages that each writes in a day.
    chatter: int = 4
    end: StoryEnd = field(default_factory=StoryEnd)
    known: dict[str, dict[str, _Known]] = field(
        default_factory=lambda: {name: {} for name in ROUTES}
    )
    gone: set[str] = field(default_factory=set[str])
    count: int = 0

    async def play(self, home: Path, url: str) -> StoryEnd:
        """Live through all days, with a restart each week."""
        random, day = Random(self.seed), 0
        while day < self.days:
            async with AsyncExitStack() as stack:
                world = await stack.enter_async_context(
                    open_memory(home, url, _answer, window=_WINDOW)
                )
                seen, last = 0, min(day + 7, self.days)
                while day < last:
                    seen = await self._live_day(world, random, day, seen)
                    day += 1
                await world.check()
                self.end.compactions = await world.store.read(_count_compactions)
                self.end.requests += len(world.sent)
            self.end.restarts += day < self.days
        return self.end

    async def _live_day(self, world: MemoryWorld, random: Random, day: int, seen: int) -> int:
        for name in ROUTES:
            for _ in range(self.chatter):
                await self._say_something(world, random, name)
                seen = self._look(world, name, seen)
            if random.random() < 0.2:
                await world.command("/new", ROUTES[name])
        names = list(ROUTES)
        if day % 3 == 0:
            seen = await self._compact(world, names[day % len(names)], seen)
        for number in range(
            day * self.questions // self.days, (day + 1) * self.questions // self.days
        ):
            who = names[number % len(names)]
            await self._ask(world, random, who)
            seen = self._look(world, who, seen)
        return seen

    async def _compact(self, world: MemoryWorld, who: str, seen: int) -> int:
        for _ in range(3):
            await world.say(_LONG, ROUTES[who])
        await world.command("/compact", ROUTES[who])
        await world.settle()
        return self._look(world, who, seen)

    async def _say_something(self, world: MemoryWorld, random: Random, name: str) -> None:
        facts, roll = self.known[name], random.random()
        if roll < 0.15:
            await world.say(f"How are you? It is {random.choice(PLACES)} again.", ROUTES[name])
        elif roll < 0.3 and facts:
            thing = random.choice(sorted(facts))
            self.end.corrections += 1
            await self._tell(world, name, thing, instead_of=facts[thing].number)
        elif roll < 0.36 and len(facts) > 5:
            thing = random.choice(sorted(facts))
            forgotten = facts.pop(thing)
            said = await world.command(f"/forget {forgotten.number}", ROUTES[name])
            assert f"Fact {forgotten.number} is forgotten" in said, said
            await world.settle()
            self.gone.add(forgotten.value)
            self.end.forgotten += 1
        else:
            thing = random.choice([one for one in self._list_things() if one not in facts])
            await self._tell(world, name, thing)

    def _list_things(self) -> list[str]:
        """Return what is talked about by now: mostly the same by all."""
        things = [f"{one} {place}" for one in THINGS for place in PLACES]
        return things[: 4 + max(map(len, self.known.values()))]

    async def _tell(
        self, world: MemoryWorld, name: str, thing: str, *, instead_of: int | None = None
    ) -> None:
        self.count += 1
        value = f"{name}x{self.count:04}"
        given = {"fact": f"The key of the {thing} is {value}."}
        if instead_of is not None:
            given |= {"instead_of": instead_of}  # pyright: ignore[reportAssignmentType]
        told = await world.call("remember", ROUTES[name], **given)
        found = re.search(r"Remembered as (\d+)", told)
        assert found is not None, told
        self.known[name][thing] = _Known(number=int(found[1]), value=value)

    async def _ask(self, world: MemoryWorld, random: Random, name: str) -> None:
        thing = random.choice(sorted(self.known[name]))
        await world.call("recall", ROUTES[name], query=f"key of the {thing}")
        self.end.questions += 1
        right = self.known[name][thing].value
        if right not in json.dumps(world.sent[-1].raw):
            self.end.wrong.append(f"{name}: {thing} is {right}")

    def _look(self, world: MemoryWorld, name: str, seen: int) -> int:
        """Look for facts of others, and for what was forgotten, in what was sent since."""
        for request in world.sent[seen:]:
            body = json.dumps(request.raw)
            for value, owner in {one[0]: one[1] for one in _VALUE.finditer(body)}.items():
                if owner != name:
                    self.end.leaks.append(f"{name} was told {value}")
                if value in self.gone:
                    self.end.leaks.append(f"{name} was told {value}, which was forgotten")
        return len(world.sent)


def _answer(request: ProviderRequest) -> Reply:
    """Do as the message says; a summary has every fact that it was made from."""
    if not request.user_texts[0].startswith(SUMMARISE):
        return obey(request)
    found = dict.fromkeys(_FACT.findall(request.last_user_text))
    return Text("\n".join([SUMMARY, "", "## Facts", *(f"- {one}" for one in found)]))


def _count_compactions(t: Tx) -> int:
    return t.fetch_value("SELECT count(*) FROM session WHERE end_reason = $1", COMPRESSION)
