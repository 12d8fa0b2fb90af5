"""
Products that are killed right after a compaction, and the one that goes on.

Each kind of compaction is led to in a process of its own, which sends itself SIGKILL as soon as the
rotation is committed, before anybody in it was told. The provider is the test's: it sees what both
ask for.
"""

from __future__ import annotations

import asyncio
import enum
import signal
from functools import partial
from typing import TYPE_CHECKING

from clew.core.ids import ConversationId
from clew.core.route import local_route
from clew.store.transactions import conversations
from clew.testing import Calls, ReplyUsage, ScriptedCall, Text
from tests.contract.lifecycle.filling import fill
from tests.contract.lifecycle.house import Proposals
from tests.contract.lifecycle.product import OLD, Home, Plan, running, stored
from tests.failing.compacting import Plays
from tests.forking import FORKS
from tests.killing.killer import WatchedStore, die

if TYPE_CHECKING:
    from pathlib import Path

    from clew.core.route import Route
    from clew.testing import ProviderRequest, Reply
    from tests.contract.lifecycle.product import Product

_PATIENCE = 60
TALK = local_route("talk")
WINDOW = {"model.context_window": "100000"}

#: A tool with a long result.
LOOK = '''
def look() -> str:
    """Look at a lot."""
    return "a lot " * 10_000


tools = [look]
'''


class Way(enum.Enum):
    """Ways in which a compaction moves a conversation to another session."""

    IN_MID_TURN = "in-mid-turn"
    BEFORE_A_TURN = "before-a-turn"
    BY_HAND = "by-hand"


def answer(request: ProviderRequest) -> Reply:
    """Look when told to, and else say what was said."""
    if request.last_user_text == "look" and not request.new_results:
        # As much as with the tool's result fills the window.
        return Calls([ScriptedCall("look")], usage=ReplyUsage(60_000, 10))
    return Text(f"echo: {request.last_user_text}")


def given(url: str, home: Path, provider: str | None) -> Plan:
    """Options for starting both."""
    found = Home(path=home)
    found.plugin("my_tools", LOOK)
    flags = {**WINDOW, "tools.modules": "my_tools"}
    return Plan(
        url=url, home=found, provider=provider, flags=flags, plugins=(), model=Plays(turn=answer)
    )


async def filled(plan: Plan, count: int, *, route: Route = TALK) -> None:
    """A conversation, under the name ``talk``, with so many messages of 6,000 tokens."""
    async with stored(plan) as store:
        conversation = await store.write(
            conversations.open_route,
            route,
            new_conversation=ConversationId("cnv_talk"),
            session_ids=Proposals(OLD),
        )
        await store.write(fill, conversation, count)


def killed_in(way: Way, url: str, home: Path, provider: str) -> None:
    """Run a product that dies as soon as it has compacted."""
    process = FORKS.Process(target=_die, args=(way, url, home, provider), daemon=True)
    process.start()
    process.join(_PATIENCE)
    assert process.exitcode == -signal.SIGKILL, f"it ended with {process.exitcode}"


def _die(way: Way, url: str, home: Path, provider: str) -> None:
    asyncio.run(_lead_to(way, given(url, home, provider)))


def _reach(place: str) -> None:
    if place == "compactions.rotate_compacted after":
        die()


async def _lead_to(way: Way, plan: Plan) -> None:
    plan.around = partial(WatchedStore, reach=_reach)
    await filled(plan, 20 if way is Way.BEFORE_A_TURN else 6)
    async with running(plan) as product, product.client() as client:
        match way:
            case Way.IN_MID_TURN:
                await product.submit(client, "look")
            case Way.BEFORE_A_TURN:
                await product.submit(client, "go on")
            case Way.BY_HAND:
                await product.command(client, "/compress")
        # One that was not killed ends by itself, and is not waited for.
        await product.at_rest(seconds=_PATIENCE)


async def ends(product: Product) -> None:
    """Wait until what the killed one had begun is done, then say the next thing."""
    await product.at_rest()
    async with product.client() as client:
        await product.say(client, "the next message")
