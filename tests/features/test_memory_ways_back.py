"""What was forgotten stays so on every way back to what a conversation was told before."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import pytest

from clew.core.route import local_route
from clew.testing import Text
from tests.contract.lifecycle.doubles import SUMMARY
from tests.features.delegation_world import do, obey
from tests.features.memory_world import open_memory
from tests.killing.plans import SUMMARISE

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from clew.core.ids import ConversationId
    from clew.core.route import Route
    from clew.plugin import Registry
    from clew.testing import ProviderRequest, Reply
    from tests.features.memory_world import MemoryWorld

pytestmark = pytest.mark.both_databases


@dataclass(kw_only=True)
class _Talk:
    """A conversation that was told a canary, in its first turn."""

    world: MemoryWorld
    name: str
    conversation: ConversationId
    #: The last entry of that turn.
    told: int
    number: int
    #: Set for what waits in its turn to go on.
    goes_on: asyncio.Event

    @property
    def route(self) -> Route:
        return local_route(self.name)

    async def command(self, text: str) -> None:
        await self.world.command(text, self.route)
        await self.world.settle()


async def _undo(talk: _Talk) -> None:
    await talk.command("/undo")


async def _retry(talk: _Talk) -> None:
    await talk.command(f"/rewind {talk.told}")
    await talk.command("/retry")


async def _rewind(talk: _Talk) -> None:
    await talk.command(f"/rewind {talk.told}")


async def _branch(talk: _Talk) -> None:
    await talk.command("/branch")


async def _branch_in_the_past(talk: _Talk) -> None:
    talk.conversation = await talk.world.engine.sessions.branch_conversation(
        talk.conversation, at=talk.told, route=talk.route
    )


async def _compact(talk: _Talk) -> None:
    for _ in range(3):
        await talk.world.say("a long story " * 5_000, talk.route)
    await talk.command("/compress")


async def _restore(talk: _Talk) -> None:
    await talk.world.engine.sessions.queue_restore(talk.conversation)
    await talk.world.settle()
    await talk.world.say("and?", talk.route)
    assert "DO [[" in talk.world.last_request() or "[forgotten]" in talk.world.last_request()


async def _delete(talk: _Talk) -> None:
    await talk.world.engine.delete_conversation(talk.conversation)


async def _undelete(talk: _Talk) -> None:
    await talk.world.engine.undelete_conversation(talk.conversation)


async def _close(talk: _Talk) -> None:
    await talk.command("/new")


async def _stay(_talk: _Talk) -> None:
    pass


#: By the name of a way back: what comes before it, and the way itself.
_WAYS: Final[dict[str, tuple[Callable[[_Talk], Awaitable[None]], ...]]] = {
    "undo": (_stay, _undo),
    "retry": (_stay, _retry),
    "rewind": (_stay, _rewind),
    "branch in the past": (_stay, _branch_in_the_past),
    "undo of a compaction": (_compact, _restore),
    "undelete": (_delete, _undelete),
    "reopening": (_close, _stay),
    "rewind after a branch": (_branch, _rewind),
}


#: Those that are also taken before it is forgotten.
_TAKEN_BEFORE: Final = ("retry", "branch in the past", "undelete")


@pytest.mark.parametrize("forgets_last", [False, True])
async def test_no_way_back_leads_to_what_was_forgotten(
    tmp_path: Path, store_url: str, *, forgets_last: bool
) -> None:
    async with open_memory(tmp_path, store_url, _answer) as world:
        ways = {name: _WAYS[name] for name in (_TAKEN_BEFORE if forgets_last else _WAYS)}
        for name, (prepare, go_back) in ways.items():
            talk = await _tell(world, name)
            await prepare(talk)
            if forgets_last:
                await go_back(talk)
            await _forget(talk)
            seen = len(world.sent)
            if not forgets_last:
                await go_back(talk)
            await _say_more(talk)
            assert len(world.sent) > seen, name
            # A retry says it again, in another message than the one that the fact is from.
            word = "sings" if name == "retry" and forgets_last else "canary"
            for request in world.sent[seen:]:
                assert word not in json.dumps(request.raw), name
        await world.check()
    async with open_memory(tmp_path, store_url, _answer) as world:
        for name in ways:
            await world.say("And after the restart?", local_route(name))
        assert not [one for one in world.sent if "sings" in json.dumps(one.raw)]


async def _go_on(talk: _Talk) -> None:
    talk.goes_on.set()
    await talk.world.settle()


async def _branch_meanwhile(talk: _Talk) -> None:
    """Branch before the turn ends; the branch goes on in the place of its source."""
    source = talk.conversation
    talk.conversation = await talk.world.engine.sessions.branch_conversation(
        source, route=local_route("aside")
    )
    await _go_on(talk)


async def _delete_meanwhile(talk: _Talk) -> None:
    await _delete(talk)
    await _go_on(talk)
    await _undelete(talk)


@pytest.mark.parametrize("meanwhile", [_go_on, _branch_meanwhile, _delete_meanwhile])
async def test_what_a_turn_stores_after_it_was_forgotten_is_sent_in_no_later_one(
    tmp_path: Path, store_url: str, meanwhile: Callable[[_Talk], Awaitable[None]]
) -> None:
    started, goes_on = asyncio.Event(), asyncio.Event()

    async def sing() -> str:
        """Say what was forgotten meanwhile."""
        if goes_on.is_set():
            return "no more"
        started.set()
        await goes_on.wait()
        return "The canary of talk sings."

    def add_sing(registry: Registry) -> None:
        registry.add_tool(sing, effect="pure")

    async with open_memory(tmp_path, store_url, _answer, more={"tested": add_sing}) as world:
        talk = await _tell(world, "talk", goes_on)
        await world.engine.submit(do(("sing", {})), target=talk.route)
        await started.wait()
        said = await world.command(f"/forget {talk.number}", local_route("other"))
        assert "is forgotten" in said
        await meanwhile(talk)
        seen = len(world.sent)
        await _say_more(talk)
        assert len(world.sent) > seen
        for request in world.sent[seen:]:
            assert "sings" not in json.dumps(request.raw)
        await world.check()


async def test_a_stored_result_that_is_read_again_does_not_have_what_was_forgotten(
    tmp_path: Path, store_url: str
) -> None:
    async with open_memory(tmp_path, store_url, _answer) as world:
        talk = await _tell(world, "talk")
        assert "sings" in await world.call("recall", talk.route, query="canary")
        [result] = world.sent[-1].new_results
        await _forget(talk)
        seen = len(world.sent)
        told = await world.call("read_result", talk.route, call_id=result.call_id)
        assert "[forgotten]" in told
        assert not [one for one in world.sent[seen:] if "sings" in json.dumps(one.raw)]
        await world.check()


async def test_what_a_long_result_left_out_is_not_read_once_it_was_forgotten(
    tmp_path: Path, store_url: str
) -> None:
    async def tell_story() -> str:
        """Tell a story."""
        return f"{'la ' * 50_000}The canary of talk sings.{' lu' * 50_000}"

    def add_story(registry: Registry) -> None:
        registry.add_tool(tell_story, effect="pure")

    async with open_memory(tmp_path, store_url, _answer, more={"tested": add_story}) as world:
        talk = await _tell(world, "talk")
        await world.call("tell_story", talk.route)
        [result] = world.sent[-1].new_results
        middle = {"call_id": result.call_id, "start": 149_990}
        assert "sings" in await world.call("read_result", talk.route, **middle)
        await _forget(talk)
        seen = len(world.sent)
        await world.call("read_result", talk.route, **middle)
        assert not [one for one in world.sent[seen:] if "sings" in json.dumps(one.raw)]
        await world.check()


async def test_a_restored_conversation_does_not_begin_with_what_was_forgotten(
    tmp_path: Path, store_url: str
) -> None:
    async with open_memory(tmp_path, store_url, _answer) as world:
        talk = await _tell(world, "talk")
        await talk.command("/new")
        await world.say("hello", talk.route)
        assert "sings" in world.sent[-1].system_text, "told when the session opened"
        talk.conversation = await world.conversation(talk.route)
        await _delete(talk)
        await _forget(talk)
        await _undelete(talk)
        seen = len(world.sent)
        await _say_more(talk)
        assert world.sent[seen:]
        for request in world.sent[seen:]:
            assert "sings" not in json.dumps(request.raw)
        await world.check()


async def _tell(world: MemoryWorld, name: str, goes_on: asyncio.Event | None = None) -> _Talk:
    route = local_route(name)
    told = await world.say(
        "Please keep my canary.\n" + do(("remember", {"fact": f"The canary of {name} sings."})),
        route,
    )
    number = int(told.removeprefix("told: Remembered as ").partition(".")[0])
    entries = await world.log(route)
    await world.say("hello", route)
    return _Talk(
        world=world,
        name=name,
        conversation=await world.conversation(route),
        told=entries[-1].seq,
        goes_on=goes_on or asyncio.Event(),
        number=number,
    )


async def _forget(talk: _Talk) -> None:
    said = await talk.world.command(f"/forget {talk.number}", local_route("aside"))
    assert "is forgotten" in said
    await talk.world.settle()


async def _say_more(talk: _Talk) -> None:
    for target in (talk.conversation, talk.route):
        accepted = await talk.world.engine.submit("What do you know?", target=target)
        await talk.world.engine.wait_for_input(accepted)


def _answer(request: ProviderRequest) -> Reply:
    return Text(SUMMARY) if request.user_texts[0].startswith(SUMMARISE) else obey(request)
