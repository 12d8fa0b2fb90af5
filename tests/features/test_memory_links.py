"""Accounts of one person that are linked share their facts, and nobody else has them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from clew.api.builtin_operations import build_operations
from clew.api.operation_context import OperationContext
from clew.core.route import Route
from clew.core.scope import scope_of
from clew.features.memory.link_operations import OPERATIONS, UnlinkParams
from clew.tui.transports import in_process
from clew.wire.errors import CallFailed, ErrorCode
from clew.wire.params import NoParams
from tests.features.memory_world import ANN, MemoryWorld, open_memory
from tests.integration.rpc_clients import client, serve_over

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any

SLACK = Route(platform="slack", kind="dm", chat="D7")
BOB = Route(platform="slack", kind="dm", chat="D8")
GROUP = Route(platform="slack", kind="group", chat="C1")


def make_context(world: MemoryWorld, **given: Any) -> OperationContext:
    return OperationContext(
        engine=world.engine,
        settings=world.engine.feature_context.settings,
        operations=build_operations(world.engine.features),
        **given,
    )


async def test_linked_accounts_share_their_facts_until_they_are_parted(
    tmp_path: Path, store_url: str
) -> None:
    async with open_memory(tmp_path, store_url) as world:
        await world.command("/remember Ann lives in Rome.", ANN)
        await world.command("/remember Ann likes tea.", SLACK)
        await world.say("hello", SLACK)
        told = await world.command("/link", ANN)
        code = told.split()[2]
        assert "direct messages" in await world.command(f"/link {code}", GROUP)
        assert "nvalid or expired code" in await world.command("/link ABCD-EFGH", BOB)
        assert "send it from the other one" in await world.command(f"/link {code}", ANN)
        code = (await world.command("/link", ANN)).split()[2]
        assert "is linked" in await world.command(f"/link {code.lower()}", SLACK)
        assert "nvalid or expired code" in await world.command(f"/link {code}", BOB), "once"
        await world.settle()
        await world.say("and now?", SLACK)
        core = world.sent[-1].system_text
        assert "1. Ann lives in Rome.\n2. Ann likes tea." in core, "a session of its own"
        await world.call("remember", SLACK, fact="Ann plays chess.")
        await world.say("hello", ANN)
        assert "3. Ann plays chess." in world.last_request()
        assert "and now?" in await world.call("recall", ANN, query="now"), "its messages, too"
        for route in (BOB, GROUP):
            assert "Nothing is remembered here" in await world.command("/memory", route)
            await world.say("hello", route)
            assert "Ann" not in world.last_request()
        await world.command("/forget 3", ANN)
        await world.settle()
        await world.say("what do you know?", SLACK)
        assert "chess" not in world.last_request(), "forgotten in both"
        assert "parted" in await world.command("/unlink", SLACK)
        await world.settle()
        assert "Nothing is remembered here" in await world.command("/memory", SLACK)
        assert "2. Ann likes tea." in await world.command("/memory", ANN), "the first keeps them"
        await world.say("hello?", SLACK)
        assert "1. Ann lives in Rome." not in world.sent[-1].system_text
        await world.check()


async def test_an_operator_sees_linked_accounts_and_parts_them(
    tmp_path: Path, store_url: str
) -> None:
    async with open_memory(tmp_path, store_url) as world:
        await world.command("/remember Ann lives in Rome.", ANN)
        code = (await world.command("/link", ANN)).split()[2]
        await world.command(f"/link {code}", SLACK)
        await world.say("hello", SLACK)
        context = make_context(world)
        async with client(in_process(serve_over(context))) as rpc:
            listing, parting = (OPERATIONS[name].definition for name in OPERATIONS)
            (link,) = (await rpc.call(listing, NoParams())).items
            assert (link.scope, link.main) == (scope_of(SLACK), scope_of(ANN))
            unlink = UnlinkParams(account=link.scope)
            assert (await rpc.call(parting, unlink)).parted == [link.scope]
            assert (await rpc.call(listing, NoParams())).items == []
            with pytest.raises(CallFailed) as refused:
                await rpc.call(parting, unlink)
            assert refused.value.code == ErrorCode.NOT_FOUND
        await world.settle()
        await world.say("hello?", SLACK)
        assert "Ann lives in Rome." not in world.sent[-1].system_text
        guest = make_context(world, viewer=scope_of(BOB))
        async with client(in_process(serve_over(guest))) as rpc:
            with pytest.raises(CallFailed) as refused:
                await rpc.call(listing, NoParams())
            assert refused.value.code == ErrorCode.METHOD_NOT_FOUND
        await world.check()
