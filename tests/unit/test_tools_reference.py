"""The page of tools says what the features declare, ``clew tools`` lists those of all owners."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from clew.cli.entry_point import run_command
from clew.cli.tools_reference import EXAMPLES, render_reference
from clew.core.tool_declaration import ToolDeclaration
from clew.plugin.loading import load_features

ROOT = Path(__file__).parents[2]

AGENT = """
from pydantic_ai import Agent
from pydantic_ai.toolsets import FunctionToolset


def sow(what: str) -> str:
    '''Sow.'''
    return what


agent = Agent(toolsets=[FunctionToolset([sow]).approval_required()])
tools = [sow]


@agent.tool_plain(requires_approval=True, metadata={"effect": "ask", "untrusted": True})
def write_file(path: str) -> str:
    '''Take the place of the tool of Clew.'''
    return path


@agent.tool_plain(metadata={"facts": len})
def water(what: str) -> str:
    '''Water.'''
    return what
"""


def test_the_page_of_all_tools_is_up_to_date_and_has_examples_of_each(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "reference" / "tools.md").read_text(encoding="utf-8")
    again = "python -m clew.cli.tools_reference docs/reference/tools.md"
    assert page == render_reference(), f"write it anew: {again}"
    declared = load_features(folder=tmp_path).values(ToolDeclaration)
    assert [one.name for one in declared] == list(EXAMPLES)


@pytest.mark.parametrize("with_features", [True, False])
def test_the_tools_of_an_own_agent_come_first_and_take_the_place_of_others(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    with_features: bool,
) -> None:
    _write_module(tmp_path, monkeypatch)
    options = [
        *("--set", "agent.object=listed_garden:agent"),
        *("--set", f"agent.features={str(with_features).lower()}"),
    ]
    assert run_command(["--home", str(tmp_path), *options, "tools", "--json"]) == 0
    items = json.loads(capsys.readouterr().out)["items"]
    own = [one for one in items if one["feature"] == "agent.object"]
    assert [(one["name"], one["effect"], one["default"], one["untrusted"]) for one in own] == [
        ("write_file", "ask", "asks", True),
        ("water", "once", "by call", False),
        ("sow", "once", "by call", False),
    ]
    names = [one["name"] for one in items]
    assert names.count("write_file") == 1
    assert ("read_file" in names) is with_features


def test_the_tools_of_modules_are_listed_with_those_of_clew(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    _write_module(tmp_path, monkeypatch)
    options = ["--set", "tools.modules=listed_garden", "--set", "sandbox.level=host"]
    assert run_command(["--home", str(tmp_path), *options, "tools"]) == 0
    told = capsys.readouterr()
    lines = [line.split() for line in told.out.splitlines()]
    assert lines[1] == ["sow", "once", "runs", "tools.modules"]
    assert ["write_file", "idempotent", "by", "call", "files"] in lines
    assert told.err == "commands run at the sandbox level host\n"


def _write_module(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (home / "plugins").mkdir()
    (home / "plugins" / "listed_garden.py").write_text(AGENT)
    monkeypatch.delitem(sys.modules, "listed_garden", raising=False)
    monkeypatch.setattr(sys, "path", [*sys.path])
