"""Agents and tools named in the settings, and the errors for invalid ones."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from clew.agent.factory import build_agent
from clew.errors import SettingsError

if TYPE_CHECKING:
    from pathlib import Path

MODULE = """
from pydantic_ai import Agent

agent = Agent(name="mine")
number = 7
tools = [len]
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    name = f"mine_{tmp_path.name}"
    (tmp_path / f"{name}.py").write_text(MODULE, encoding="utf-8")
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path)])
    return name


def test_an_agent_of_ones_own_is_taken_as_it_is(module: str) -> None:
    assert build_agent(instructions="", object_path=f"{module}:agent").name == "mine"


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("{}", "must be MODULE:NAME"),
        ("{}:number", "is not a Pydantic AI agent"),
        ("{}:missing", "is not a Pydantic AI agent: .* has agent"),
        ("{}_gone:agent", "agent.object: .* cannot be imported: .* folder plugins"),
    ],
)
def test_an_object_that_is_not_an_agent_is_named(module: str, path: str, words: str) -> None:
    with pytest.raises(SettingsError, match=words):
        build_agent(instructions="", object_path=path.format(module))


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("agent = (", r"SyntaxError: .* \(faulty_agents.py, line 1\)"),
        ("import no_such_module", r"No module named .*faulty_agents.py, line 1\); install it"),
        ("x = 1\nx / 0", r"ZeroDivisionError: .*faulty_agents.py, line 2\)"),
    ],
)
def test_a_module_that_cannot_be_imported_is_reported_with_its_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str, words: str
) -> None:
    (tmp_path / "faulty_agents.py").write_text(code)
    monkeypatch.setattr(sys, "path", [*sys.path, str(tmp_path)])
    with pytest.raises(SettingsError, match=words):
        build_agent(instructions="", object_path="faulty_agents:agent")


def test_a_module_without_tools_is_named(module: str) -> None:
    assert build_agent(instructions="", object_path=None, tool_modules=[module])
    with pytest.raises(SettingsError, match="has no list named tools"):
        build_agent(instructions="", object_path=None, tool_modules=["json"])
    with pytest.raises(SettingsError, match=r"tools\.modules: .* cannot be imported"):
        build_agent(instructions="", object_path=None, tool_modules=[f"{module}_gone"])
