"""Levels of the sandbox: which one is in force, what it refuses, and never a silent host."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import structlog

from clew.commands.runner import CommandRunner
from clew.config import load_settings
from clew.config.introspection import iter_secret_texts
from clew.config.validation import find_problems
from clew.config.workspaces import make_sandbox_policy
from clew.core.route import local_route
from clew.core.scope import LOCAL
from clew.errors import SettingsError
from clew.runtime import open_application
from clew.sandbox.bubblewrap import BubblewrapSandbox
from clew.sandbox.container import ContainerSandbox
from clew.sandbox.errors import SandboxError, SandboxUnavailable
from clew.sandbox.landlock import LandlockSandbox
from clew.sandbox.request import HOST_WARNING, SandboxPolicy, find_python
from clew.sandbox.runner import run_command
from clew.sandbox.seatbelt import SeatbeltSandbox, make_profile
from clew.sandbox.selection import choose_sandbox, make_candidates
from clew.sandbox.system_files import SYSTEM
from tests.sandboxes import (
    FAKE_DOCKER,
    make_bubblewrap,
    make_request,
    needs_bubblewrap,
    needs_landlock,
)
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Mapping

    from clew.config import Settings
    from clew.core.sandbox_level import Level


def policy_of(folder: Path, level: Level) -> SandboxPolicy:
    return SandboxPolicy(folder=folder / "work", level=level, image="image")


@needs_bubblewrap
async def test_the_default_level_is_in_force_and_named(tmp_path: Path) -> None:
    chosen = await choose_sandbox(policy_of(tmp_path, "work"))
    assert chosen.require_sandbox().name == "bubblewrap"
    assert (chosen.refusal, chosen.warning, chosen.failures) == (None, None, ())


def forbid_namespaces(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """Let bwrap fail as it does in a container."""
    program = folder / "bwrap"
    program.write_text(
        "#!/bin/sh\necho 'bwrap: No permissions to create new namespace' >&2\nexit 1\n"
    )
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder), prepend=":")


@needs_landlock
async def test_the_next_level_is_taken_where_namespaces_are_forbidden(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    forbid_namespaces(monkeypatch, tmp_path)
    chosen = await choose_sandbox(policy_of(tmp_path, "work"))
    assert chosen.require_sandbox().name == "Landlock"
    [(name, report)] = chosen.failures
    assert name == "bubblewrap"
    assert "No permissions to create new namespace" in report.detail


#: Prints what is in force, and what is open.
CHOICE = f"""
import sys; sys.path.insert(0, {str(Path(__file__).parents[2] / "src")!r})
import asyncio, tempfile
from pathlib import Path
from clew.sandbox.escape_check import try_escapes
from clew.sandbox.request import SandboxPolicy
from clew.sandbox.selection import choose_sandbox

async def main(folder):
    chosen = await choose_sandbox(SandboxPolicy(folder=folder))
    found = await try_escapes(chosen.require_sandbox(), folder)
    print(chosen.sandbox.name, [each.name for each in found if not each.stopped])

with tempfile.TemporaryDirectory() as name:
    asyncio.run(main(Path(name)))
"""


@needs_bubblewrap
@needs_landlock
def test_landlock_closes_every_way_where_the_kernel_forbids_namespaces() -> None:
    forbidding = ["bwrap", "--dev-bind", "/", "/", "--unshare-user", "--disable-userns"]
    done = subprocess.run(
        [*forbidding, sys.executable, "-c", CHOICE],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    if "Unknown option" in done.stderr:
        pytest.skip("this bwrap cannot forbid namespaces")
    assert done.stdout == "Landlock []\n", done.stderr


async def test_without_any_sandbox_nothing_runs_and_it_is_said_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("clew.sandbox.landlock.landlock_version", lambda: 0)
    confined: tuple[Level, ...] = ("read", "work")
    for level in confined:
        chosen = await choose_sandbox(policy_of(tmp_path, level))
        with pytest.raises(SandboxUnavailable, match="install bubblewrap") as caught:
            chosen.require_sandbox()
        assert "bwrap is not installed" in str(caught.value)
        assert "this kernel has no Landlock" in str(caught.value)
        with pytest.raises(SandboxUnavailable):
            await BubblewrapSandbox(tmp_path).prepare(make_request(tmp_path))
    chosen = await choose_sandbox(policy_of(tmp_path, "box"))
    assert "no docker or podman" in (chosen.refusal or "")
    chosen = await choose_sandbox(policy_of(tmp_path, "net"))
    assert "no sandbox for the level net here" in (chosen.refusal or "")
    assert "install bubblewrap" in (chosen.refusal or "")
    with pytest.raises(SandboxUnavailable, match="no docker or podman"):
        await ContainerSandbox("image").prepare(make_request(tmp_path))


async def test_the_host_is_never_without_its_warning(tmp_path: Path) -> None:
    chosen = await choose_sandbox(policy_of(tmp_path, "host"))
    assert chosen.warning == HOST_WARNING
    request = make_request(tmp_path)
    script = "sleep 4711 & echo $!; setsid sleep 4711 & pwd; echo $! >&2"
    done = await run_command(["sh", "-c", script], request, chosen.require_sandbox())
    assert str(request.workspace) in done.output.splitlines()
    started = [int(line) for line in done.output.splitlines() if line.isdigit()]
    assert len(started) == 2
    for process in started:
        with pytest.raises(ProcessLookupError):
            os.kill(process, 0)
    stopped = await run_command(
        ["sh", "-c", "trap 'echo ended; exit 1' TERM; sleep 60 & wait"],
        # Long enough for a busy machine to begin it.
        make_request(tmp_path, seconds=5),
        chosen.require_sandbox(),
    )
    assert (stopped.output, stopped.ending) == ("ended\n", "stopped after 5 seconds")


async def test_the_log_and_the_status_warn_of_a_sandbox_that_is_off(tmp_path: Path) -> None:
    settings = load(tmp_path, '[sandbox]\nlevel = "host"\n[model]\nname = "offline"\n')
    with structlog.testing.capture_logs() as records:
        async with open_application(settings, role="test", own_only=True) as application:
            route = local_route("here")
            runner = CommandRunner(application.engine, application.commands)
            await runner.run_command("/new", target=route, viewer=LOCAL)
            status = await runner.run_command("/status", target=route, viewer=LOCAL)
    assert f"warning: {HOST_WARNING}" in status.text
    assert {"sandbox_off"} <= {record["event"] for record in records}


@needs_landlock
async def test_landlock_keeps_a_command_to_its_workspace(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    request, sandbox = make_request(tmp_path), LandlockSandbox()
    script = (
        f"cat {tmp_path}/secret; ls /proc; echo > {tmp_path}/new; echo kept > file; cat file; "
        f"mktemp; kill -9 {os.getpid()}; exit 7"
    )
    done = await run_command(["sh", "-c", script], request, sandbox)
    assert done.exit_code == 7
    assert done.output.count("Permission denied") == 3
    assert "kept\n" in done.output
    assert str(request.workspace / ".tmp") in done.output
    assert not (tmp_path / "new").exists()
    done = await run_command(
        ["sh", "-c", "echo > file && echo WRITTEN"], replace(request, level="read"), sandbox
    )
    assert "WRITTEN" not in done.output


@needs_landlock
async def test_landlock_ends_all_processes_at_once(tmp_path: Path) -> None:
    code = (
        "import os, time\n"
        "for _ in range(80):\n"
        "    if not os.fork():\n"
        "        os.setsid(); time.sleep(60); os._exit(0)\n"
        "open('forked', 'w').close(); time.sleep(60)"
    )
    request = make_request(tmp_path, processes=40, memory=2**31)
    argv = [str(find_python().executable), "-I", "-c", code]
    done = await run_command(argv, request, LandlockSandbox())
    assert done.ending == "stopped: it started more than 40 processes"
    left = await run_command(
        ["sh", "-c", "setsid sleep 60 & echo begun"], request, LandlockSandbox()
    )
    assert (left.output, left.exit_code) == ("begun\n", 0)


async def test_landlock_is_not_taken_where_it_would_not_hold(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    report = await LandlockSandbox(private=[Path("/usr/local/clew")]).probe()
    assert not report.works
    monkeypatch.setattr("clew.sandbox.landlock.landlock_version", lambda: 4)
    assert any("signals" in gap for gap in LandlockSandbox().gaps), "an older kernel"
    monkeypatch.setattr("platform.machine", lambda: "riscv64")
    assert "riscv64" in (await LandlockSandbox().probe()).detail
    assert "not filtered" in BubblewrapSandbox(tmp_path).gaps[0]
    assert "--seccomp" not in BubblewrapSandbox(tmp_path).wrap(["ls"], make_request(tmp_path))
    monkeypatch.setattr(sys, "platform", "darwin")
    assert "Linux" in (await LandlockSandbox().probe()).detail


async def test_the_profile_of_macos_denies_by_default(tmp_path: Path) -> None:
    text = make_profile(workspace=Path('/w/a "b'), readable=[Path("/python")], writable=True)
    lines = text.splitlines()
    assert lines[:2] == ["(version 1)", "(deny default)"]
    assert '(allow file-write* (subpath "/w/a \\"b"))' in lines
    assert '(allow file-read* (subpath "/python"))' in lines
    assert "(deny network*)" in lines
    writes = [line for line in lines if "file-write" in line]
    assert writes == [
        '(allow file-write* (subpath "/dev/null"))',
        '(allow file-write* (subpath "/dev/zero"))',
        '(allow file-write* (subpath "/w/a \\"b"))',
    ]
    read_only = make_profile(workspace=tmp_path, readable=(), writable=False)
    assert f'file-write* (subpath "{tmp_path}")' not in read_only
    argv = SeatbeltSandbox().wrap(["ls", "a b"], make_request(tmp_path))
    assert argv[:2] == ["sandbox-exec", "-p"]
    assert argv[-2:] == ["ls", "a b"]
    if sys.platform != "darwin":
        assert not (await SeatbeltSandbox().probe()).works


@pytest.fixture
def docker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program that takes the same arguments as docker, and the file with its calls."""
    folder = tmp_path / "bin"
    folder.mkdir()
    program = folder / "docker"
    program.write_text(FAKE_DOCKER.replace("STATE", str(tmp_path)))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder), prepend=":")
    monkeypatch.setenv("DOCKER_HOST", "unix:///run/user/1000/docker.sock")
    return tmp_path / "calls"


def read_calls(file: Path) -> list[list[str]]:
    return [json.loads(line) for line in file.read_text().splitlines()]


async def test_a_workspace_has_one_container_for_all_its_commands(
    tmp_path: Path, docker: Path
) -> None:
    chosen = await choose_sandbox(policy_of(tmp_path, "box"))
    sandbox, request = chosen.require_sandbox(), make_request(tmp_path)
    assert sandbox.name == "docker"
    request = replace(request, session="s-1", environment={"KEY": TOKEN})
    script = "pwd; echo $CLEW_SESSION_ID $HERMES_SESSION_ID $KEY $HOME $DOCKER_HOST"
    done = await run_command(["sh", "-c", script], request, sandbox)
    assert done.output.splitlines() == [
        str(request.workspace),
        f"s-1 s-1 {TOKEN} {request.workspace}",
    ]
    await run_command(["true"], request, sandbox)
    calls = read_calls(docker)
    assert TOKEN not in json.dumps(calls), "others can see the arguments of a process"
    starts = [call for call in calls if call[0] == "run"]
    assert len(starts) == 1
    [start] = starts
    for option, value in (
        ("--network", "none"),
        ("--cap-drop", "ALL"),
        ("--pids-limit", "32"),
        ("--memory", str(request.limits.memory)),
        ("--memory-swap", str(request.limits.memory)),
        # A setuid program, which can be written here, means nothing.
        ("--security-opt", "no-new-privileges"),
    ):
        assert start[start.index(option) + 1] == value
    volumes = [start[at + 1] for at, word in enumerate(start) if word == "--volume"]
    assert volumes[0] == f"{request.workspace}:{request.workspace}:rw"
    assert all(volume.endswith(":ro") for volume in volumes[1:])


@pytest.mark.usefixtures("docker")
async def test_a_command_in_a_container_is_ended_there(tmp_path: Path) -> None:
    request = make_request(tmp_path, seconds=60)
    script = f"echo $$ > {tmp_path}/pid.new; mv {tmp_path}/pid.new {tmp_path}/pid; sleep 60 & wait"
    running = asyncio.create_task(
        run_command(["sh", "-c", script], request, ContainerSandbox("image"))
    )
    await wait_until((tmp_path / "pid").exists, "it has begun")
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    # One that has ended and was not yet waited for has no arguments.
    line = Path(f"/proc/{int((tmp_path / 'pid').read_text())}/cmdline")
    await wait_until(lambda: not (line.exists() and line.read_bytes()), "it has ended")


@pytest.mark.usefixtures("docker")
async def test_a_container_that_cannot_be_started_is_reported(tmp_path: Path) -> None:
    (tmp_path / "broken").touch()
    report = await ContainerSandbox("image").probe()
    assert not report.works
    assert "cannot connect" in report.detail
    with pytest.raises(SandboxUnavailable, match="cannot connect"):
        await ContainerSandbox("image").prepare(make_request(tmp_path))


TOKEN = "ghp-0123456789abcdef"


def load(home: Path, text: str, environ: Mapping[str, str] | None = None) -> Settings:
    home.mkdir(exist_ok=True)
    (home / "config.toml").write_text(text)
    return load_settings(home=home, environ=environ or {})


def test_the_settings_become_the_terms(tmp_path: Path) -> None:
    settings = load(
        tmp_path,
        '[sandbox]\nlevel = "read"\nmemory = 512\nseconds = 9\nsecrets = ["GITHUB_TOKEN"]\n',
        {"GITHUB_TOKEN": TOKEN},
    )
    policy = make_sandbox_policy(settings)
    request = policy.make_request("person:x", session="s-1", readable=[tmp_path])
    assert (request.level, request.limits.memory, request.limits.seconds) == ("read", 2**29, 9)
    assert request.environment == {"GITHUB_TOKEN": TOKEN}
    assert request.workspace.parent == tmp_path.resolve() / "work"
    assert TOKEN not in repr(policy)
    assert TOKEN not in repr(settings)
    assert TOKEN in iter_secret_texts(settings), "it is masked elsewhere"
    shared = make_sandbox_policy(load(tmp_path, f'[sandbox]\nworkspace = "{tmp_path}/work/x"'))
    assert shared.workspace_of("a").root == shared.workspace_of("b").root


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ('level = "net"', "sandbox.hosts is empty"),
        ('hosts = ["https://example.org"]', "'https://example.org' is not a host"),
        ('workspace = "."', "is in CLEW_HOME"),
        ('workspace = "/"', "contains CLEW_HOME"),
        ('workspace = "~"', "contains your home folder"),
        ('workspace = "run"', "is in CLEW_HOME"),
        ('secrets = ["NOT_SET_ANYWHERE"]', "which is not set: set it, or remove it"),
    ],
)
def test_settings_that_cannot_be_honoured_are_reported(
    tmp_path: Path, line: str, sentence: str
) -> None:
    settings = load(tmp_path, f"[sandbox]\n{line}\n")
    assert any(sentence in problem for problem in find_problems(settings))
    with pytest.raises(SettingsError, match=sentence):
        make_sandbox_policy(settings)


@needs_bubblewrap
async def test_a_data_folder_among_the_programs_stays_hidden(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in an image that keeps everything below /usr."""
    home = tmp_path / "usr" / "clew"
    (home / "work").mkdir(parents=True)
    (home / "clew.db").write_text("secret")
    monkeypatch.setattr("clew.sandbox.bubblewrap.SYSTEM", (*SYSTEM, str(tmp_path)))
    sandbox = BubblewrapSandbox(home / "work", private=[home])
    request = replace(make_request(home), workspace=home / "work" / "local")
    done = await run_command(["sh", "-c", f"cat {home}/clew.db; echo in > x"], request, sandbox)
    assert "No such file" in done.output
    assert (request.workspace / "x").read_text() == "in\n"
    seen = await run_command(["cat", f"{home}/clew.db"], request, make_bubblewrap(home))
    assert seen.output == "secret", "else this test shows nothing"
    monkeypatch.undo()
    # Nor by what a request may read.
    asked = replace(request, readable=[home.parent])
    seen = await run_command(["cat", f"{home}/clew.db"], asked, sandbox)
    assert "No such file" in seen.output
    with pytest.raises(SandboxError, match="in a folder that commands can read"):
        await LandlockSandbox(private=[home]).prepare(asked)


def test_an_interpreter_in_the_home_folder_does_not_open_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "base_prefix", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    assert tmp_path not in find_python().readable
    assert find_python().executable in find_python().readable
    monkeypatch.setenv("HOME", "/home/ada")
    assert find_python().readable == (tmp_path,)


def test_every_level_has_its_candidates(tmp_path: Path) -> None:
    levels: tuple[Level, ...] = ("read", "work", "net", "host")
    found = {
        level: [each.name for each in make_candidates(policy_of(tmp_path, level))]
        for level in levels
    }
    confined = ["bubblewrap", "Landlock", "sandbox-exec"]
    assert found == {
        "read": confined,
        "work": confined,
        "net": ["bubblewrap"],
        "host": ["no sandbox"],
    }
