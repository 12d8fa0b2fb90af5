"""``clew mcp add|list|test|remove``: servers in config.toml, also those of other programs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from clew.cli import entry_point
from clew.config.toml_edit import remove_table
from clew.errors import UsageError
from clew.features.mcp.importing import PlainSecret, read_servers
from tests.features.mcp_world import Plan

if TYPE_CHECKING:
    from pathlib import Path

_BEFORE = """\
# mine
[model]
name = "offline"  # for now

[web]
search = "none"
"""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "config.toml").write_text(_BEFORE, encoding="utf-8")
    return tmp_path


class Cli:
    """``clew mcp`` within the process of the test."""

    def __init__(self, home: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self._home, self._capsys = home, capsys

    def run(self, *args: str, code: int = 0) -> str:
        assert entry_point.run_command(["--home", str(self._home), "mcp", *args]) == code
        told = self._capsys.readouterr()
        return told.out + told.err

    def data(self, *args: str, code: int = 0) -> Any:
        return json.loads(self.run(*args, "--json", code=code))


@pytest.fixture
def cli(home: Path, capsys: pytest.CaptureFixture[str]) -> Cli:
    return Cli(home, capsys)


def test_a_server_is_added_shown_tried_and_removed(home: Path, cli: Cli) -> None:
    tools = {
        "look": {"description": "Look", "annotations": {"read_only_hint": True}},
        "change": {"description": "Change"},
    }
    plan = Plan(home / "plan.json", tools, instructions="Look before you change.")
    command = plan.make_server().command
    told = cli.run("add", "talk", "--level", "host", "--trust", "annotations", "--env",
                   "API_TOKEN=hush", "--env", "DEBUG=1", "--", *command)  # fmt: skip
    assert "talk is up: 2 tools" in told
    assert "- look (only reads): Look\n- change (is never repeated, asks): Change" in told
    assert "Look before you change." in told
    text = (home / "config.toml").read_text(encoding="utf-8")
    assert text.startswith(_BEFORE)
    assert "hush" not in told + text
    (key,) = (home / "keys").iterdir()
    assert (key.read_text(), key.stat().st_mode & 0o777) == ("hush\n", 0o600)
    assert "already" in cli.run("add", "talk", "--", "x", code=2)
    (listed,) = cli.data("list")["items"]
    assert (listed["name"], listed["state"]) == ("talk", "off")
    assert [tool["name"] for tool in cli.data("test", "talk")["tools"]] == ["look", "change"]
    plan.write({}, begins="die")
    assert "no licence" in cli.data("test", "talk", code=1)["why"]
    assert "talk is removed" in cli.run("remove", "talk")
    assert (home / "config.toml").read_text(encoding="utf-8") == _BEFORE
    assert not list((home / "keys").iterdir())
    assert "no table [mcp.talk]" in cli.run("remove", "talk", code=2)


def test_servers_of_another_program_are_taken_and_what_was_not_is_named(
    home: Path, cli: Cli
) -> None:
    servers = {
        "Git Hub": {"url": "http://127.0.0.1:9/mcp", "headers": {"Authorization": "Bearer hush"}},
        "old": {"type": "sse", "url": "http://127.0.0.1:9/sse"},
    }
    (home / "other.json").write_text(json.dumps({"mcpServers": servers}))
    told = cli.data("add", "--from", str(home / "other.json"))
    assert [one["name"] for one in told["items"]] == ["git-hub"]
    assert told["items"][0]["why"]
    assert "old was not taken: its type 'sse'" in told["remarks"][0]
    shown = cli.run("list")
    assert "http://127.0.0.1:9/mcp" in shown
    assert "hush" not in json.dumps(told) + shown + (home / "config.toml").read_text()


def test_settings_that_would_be_wrong_are_not_written(home: Path, cli: Cli) -> None:
    assert cli.run("add", "far", "--url", "http://127.0.0.1:9", "--env", "A=1", code=2)
    assert (home / "config.toml").read_text(encoding="utf-8") == _BEFORE
    for wrong in (["UP", "--", "x"], ["a"], ["a", "--url", "http://x", "--", "x"], []):
        assert cli.run("add", *wrong, code=2)
    assert "no MCP server 'a'" in cli.run("test", "a", code=2)


@pytest.mark.parametrize(
    "text",
    [
        {"mcpServers": {"s": {"command": "run", "args": ["-x"], "env": {"A_KEY": "1"}}}},
        {"servers": {"s": {"type": "stdio", "command": "run", "args": ["-x"],
                           "env": {"A_KEY": "1"}}}},
        {"mcp": {"servers": {"S": {"command": ["run", "-x"], "env": {"A_KEY": 1}}}}},
    ],
)  # fmt: skip
def test_the_forms_of_other_programs_mean_the_same(text: dict[str, Any]) -> None:
    (server,) = read_servers(json.dumps(text)).servers
    assert (server.name, server.values) == ("s", {"command": ["run", "-x"]})
    assert server.env == {"A_KEY": PlainSecret("1")}


def test_variables_are_read_when_they_are_needed_and_others_are_named() -> None:
    env = {"A": "${A}", "B": "${env:X}", "C": "${input:c}", "D": "a${E}", "E": "plain"}
    given = {
        "s": {"command": "run", "env": env, "cwd": "/tmp"},
        "t": {"command": "${HOME}/run"},
        "u": {"serverUrl": "http://x/mcp", "disabled": True},
        "ü!": {"url": "http://x/mcp"},
        "v": 7,
    }
    found = read_servers(json.dumps({"mcpServers": given}))
    assert [one.name for one in found.servers] == ["s"]
    assert found.servers[0].env == {"A": {"env": "A"}, "B": {"env": "X"}, "E": "plain"}
    assert [remark.partition(":")[0] for remark in found.remarks] == [
        "s", "s", "s", "t was not taken", "u was not taken", "ü! was not taken", "v was not taken",
    ]  # fmt: skip
    for nothing in ("[]", "{}", "no json"):
        with pytest.raises(UsageError):
            read_servers(nothing)


def test_a_table_is_removed_alone_or_not_at_all() -> None:
    text = "a = 1\n\n[x.one]  # first\nb = 2\n[x.one.more]\nc = 3\n\n# of two\n[x.two]\nd = 4\n"
    assert remove_table(text, "x.one") == "a = 1\n\n# of two\n[x.two]\nd = 4\n"
    with pytest.raises(UsageError):
        remove_table("x.one = { b = 2 }\n", "x.one")
