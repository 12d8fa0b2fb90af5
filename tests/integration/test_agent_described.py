"""``agent.describe``: who answers behind a connection."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pydantic_ai import Agent
from pydantic_ai.toolsets import ExternalToolset, FunctionToolset

from clew.agent.tool_names import list_tool_names
from clew.config.settings import ToolsSettings
from clew.distribution import VERSION
from clew.testing import FakeProvider
from clew.testing.provider import echo
from clew.wire import methods
from clew.wire.params import NoParams
from clew.wire.results import AgentShape
from tests.integration.api_server import running, settings_for
from tests.integration.rpc_clients import client, over_pipe

if TYPE_CHECKING:
    from pathlib import Path


async def test_a_client_learns_the_model_the_tools_and_the_home(tmp_path: Path) -> None:
    with FakeProvider(echo) as provider:
        settings = settings_for(tmp_path, provider=provider)
        settings = replace(settings, tools=ToolsSettings(modules=("tests.tui.tools",)))
        async with running(settings) as server, client(over_pipe(server)) as caller:
            found = await caller.call(methods.DESCRIBE, NoParams())
    assert found.tools[:2] == ["look", "pay"]
    assert {"shell", "run_python"} <= set(found.tools)
    assert found == AgentShape(
        version=VERSION,
        model="openai-chat:fake-model",
        offline=False,
        tools=found.tools,
        home=str(settings.home),
    )


def test_a_toolset_that_is_asked_later_is_named_as_a_whole() -> None:
    def look() -> str:
        return ""

    functions = FunctionToolset([look]).prefixed("far")
    agent = Agent(toolsets=[functions, ExternalToolset([], id="elsewhere")])
    assert list_tool_names(agent) == ("look", "elsewhere")
