"""Every hook of the specification is called, whatever front people use, with its arguments."""

from __future__ import annotations

import asyncio
import inspect
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import httpx2
import pytest

from clew.engine.turn_hooks import CALLED_HOOK
from clew.hooks import specs
from clew.testing import Calls, FakeProvider, Hang, ScriptedCall, Text
from tests.acceptance.program import Clew
from tests.contract.lifecycle.later import Later
from tests.contract.lifecycle.product import HOOKS, SOON, plan, running
from tests.failing.compacting import Plays
from tests.integration.api_server import serving
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from clew.testing import ProviderRequest, Reply
    from tests.contract.lifecycle.product import Plan, Told

TOOLS = '''
from pydantic_ai import Tool


def look(at: str) -> str:
    """Look at something."""
    return f"seen: {at}"


def burn(what: str) -> str:
    """Burn something."""
    return f"{what} is gone"


def pay(amount: int) -> str:
    """Pay."""
    return f"{amount} paid"


tools = [look, burn, Tool(pay, requires_approval=True)]
'''
#: A plugin that blocks one tool, and takes no more than it needs beside the rest.
GUARD = """
from clew.hooks.specs import hookimpl


@hookimpl
def pre_tool_call(tool_name, **kwargs):
    if tool_name == "burn":
        return {"action": "block", "message": f"nothing is burnt: {sorted(kwargs)}"}
"""
SPECIFIED = {
    name: set(inspect.signature(hook).parameters)
    for name, hook in vars(specs).items()
    if hasattr(hook, "clew_spec") and name not in ("configure", "register")
}
#: Only chat platforms have messages of chats, and only some calls are asked about.
NOT_EVERYWHERE = {"pre_gateway_dispatch", "pre_approval_request", "post_approval_response"}


def _acts(request: ProviderRequest) -> Reply:
    """Looks and burns, and says so; hangs, or pays, where it is told to."""
    said = request.last_user_text
    if said == "hang":
        return Hang()
    if request.messages[-1].results or said not in ("look", "pay"):
        return Text("done: " + " / ".join(result.text for result in request.new_results))
    if said == "pay":
        return Calls([ScriptedCall("pay", {"amount": 5})])
    return Calls(
        [ScriptedCall("look", {"at": "the moon"}), ScriptedCall("burn", {"what": "a letter"})]
    )


def _plan(folder: Path, **more: Any) -> Plan:
    given = plan(
        f"sqlite:///{folder}/clew.db",
        folder,
        model=Plays(turn=_acts),
        plugins=("diary", "guard"),
        flags={
            "tools.modules": "acting_tools",
            "session.reset": "idle",
            "session.idle": "1h",
            **more.pop("flags", {}),
        },
        **more,
    )
    given.home.plugin("acting_tools", TOOLS)
    given.home.plugin("guard", GUARD)
    return given


async def _over_http(given: Plan, clock: Later) -> str:
    async with (
        running(given) as product,
        serving(product.engine, product.settings) as url,
        httpx2.AsyncClient(base_url=url, timeout=120) as http,
    ):

        async def say(text: str) -> None:
            answer = await http.post(
                "/v1/chat/completions",
                json={"messages": [{"role": "user", "content": text}]},
                headers={"X-Clew-Conversation": "talk"},
            )
            answer.raise_for_status()

        await say("look")
        # No request starts a conversation anew: time does.
        clock.ahead = timedelta(hours=2)
        await say("hello")
        await product.engine.wait_until_idle()
    return "local"


async def _over_rpc(given: Plan, clock: Later) -> str:
    async with running(given) as product, product.client() as client:
        await product.say(client, "look")
        await product.command(client, "/new")
        await product.engine.wait_until_idle()
    return "local"


async def _on_a_channel(given: Plan, clock: Later) -> str:
    given.telegram = True
    async with running(given) as product:
        await product.chat("look")
        await product.chat("/new")
        await wait_until(lambda: product.home.told("on_session_reset"), "a reset", seconds=SOON)
        await product.engine.wait_until_idle()
    return "telegram"


async def _by_the_program(given: Plan, clock: Later) -> str:
    with FakeProvider(given.model) as provider:
        clew = (
            Clew(given.home.path)
            .asking(provider)
            .with_env(
                {
                    "CLEW_STORE__URL": given.url,
                    "CLEW_PLUGINS__ENABLED": ",".join(given.plugins),
                    "CLEW_TOOLS__MODULES": "acting_tools",
                }
            )
        )
        await asyncio.to_thread(clew.run, "chat", "-c", "talk", "look")
        await asyncio.to_thread(clew.run, "chat", "-c", "talk", "/new")
    return "local"


FRONTS = (_over_http, _over_rpc, _on_a_channel, _by_the_program)


@pytest.mark.parametrize("front", FRONTS, ids=lambda front: front.__name__.strip("_"))
async def test_every_hook_is_called_with_its_arguments(
    front: Callable[[Plan, Later], Awaitable[str]], tmp_path: Path
) -> None:
    clock = Later()
    given = _plan(tmp_path, clock=clock)
    platform = await front(given, clock)
    told = given.home.told()
    assert {one.hook for one in told} == set(HOOKS) == SPECIFIED.keys() - NOT_EVERYWHERE
    for one in told:
        assert one.facts.keys() == SPECIFIED[one.hook], one.hook
        assert None not in one.facts.values(), one
        assert one.facts.get("platform", platform) == platform
        assert one.facts.get("model", "fake-model") == "fake-model"
    called = {one.facts["tool_name"]: one.facts for one in told if one.hook == CALLED_HOOK}
    assert (called["look"]["status"], called["look"]["args"]) == ("ok", {"at": "the moon"})
    assert (called["burn"]["status"], called["burn"]["args"]) == ("denied", {"what": "a letter"})
    assert "nothing is burnt: ['args', 'session_id', 'tool_call_id', 'turn_id']" in str(
        called["burn"]["result"]
    )
    answered = _first(told, "post_llm_call")
    assert answered["user_message"] == "look"
    assert answered["assistant_response"].startswith("done: seen: the moon / ")


def _first(told: list[Told], hook: str) -> dict[str, Any]:
    return next(one.facts for one in told if one.hook == hook)


async def test_a_call_that_a_person_refuses_or_stops_is_reported_too(tmp_path: Path) -> None:
    async with running(_plan(tmp_path)) as product, product.client() as client:
        for command in ("/deny", "/stop", "/approve"):
            await product.submit(client, "pay")
            talk = await product.engine.resolve_name("talk")
            await wait_until(
                lambda: product.engine.list_approvals(talk),  # noqa: B023
                "a question",
                seconds=SOON,
            )
            if command != "/stop":
                [question] = await product.engine.list_approvals(talk)
                # A program may not have shown it: it has to name it.
                await product.command(client, command)
                assert await product.engine.list_approvals(talk) == [question]
                command += f" {question.id}"
            await product.command(client, command)
            await product.at_rest()
        await product.engine.wait_until_idle()
        statuses = [one.facts["status"] for one in product.home.told(CALLED_HOOK)]
    assert statuses == ["denied", "cancelled", "ok"]


async def test_a_turn_that_is_stopped_is_no_answer_and_a_session_starts_once(
    tmp_path: Path,
) -> None:
    given = _plan(tmp_path, session_ids=("sess-1", "sess-2"))
    async with running(given) as product, product.client() as client:
        await product.submit(client, "hang")
        await wait_until(lambda: product.model.turns, "a request", seconds=SOON)
        await product.command(client, "/stop")
        await product.at_rest()
        await product.say(client, "hello")
        await product.command(client, "/new")
        await product.say(client, "hello again")
        await product.engine.wait_until_idle()
    told = product.home.told("on_session_start", "on_session_end", "post_llm_call")
    assert [(one.hook, one.facts["session_id"]) for one in told] == [
        ("on_session_start", "sess-1"),
        ("on_session_end", "sess-1"),
        ("post_llm_call", "sess-1"),
        ("on_session_end", "sess-1"),
        ("on_session_start", "sess-2"),
        ("post_llm_call", "sess-2"),
        ("on_session_end", "sess-2"),
    ]
    ends = [one.facts for one in told if one.hook == "on_session_end"]
    assert [(one["completed"], one["interrupted"]) for one in ends] == [
        (False, True),
        (True, False),
        (True, False),
    ]
