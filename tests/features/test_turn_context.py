"""The running turn as tools and hooks see it; tools of features, for every agent."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from pydantic_ai import Agent

from clew.agent.loop import AgentLoop
from clew.agent.models import close_models_on_exit
from clew.core.route import Route, local_route
from clew.core.tool_declaration import ToolDeclaration
from clew.engine.engine import Engine
from clew.plugin import TurnContext, get_turn_context
from clew.plugin.registry import Features
from clew.runtime import build_services, make_feature_toolsets
from clew.store.opening import open_store
from clew.testing import Calls, FakeProvider, ScriptedCall, Text, reply_in_sequence
from tests.integration.api_server import settings_for

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path

    from clew.plugin import Registry
    from clew.plugin.registry import Register
    from clew.testing import Reply

ROUTE = Route(platform="telegram", kind="dm", chat="42")


@asynccontextmanager
async def open_engine(
    home: Path,
    register: Register,
    *replies: Reply,
    agent: Agent[Any, Any] | None = None,
    sandbox_level: str = "work",
    name: str = "tested",
) -> AsyncGenerator[tuple[Engine, FakeProvider]]:
    """An engine with one feature, over a provider that replies in sequence."""
    features = Features()
    features.register(name, register)
    with FakeProvider(reply_in_sequence(replies)) as provider:
        async with (
            close_models_on_exit(),
            await open_store("sqlite:///clew.db", home=home, features=features.schemas) as store,
        ):
            settings = settings_for(home, provider=provider)
            settings = replace(settings, sandbox=replace(settings.sandbox, level=sandbox_level))
            features.bind_settings(settings)
            services = build_services(settings, store, features)
            if agent is not None:
                toolsets = make_feature_toolsets(settings_for(home), features, agent)
                loop = AgentLoop(agent, max_steps=9, toolsets=toolsets)
                services = replace(services, loop=loop)
            async with Engine(services, role="test", version="0") as engine:
                yield engine, provider


async def say(engine: Engine, text: str, route: Route = ROUTE) -> str:
    done = await engine.wait_for_input(await engine.submit(text, target=route))
    return done.text


def call(tool: str, **args: object) -> Calls:
    return Calls((ScriptedCall(tool, args),))


async def test_a_tool_sees_the_sandbox_level_of_the_settings(tmp_path: Path) -> None:
    levels: list[str] = []

    def look() -> str:
        """Look around."""
        context = get_turn_context()
        assert context is not None
        levels.append(context.sandbox_level)
        return "seen"

    def register(registry: Registry) -> None:
        registry.add_tool(look, effect="pure")

    for level in ("work", "read"):
        home = tmp_path / level
        async with open_engine(home, register, call("look"), Text("done"), sandbox_level=level) as (
            engine,
            _,
        ):
            await say(engine, "hello")
    assert levels == ["work", "read"]


async def test_a_tool_and_a_hook_see_the_turn_and_its_call(tmp_path: Path) -> None:
    seen: list[TurnContext | None] = []

    def look() -> str:
        """Look around."""
        seen.append(get_turn_context())
        return "seen"

    def note_call(tool_name: str) -> None:
        seen.append(get_turn_context())

    def register(registry: Registry) -> None:
        registry.add_tool(look, effect="pure")
        registry.add_hook("pre_tool_call", note_call)
        registry.add_hook("post_tool_call", note_call)

    async with open_engine(tmp_path, register, call("look"), Text("done")) as (engine, _):
        await say(engine, "hello")
    assert get_turn_context() is None
    before, during, after = seen
    assert before is not None
    assert during is not None
    assert during.call_key is not None
    assert (during.call_key.turn_id, during.call_key.step) == (during.turn, 1)
    assert replace(during, call_key=None) == before == after
    assert (before.route, before.scope) == (ROUTE.key, "person:telegram:42")
    assert (before.platform, before.attended, before.hops) == ("telegram", True, 0)
    assert before.services.settings.home == tmp_path


async def test_a_tool_has_a_time_limit_of_its_own(tmp_path: Path) -> None:
    async def rest() -> None:
        """Rest."""
        await asyncio.Event().wait()

    def register(registry: Registry) -> None:
        registry.add_tool(rest, effect="pure", timeout=timedelta(seconds=0.05))

    async with open_engine(tmp_path, register, call("rest"), Text("done")) as (engine, provider):
        assert await say(engine, "hello") == "done"
        assert b"took longer than 0.05 s" in provider.requests[-1].body


@pytest.mark.unequal
async def test_a_tool_is_offered_only_when_it_says_so(tmp_path: Path) -> None:
    def look() -> str:
        """Look around."""
        return "seen"

    def is_chat(context: TurnContext) -> bool:
        return context.platform != "local"

    def register(registry: Registry) -> None:
        registry.add_tool(look, effect="pure", when=is_chat)

    async with open_engine(tmp_path, register, Text("one"), Text("two")) as (engine, provider):
        await say(engine, "hello", local_route("talk"))
        await say(engine, "hello")
        first, second = [request.json or {} for request in provider.requests]
    assert "tools" not in first
    assert [tool["function"]["name"] for tool in second["tools"]] == ["look", "read_result"]


async def test_an_agent_of_its_own_gets_the_tools_of_features_unless_it_has_them(
    tmp_path: Path,
) -> None:
    agent: Agent[Any, Any] = Agent()

    @agent.tool_plain
    def look() -> str:
        return "seen by the agent"

    def look_too() -> str:
        """Look around."""
        return "seen by the feature"

    def dig() -> str:
        """Dig."""
        return "dug"

    def register(registry: Registry) -> None:
        registry.add_tool(look_too, name="look", effect="pure")
        registry.add_tool(dig, effect="pure")

    replies = Calls((ScriptedCall("look", {}), ScriptedCall("dig", {}))), Text("done")
    async with open_engine(tmp_path, register, *replies, agent=agent) as (engine, provider):
        await say(engine, "hello")
        assert engine.tools == ("look", "dig")
        assert b"seen by the agent" in provider.requests[-1].body
        assert b"dug" in provider.requests[-1].body
    settings = settings_for(tmp_path)
    own = replace(settings.agent, object="my:agent", features=False)
    features = Features()
    features.add("tested", "tool", "dig", ToolDeclaration(name="dig", function=dig))
    assert make_feature_toolsets(replace(settings, agent=own), features, agent) == ()
