"""The program as its users start it: options, exit codes, and ``clew config``."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from clew.cli.commands import COMMANDS
from tests import forking

SCRIPT = Path(sys.executable).parent / "clew"
SECRET = "sk-do-not-show-me"
posix = pytest.mark.skipif(os.name != "posix", reason="signals, file modes, shells")


class Program:
    """``clew`` in a home of its own and an environment without settings."""

    def __init__(self, home: Path) -> None:
        self.home = home
        kept = {"PATH", "LANG", "SYSTEMROOT", "SSL_CERT_DIR"}
        self.environ = {name: os.environ[name] for name in kept & os.environ.keys()}
        self.environ |= {"CLEW_HOME": str(home), "TZ": "Europe/Berlin"}

    def __call__(self, *args: str, **environ: str) -> subprocess.CompletedProcess[str]:
        return forking.run(args, environ=self.environ | environ, within=60)

    def fresh(self, *args: str, **environ: str) -> subprocess.CompletedProcess[str]:
        """Run the installed script, with an interpreter that has imported nothing."""
        return subprocess.run(
            [SCRIPT, *args],
            capture_output=True,
            text=True,
            env=self.environ | environ,
            stdin=subprocess.DEVNULL,
            timeout=60,
            check=False,
        )

    def json(self, *args: str, **environ: str) -> dict[str, Any]:
        done = self(*args, **environ)
        assert done.returncode == 0, done.stderr
        made: dict[str, Any] = json.loads(done.stdout)
        return made

    def write(self, text: str, *, mode: int = 0o600) -> Path:
        self.home.mkdir(exist_ok=True)
        file = self.home / "config.toml"
        file.write_text(text, encoding="utf-8")
        file.chmod(mode)
        return file


@pytest.fixture
def clew(tmp_path: Path) -> Program:
    return Program(tmp_path / "home")


def test_the_version_and_the_help_import_nothing_that_only_commands_need(clew: Program) -> None:
    for option in ("--version", "--help"):
        done = clew.fresh(option, PYTHONPROFILEIMPORTTIME="1")
        assert done.returncode == 0
        imported = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
        assert "click" in imported
        tops = {name.partition(".")[0] for name in imported}
        assert not tops & {"asyncio", "httpx", "pydantic", "sqlite3", "structlog", "textual"}
        ours = {name for name in imported if name.startswith("clew.")}
        assert {name.split(".")[1] for name in ours} <= {
            "cli",
            "distribution",
            "errors",
            "lazy_imports",
        }, ours


@pytest.mark.parametrize("args", [[], ["--help"], ["-h"]])
def test_the_program_alone_prints_its_help(clew: Program, args: list[str]) -> None:
    done = clew.fresh(*args)
    assert (done.returncode, done.stderr) == (0, "")
    assert "clew chat Hello" in done.stdout
    assert "config " in done.stdout


def test_help_imports_no_command_and_nothing_heavy() -> None:
    code = (
        "import sys; from clew.cli.entry_point import run_command; run_command(['--help']); "
        "print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split("\n")[-2].split())
    commands = {entry.module for entry in COMMANDS.values()}
    heavy = {"pydantic", "pydantic_ai", "starlette", "psycopg", "apsw", "asyncio", "clew.config"}
    assert "clew.cli.lazy" in loaded
    assert (commands | heavy) & loaded == set()


def test_every_command_and_subcommand_has_help_with_an_example(clew: Program) -> None:
    for args in (["config"], *(["config", name] for name in ("show", "check", "path", "schema"))):
        done = clew(*args, "--help")
        assert done.returncode == 0
        assert f"  clew {' '.join(args)}" in done.stdout or "$(clew config path)" in done.stdout


def test_help_needs_no_usable_settings(clew: Program) -> None:
    clew.write("[broken")
    assert clew("config", "show", "--help").returncode == 0
    assert clew("config", "path").returncode == 0


@pytest.mark.parametrize(
    ("args", "told"),
    [
        (["confg"], "Did you mean one of: 'config', 'cron'?"),
        (["config", "shwo"], "Did you mean 'show'?"),
        (["config", "show", "--jsn"], "Did you mean '--json'?"),
        (["--set", "x", "config", "show"], "'x' is not of the form SECTION.KEY=VALUE"),
        (["config", "show", "--home", "x"], "--home goes before the command: clew --home"),
        (["--set", "api.prt=1", "config", "show"], "--set api.prt: there is no setting api.prt"),
        (["--set", "api.port=x", "config", "show"], "api.port must be a whole number"),
    ],
)
def test_wrong_usage_exits_2_and_says_what_was_meant(
    clew: Program, args: list[str], told: str
) -> None:
    done = clew(*args)
    assert (done.returncode, done.stdout) == (2, "")
    assert told in done.stderr
    assert "Traceback" not in done.stderr


def test_show_prints_every_value_with_its_origin(clew: Program) -> None:
    file = clew.write("[model]\nname = 'openai-chat:llama3'\nbase_url = 'http://127.0.0.1:1/v1'\n")
    done = clew("--set", "lease.seconds=20", "config", "show", CLEW_API__PORT="9000")
    assert done.returncode == 0
    lines = {line.split()[0]: line.split(maxsplit=2)[1:] for line in done.stdout.splitlines()[1:]}
    assert lines["model.name"] == ['"openai-chat:llama3"', f"{file}, line 2"]
    assert lines["api.port"] == ["9000", "CLEW_API__PORT"]
    assert lines["lease.seconds"] == ["20", "--set lease.seconds"]
    assert lines["session.idle"] == ['"24h"', "default"]
    assert lines["session.timezone"] == ['"Europe/Berlin"', "default: the machine's"]


def test_show_as_json_says_the_same(clew: Program) -> None:
    made = clew.json("config", "show", "--json", CLEW_API__PORT="9000")
    assert made["home"] == str(clew.home)
    port = {"value": 9000, "origin": "environment", "place": "CLEW_API__PORT"}
    assert made["settings"]["api.port"] == port
    assert made["settings"]["model.name"]["value"] == "offline"
    assert "no model is configured" in made["settings"]["model.name"]["place"]


def test_the_home_option_beats_the_environment(clew: Program, tmp_path: Path) -> None:
    other = tmp_path / "other"
    made = clew.json("--home", str(other), "config", "path", "--json")
    assert made == {"home": str(other), "config": str(other / "config.toml")}
    assert clew("config", "path").stdout == f"{clew.home / 'config.toml'}\n"


def test_looking_at_settings_makes_no_folder(clew: Program) -> None:
    for command in ("show", "check", "path"):
        assert clew("config", command).returncode == 0
    assert not clew.home.exists()


def test_no_command_prints_a_secret(clew: Program) -> None:
    clew.write(
        f"[api]\ntoken = '{SECRET}'\n[store]\nurl = 'postgresql://me:{SECRET}@db/x'\n"
        f"[channels.slack]\napp_token = '{SECRET}'\n",
        mode=0o644,
    )
    environ = {
        "CLEW_MODEL__NAME": "openai:x",
        "CLEW_MODEL__API_KEY": SECRET,
        "OPENAI_API_KEY": SECRET,
    }
    for args in (["show"], ["show", "--json"], ["check"], ["check", "--json"]):
        done = clew("config", *args, **environ)
        assert done.returncode == 0, done.stderr
        assert SECRET not in done.stdout + done.stderr
        wrong = clew("--set", "api.port=x", "config", *args, **environ)
        assert wrong.returncode == 2
        assert SECRET not in wrong.stdout + wrong.stderr


def test_check_is_quiet_about_right_settings(clew: Program) -> None:
    done = clew("config", "check")
    assert (done.returncode, done.stdout, done.stderr) == (0, "Configuration OK\n", "")
    assert clew.json("config", "check", "--json") == {"ok": True, "problems": [], "warnings": []}


def test_check_reports_every_problem_at_once(clew: Program) -> None:
    file = clew.write("[model]\nnam = 'x'\n[session]\nidle = 'soon'\n")
    done = clew("config", "check", CLEW_API__PORT="x")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.splitlines() == [
        "clew: the settings are wrong:",
        f"  - {file}, line 2: there is no setting model.nam; did you mean model.name?",
        (
            f'  - {file}, line 4: session.idle must be a duration such as "90s", "15m" or "24h", '
            "or a number of seconds, not 'soon'"
        ),
        "  - CLEW_API__PORT: api.port must be a whole number from 0 to 65535, not 'x'",
    ]
    as_json = clew("config", "check", "--json", CLEW_API__PORT="x")
    assert as_json.returncode == 2
    made = json.loads(as_json.stdout)
    assert (made["ok"], len(made["problems"])) == (False, 3)


def test_check_also_tries_what_is_only_read_later(clew: Program) -> None:
    clew.write("[api]\nhost = '0.0.0.0'\n[channels.telegram]\ntoken = { env = 'ABSENT' }\n")
    assert clew("config", "show").returncode == 0
    done = clew("config", "check")
    assert done.returncode == 2
    assert "there is no api.token" in done.stderr
    assert "channels.telegram.token" in done.stderr
    assert "ABSENT" in done.stderr


@posix
def test_warnings_are_reported_on_stderr(clew: Program) -> None:
    clew.write(f"[api]\ntoken = '{SECRET}'\n", mode=0o644)
    for command in ("show", "check"):
        done = clew("config", command)
        assert done.returncode == 0
        assert done.stderr.startswith("clew: warning: ")
        assert "chmod 600" in done.stderr
    clew.write("[api]\ntoken = '12345'\n", mode=0o600)
    done = clew("config", "check")
    assert (done.returncode, done.stdout) == (0, "Configuration OK\n")
    assert "api.token has fewer than 6 characters: it is not masked" in done.stderr


def test_the_schema_is_json_and_knows_every_section(clew: Program) -> None:
    made = clew.json("config", "schema")
    assert made["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    shown = clew.json("config", "show", "--json")["settings"]
    assert {name.split(".")[0] for name in shown} <= made["properties"].keys()


def test_a_traceback_shows_only_on_request(clew: Program) -> None:
    clew.write("[broken")
    assert "Traceback" not in clew("config", "show").stderr
    asked = clew("config", "show", CLEW_DEBUG="1")
    assert asked.returncode == 2
    assert "Traceback" in asked.stderr
    assert "clew: " in asked.stderr


@posix
def test_a_reader_that_goes_away_is_no_noise(clew: Program) -> None:
    for command in ("show", "schema"):
        pipe = f"{SCRIPT} config {command} | true"
        done = subprocess.run(
            ["bash", "-c", pipe], env=clew.environ, capture_output=True, text=True, check=False
        )
        assert (done.returncode, done.stderr) == (0, "")


@posix
@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_prints_a_script_for_the_shell(clew: Program, shell: str) -> None:
    done = clew("completion", shell)
    assert done.returncode == 0
    assert "_CLEW_COMPLETE" in done.stdout


@posix
def test_commands_options_and_subcommands_are_completed(clew: Program) -> None:
    def completed(words: str) -> list[str]:
        count = str(len(words.split(" ")) - 1)
        environ = {"COMP_WORDS": words, "COMP_CWORD": count, "_CLEW_COMPLETE": "bash_complete"}
        return [line.split(",")[1] for line in clew(**environ).stdout.splitlines()]

    assert "config" in completed("clew c")
    assert completed("clew --ho") == ["--home"]
    assert completed("clew config s") == ["schema", "set", "show"]


SLOW = """
import signal, time, click
from clew.cli import entry_point as entry

# Ignored where the tests run in the background of a shell.
signal.signal(signal.SIGINT, signal.default_int_handler)

@entry.root.command("sleep")
def sleep():
    print("ready", flush=True)
    time.sleep(60)

entry.root.entries = {}
entry.root.get_command = lambda ctx, name: sleep
entry.root.list_commands = lambda ctx: ["sleep"]
raise SystemExit(entry.run_command(["sleep"]))
"""


@posix
def test_ctrl_c_exits_130_without_noise(clew: Program) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", SLOW],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=clew.environ,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        process.send_signal(signal.SIGINT)
        _, told = process.communicate(timeout=60)
    assert (process.returncode, told.strip()) == (130, "")
