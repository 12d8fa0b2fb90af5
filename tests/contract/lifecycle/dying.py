"""
Processes that are killed right after a compaction, and the one that goes on.

Each kind of compaction is led to in a process of its own, which sends itself SIGKILL as soon as the
rotation is committed, before anybody in it was told.
"""

from __future__ import annotations

import asyncio
import enum
import json
import os
import signal
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pydantic_ai.messages import CompactionPart

from clew.core.route import local_route
from tests.contract.lifecycle.doubles import Provider, answered, calling, is_new_turn, said
from tests.contract.lifecycle.filling import fill
from tests.contract.lifecycle.house import open_house
from tests.forking import FORKS
from tests.killing.killer import WatchedStore, die

if TYPE_CHECKING:
    from pathlib import Path

    from pydantic_ai.messages import ModelMessage, ModelResponse

    from tests.contract.lifecycle.house import House

_PATIENCE = 90
_WINDOW = 100_000
TALK = local_route("talk")


class Way(enum.Enum):
    """How a conversation comes to another session by compaction."""

    IN_MID_TURN = "in-mid-turn"
    BEFORE_A_TURN = "before-a-turn"
    BY_HAND = "by-hand"


@dataclass(frozen=True, kw_only=True)
class Before:
    """What the killed process had done."""

    summaries: int
    #: The head that the rotation left.
    head: str


@dataclass(frozen=True, kw_only=True)
class After:
    """What the next process found and did."""

    head_at_start: str
    head_at_end: str
    summaries: int
    outcome: str
    #: The request for the next message begins with the summary.
    begins_with_summary: bool


def killed_in(way: Way, url: str, home: Path) -> Before:
    process = FORKS.Process(target=_die, args=(way, url, home), daemon=True)
    process.start()
    process.join(_PATIENCE)
    assert process.exitcode == -signal.SIGKILL, f"it ended with {process.exitcode}"
    noted = json.loads((home / "before.json").read_text())
    return Before(summaries=noted["summaries"], head=noted["head"])


def restarted(way: Way, url: str, home: Path) -> After:
    process = FORKS.Process(target=_go_on, args=(way, url, home), daemon=True)
    process.start()
    process.join(_PATIENCE)
    assert process.exitcode == 0, f"it ended with {process.exitcode}"
    return After(**json.loads((home / "after.json").read_text()))


def _die(way: Way, url: str, home: Path) -> None:
    asyncio.run(_lead_to(way, url, home))


def _go_on(way: Way, url: str, home: Path) -> None:
    asyncio.run(_next_message(way, url, home))


def look() -> str:
    """Look at a lot."""
    return "a lot " * 10_000


def _answer(messages: list[ModelMessage]) -> ModelResponse:
    if said(messages).startswith("look") and is_new_turn(messages):
        return calling("look", tokens=60_000)
    return answered(f"You said: {said(messages)}")


async def _lead_to(way: Way, url: str, home: Path) -> None:
    summaries: list[int] = []

    def told(result: object) -> None:
        """The rotation is committed: note it and die."""
        head = getattr(result, "id", None)
        (home / "before.json").write_text(
            json.dumps({"summaries": len(summaries), "head": head, "pid": os.getpid()})
        )
        die()

    compressed = False

    def reach(place: str) -> None:
        nonlocal compressed
        compressed = place == "compactions.compress after"

    async with open_house(
        url,
        home,
        window=_WINDOW,
        tools=[look],
        provider=Provider(_answer),
        around=lambda store: WatchedStore(
            store, reach, lambda result: told(result) if compressed else None
        ),
    ) as house:
        summarise = house.summariser.summarise

        async def counted(*args: object, **kwargs: object) -> str:
            summaries.append(1)
            return await summarise(*args, **kwargs)  # pyright: ignore[reportArgumentType]

        house.summariser.summarise = counted
        await _come_to(way, house)
        await asyncio.sleep(_PATIENCE)


async def _come_to(way: Way, house: House) -> None:
    conversation = await house.open(TALK)
    match way:
        case Way.IN_MID_TURN:
            await house.store.write(fill, conversation, 6)
            await house.engine.submit("look", target=TALK)
        case Way.BEFORE_A_TURN:
            await house.store.write(fill, conversation, 20)
            await house.engine.submit("go on", target=TALK)
        case Way.BY_HAND:
            await house.store.write(fill, conversation, 6)
            await house.engine.lifecycle.compress(conversation)


async def _next_message(way: Way, url: str, home: Path) -> None:
    async with open_house(
        url, home, window=_WINDOW, tools=[look], provider=Provider(_answer)
    ) as house:
        conversation = await house.engine.resolve(TALK.key)
        at_start = (await house.head(TALK.key)).id
        await house.quiet(conversation)
        ended = await house.say("the next message", to=TALK)
        first = house.provider.sent[-1][0]
        after = {
            "head_at_start": at_start,
            "head_at_end": (await house.head(TALK.key)).id,
            "summaries": house.summariser.calls,
            "outcome": ended.outcome.value,
            "begins_with_summary": isinstance(first.parts[0], CompactionPart),
        }
        (home / "after.json").write_text(json.dumps(after))
