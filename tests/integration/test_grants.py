"""Grants: an answer that holds for longer covers what it said, as long as it said, and no more."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest
from pydantic_ai import Tool

from clew.commands.approvals import explain_calls, list_grants, revoke_grant
from clew.commands.builtin import BUILTIN_REGISTRY
from clew.commands.registry import CommandContext
from clew.core.grant import GrantTerm
from clew.core.ids import ConversationId
from clew.core.route import local_route
from clew.core.scope import LOCAL, Scope
from clew.core.tool_facts import ToolFacts
from clew.errors import NotFound, UsageError
from clew.store.transactions import deletion
from tests.line.clock import ShiftedClock
from tests.line.world import open_world

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping
    from pathlib import Path

    from clew.commands.registry import ChatCommandReply
    from clew.core.approval import Approval
    from tests.line.tools import Tools
    from tests.line.world import World

#: The command of a call, by the message that led to it.
_COMMANDS = {"s": "git status", "t": "timeout 5 git status -s", "p": "git push", "x": "git $(x)"}


def shell(ran: Counter[str]) -> Callable[[Tools], list[Tool[Any]]]:
    async def run(what: str) -> str:
        """Run a command."""
        ran[_COMMANDS[what[0]]] += 1
        return "done"

    def make_facts(args: Mapping[str, Any]) -> ToolFacts:
        return ToolFacts(command=_COMMANDS[args["what"][0]], sandbox="host")

    metadata = {"effect": "idempotent", "facts": make_facts}
    return lambda _: [Tool(run, name="shell", metadata=metadata)]


async def ask(world: World, key: str, to: str = "talk") -> Approval:
    """Say something, and return the question that it leads to."""
    return await world.question((await world.say(f"{key}: shell", to=to)).conversation_id)


async def answer(world: World, asked: Approval, keep: GrantTerm | None = None) -> None:
    await world.engine.answer_approval(asked.id, yes=True, by="telegram:7", keep=keep)
    await world.idle(asked.conversation_id)


async def deny(world: World, asked: Approval) -> None:
    await world.engine.answer_approval(asked.id, yes=False)
    await world.idle(asked.conversation_id)


async def passes(world: World, key: str, to: str = "talk") -> None:
    """Say something whose call is not asked about."""
    assert (await world.end(await world.say(f"{key}: shell", to=to))).text == f"answer to {key}"


async def test_always_covers_the_same_kind_on_every_gateway_until_it_is_revoked(
    store_url: str, tmp_path: Path
) -> None:
    ran: Counter[str] = Counter()
    async with open_world(store_url, tmp_path, tools=shell(ran)) as world:
        asked = await ask(world, "s")
        assert asked.offer is not None
        assert asked.offer.says == "shell: `git status *` (outside of the sandbox)"
        await answer(world, asked, GrantTerm.ALWAYS)
        await passes(world, "t")
        await passes(world, "t", to="elsewhere")
        await deny(world, await ask(world, "p"))
        unreadable = await ask(world, "x")
        assert unreadable.offer is None
        with pytest.raises(NotFound):
            await world.engine.answer_approval(unreadable.id, yes=True, keep=GrantTerm.ALWAYS)
        await deny(world, unreadable)
        assert await world.check() == []
    async with (
        open_world(store_url, tmp_path, tools=shell(ran)) as world,
        open_world(store_url, tmp_path, tools=shell(ran)) as other,
    ):
        await passes(world, "s")
        await passes(other, "s", to="elsewhere")
        (grant,) = await world.engine.grants.list_grants(viewer=LOCAL)
        with pytest.raises(NotFound):
            await world.engine.grants.revoke_grant(grant.id, viewer=Scope("person:telegram:1"))
        await world.engine.grants.revoke_grant(grant.id, viewer=LOCAL)
        await deny(other, await ask(other, "t", to="elsewhere"))
        await deny(world, await ask(world, "s"))
    assert ran == {"git status": 3, "timeout 5 git status -s": 2}


async def test_an_hour_holds_in_one_conversation_and_goes_with_it(
    store_url: str, tmp_path: Path
) -> None:
    clock, ran = ShiftedClock(), Counter[str]()
    async with open_world(store_url, tmp_path, tools=shell(ran), clock=clock) as world:
        asked = await ask(world, "s")
        await answer(world, asked, GrantTerm.HOUR)
        await passes(world, "t")
        await deny(world, await ask(world, "t", to="elsewhere"))
        clock.advance(minutes=61)
        assert await world.engine.grants.list_grants(viewer=LOCAL) == []
        await answer(world, await ask(world, "t"), GrantTerm.HOUR)
        await passes(world, "s")
        await world.store.inner.write(deletion.mark_deleted, asked.conversation_id)
        while await world.store.inner.write(deletion.delete_slice, asked.conversation_id):
            pass
        assert await world.engine.grants.list_grants(viewer=LOCAL) == []
        assert await world.check() == []


async def test_commands_tell_what_is_allowed_and_why_a_call_ran(
    store_url: str, tmp_path: Path
) -> None:
    ran: Counter[str] = Counter()
    async with open_world(store_url, tmp_path, tools=shell(ran)) as world:

        async def run(
            command: Callable[[CommandContext, str], Awaitable[ChatCommandReply]],
            argument: str = "",
            viewer: Scope = LOCAL,
        ) -> str:
            context = CommandContext(
                engine=world.engine,
                commands=BUILTIN_REGISTRY,
                route=local_route("talk"),
                conversation_id=conversation,
                viewer=viewer,
            )
            return (await command(context, argument)).text

        conversation = ConversationId((await world.say("z:")).conversation_id)
        await world.idle(conversation)
        assert await run(explain_calls) == "No tool was called here."
        assert await run(list_grants) == "Nothing is allowed for longer than one call."
        asked = await ask(world, "s")
        await answer(world, asked, GrantTerm.ALWAYS)
        await passes(world, "t")
        await deny(world, await ask(world, "p"))
        (grant,) = await world.engine.grants.list_grants(viewer=LOCAL)
        because = "by default: it runs outside of the sandbox"
        assert (await run(explain_calls)).splitlines() == [
            f'3. shell {{"what":"s00"}} (ok): telegram:7 allowed it (asked, because {because})',
            f'2. shell {{"what":"t00"}} (ok): grant {grant.id}: {grant.pattern.says}',
            f'1. shell {{"what":"p00"}} (denied): the person denied it (asked, because {because})',
        ]
        assert (await run(explain_calls, "2")).startswith('shell {"what":"t00"} (ok): grant')
        for argument in ("4", "0", "x"):
            with pytest.raises(UsageError):
                await run(explain_calls, argument)
        listed = (await run(list_grants)).splitlines()
        assert listed[0].startswith(f"1. {grant.pattern.says}, always, by telegram:7 on ")
        stranger = Scope("person:telegram:1")
        assert "Nothing is allowed" in await run(list_grants, viewer=stranger)
        for argument in ("", "2", "grt_none"):
            with pytest.raises(UsageError):
                await run(revoke_grant, argument)
        with pytest.raises(UsageError):
            await run(revoke_grant, grant.id, viewer=stranger)
        assert (await run(revoke_grant, "1")).startswith("Taken back: shell: `git status *`")
        await deny(world, await ask(world, "s"))
