"""``clew config`` within the process of the test, where its coverage is counted."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from clew.cli import entry_point

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def home(tmp_path: Path) -> Path:
    text = "[channels.slack]\napp_token = 'x'\n[plugins.garden.retry]\nmost = 3\n[api]\nport = 1\n"
    (tmp_path / "plugins").mkdir()
    (tmp_path / "plugins" / "garden.py").touch()
    (tmp_path / "config.toml").write_text(text, encoding="utf-8")
    (tmp_path / "config.toml").chmod(0o600)
    return tmp_path


@pytest.mark.parametrize(
    "args",
    [
        ["config", "show", "--json"],
        ["config", "check", "--json"],
        ["config", "path", "--json"],
        ["config", "schema"],
    ],
)
def test_data_is_printed_as_json(
    home: Path, args: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert entry_point.run_command(["--home", str(home), *args]) == 0
    assert isinstance(json.loads(capsys.readouterr().out), dict)


@pytest.mark.parametrize(
    ("args", "told"),
    [
        ([], "Commands:"),
        (["--version"], "clew "),
        (["config", "show"], "plugins.garden.retry.most"),
        (["config", "check"], "Configuration OK"),
        (["config", "path"], "config.toml"),
        (["completion", "zsh"], "compdef"),
    ],
)
def test_data_is_printed_for_people(
    home: Path, args: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert entry_point.run_command(["--home", str(home), *args]) == 0
    assert told in capsys.readouterr().out


def test_a_provider_that_cannot_be_asked_elsewhere_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = '[model]\nname = "openai-codex:x"\nbase_url = "http://box.lan/v1"\n'
    (tmp_path / "config.toml").write_text(text, encoding="utf-8")
    assert entry_point.run_command(["--home", str(tmp_path), "config", "check"]) == 2
    assert "model.base_url cannot be used with openai-codex" in capsys.readouterr().err


def test_the_interpreter_runs_the_program_too() -> None:
    # In a process of its own, since the entry point ends the one that it runs in.
    command = [sys.executable, "-m", "clew", "--version"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "clew " in done.stdout


@pytest.mark.parametrize(
    "args", [["check"], ["check", "--json"], ["show"], ["show", "--home", "x"]]
)
def test_an_impossible_request_exits_2(home: Path, args: list[str]) -> None:
    assert (
        entry_point.run_command(["--home", str(home), "--set", "api.port=x", "config", *args]) == 2
    )
    assert (
        entry_point.run_command(
            ["--home", str(home), "--set", "api.host=0.0.0.0", "config", "check"]
        )
        == 2
    )
