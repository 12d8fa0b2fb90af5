"""Ready capabilities and toolsets of plugins: they run in turns, and are checked before."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pytest
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.messages import ModelRequest, UserPromptPart
from pydantic_ai.toolsets import FunctionToolset
from pydantic_ai_harness.planning import Planning

from clew.agent.capability_check import check_capability
from clew.cli.entry_point import run_command
from clew.errors import SettingsError
from clew.plugin.registry import Features
from clew.runtime import build_services
from clew.testing import Calls, ScriptedCall, Text
from tests.features.test_notes import open_engine, say
from tests.integration.api_server import settings_for

if TYPE_CHECKING:
    from pathlib import Path

    from pydantic_ai import RunContext
    from pydantic_ai.models import ModelRequestContext

    from clew.plugin import Registry

PLUGIN = """
from pydantic_ai.toolsets import FunctionToolset
from clew.plugin import hookimpl
import tests.features.test_capabilities as these

@hookimpl
def register(registry):
    registry.add_capability("well-behaved", these.make_toolset)
    registry.add_capability("forgetful", these.Forgetful)
"""


def make_toolset() -> FunctionToolset[Any]:
    toolset: FunctionToolset[Any] = FunctionToolset(instructions="You can count.")
    toolset.add_function(lambda: "three", name="count", metadata={"effect": "pure"})
    return toolset


@dataclass
class Quiet(AbstractCapability[Any]):
    def get_instructions(self) -> str:
        return "Be quiet."

    def get_toolset(self) -> FunctionToolset[Any]:
        return make_toolset()


@dataclass
class Forgetful(AbstractCapability[Any]):
    """Sends what is in no history, and counts."""

    requests: int = 0

    async def before_model_request(
        self, ctx: RunContext[Any], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        self.requests += 1
        last = request_context.messages[-1]
        assert isinstance(last, ModelRequest)
        reminder = replace(last, parts=[*last.parts, UserPromptPart("Remember!")])
        request_context.messages = [*request_context.messages[:-1], reminder]
        return request_context


async def test_what_a_capability_does_beside_the_store_is_told() -> None:
    for good in (make_toolset(), Quiet()):
        report = await check_capability(good)
        assert (report.is_exact, report.tools, report.undeclared) == (True, ("count",), ())
    report = await check_capability(Forgetful())
    assert report.changed == ("sent, but not kept: user-prompt: Remember!",)
    assert report.state == ("requests",)
    planning = await check_capability(Planning())
    assert "write_plan" in planning.undeclared
    with pytest.raises(TypeError, match="not str"):
        await check_capability("nothing")


async def test_a_toolset_and_a_capability_of_a_plugin_are_part_of_every_turn(
    tmp_path: Path, store_url: str
) -> None:
    def register(registry: Registry) -> None:
        registry.add_capability("counting", make_toolset)
        registry.add_capability("quiet", AbstractCapability[Any])

    replies = (Calls((ScriptedCall("count", {}),)), Text("done"), Text("done"))
    async with open_engine(tmp_path, store_url, register, *replies) as (engine, provider, _):
        await say(engine, "one")
        await say(engine, "two")
        bodies = [request.json or {} for request in provider.requests]
    assert bodies[1]["messages"][-1]["content"] == "three"
    assert {str(body["messages"][0]) for body in bodies} == {str(bodies[0]["messages"][0])}
    assert "You can count." in str(bodies[2]["messages"][0])


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: 1 / 0, "'odd' of 'tested' cannot be made: ZeroDivisionError"),
        (lambda: "text", "'odd' of 'tested' is a str: a capability"),
    ],
)
def test_one_that_cannot_be_made_ends_the_start_with_one_sentence(
    tmp_path: Path, make: Any, told: str
) -> None:
    features = Features()
    features.register("tested", lambda registry: registry.add_capability("odd", make))
    with pytest.raises(SettingsError, match=told):
        build_services(settings_for(tmp_path), None, features)  # pyright: ignore[reportArgumentType]


def test_the_command_names_what_is_wrong(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "plugins").mkdir()
    (tmp_path / "plugins" / "mixed.py").write_text(PLUGIN, encoding="utf-8")
    (tmp_path / "config.toml").write_text('[plugins]\nenabled = ["mixed"]\n', encoding="utf-8")
    assert run_command(["--home", str(tmp_path), "plugins", "check", "mixed"]) == 1
    assert capsys.readouterr().out.splitlines() == [
        "ok    well-behaved: requests are as they are stored; tools: count",
        (
            "fail  forgetful: requests differ from the history: sent, but not kept: "
            "user-prompt: Remember!"
        ),
        "      leave messages as they are; a compactor shortens them",
        "fail  forgetful: it keeps state: requests",
        (
            "      keep it in tables of the plugin, or in what for_run returns; it is lost with a "
            "crash, an approval or another process"
        ),
    ]
    assert run_command(["--home", str(tmp_path), "plugins", "check", "missing"]) != 0
