"""Known ways out of the sandbox, tried for real, also as an ordinary user."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from clew.cli.doctor_checks.sandbox import check_sandbox
from clew.config import load_settings
from clew.core.doctor_finding import FindingLevel
from clew.sandbox.escape_check import ESCAPES, try_escapes
from clew.sandbox.landlock import LandlockSandbox
from clew.sandbox.unconfined import UnconfinedHost
from tests.sandboxes import make_bubblewrap, needs_bubblewrap, needs_landlock

if TYPE_CHECKING:
    from clew.core.doctor_finding import DoctorFinding
    from clew.sandbox.protocol import Sandbox

SOURCE = Path(__file__).parents[2] / "src"


async def list_open(sandbox: Sandbox, folder: Path) -> dict[str, str]:
    (folder / "work").mkdir()
    assert (await sandbox.probe()).works
    found = await try_escapes(sandbox, folder / "work")
    assert [each.name for each in found] == [*ESCAPES]
    return {each.name: each.detail for each in found if not each.stopped}


@needs_bubblewrap
async def test_bubblewrap_closes_every_way(tmp_path: Path) -> None:
    assert await list_open(make_bubblewrap(tmp_path), tmp_path) == {}
    assert os.listdir(tmp_path / "work") == [".etc"]  # noqa: PTH208  (a path blocks an async test)


@needs_landlock
async def test_landlock_closes_every_way(tmp_path: Path) -> None:
    assert await list_open(LandlockSandbox(), tmp_path) == {}


@pytest.mark.skipif(sys.platform != "linux", reason="the attempts are those on Linux")
async def test_without_a_sandbox_the_attempts_succeed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else it would not be the sandbox that stops them."""
    monkeypatch.setattr("clew.sandbox.escape_check._METADATA", "127.0.0.2")
    found = await list_open(UnconfinedHost(), tmp_path)
    expected = {"ssh", "database", "environ", "write", "mode", "loopback", "unix", "limits", "kill"}
    expected |= {"dates", "setuid", "priority"}
    assert expected <= found.keys()
    # A limit stops the one, and the gateway's own way of opening files the other.
    assert not {"fork", "swap"} & found.keys()


#: Needs nothing but the standard library, as the sandbox itself.
AS_NOBODY = """
import asyncio, json, sys, tempfile
from pathlib import Path
from clew.sandbox.bubblewrap import BubblewrapSandbox
from clew.sandbox.escape_check import try_escapes
from clew.sandbox.landlock import LandlockSandbox

async def list_open(sandbox, folder):
    assert (await sandbox.probe()).works
    found = await try_escapes(sandbox, folder)
    return {each.name: each.detail for each in found if not each.stopped}

with tempfile.TemporaryDirectory() as name:
    for sandbox in (BubblewrapSandbox(Path(name)), LandlockSandbox()):
        print(json.dumps(asyncio.run(list_open(sandbox, Path(name)))))
"""


@needs_bubblewrap
@needs_landlock
@pytest.mark.skipif(os.geteuid() != 0, reason="the other tests run as an ordinary user already")
def test_every_way_is_closed_to_an_ordinary_user_too() -> None:
    done = subprocess.run(
        [*as_nobody(), find_common_python(), "-I", "-c", f"{ADD_SOURCE}\n{AS_NOBODY}"],
        env={"HOME": "/nonexistent", "PATH": os.environ["PATH"]},
        cwd="/",
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.stdout.splitlines() == ["{}", "{}"], done.stderr


ADD_SOURCE = f"import sys; sys.path.insert(0, {str(SOURCE)!r})"


def as_nobody() -> list[str]:
    return ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--inh-caps=-all"]


def find_common_python() -> str:
    """An interpreter that an ordinary user may run too, and the source beside it."""
    for program in (sys.executable, "/usr/local/bin/python3", "/usr/bin/python3"):
        script = [program, "-I", "-c", f"{ADD_SOURCE}\nimport clew.sandbox.escape_check"]
        # The shell in between: a first program still finds its file with the rights of root.
        tried = subprocess.run(
            [*as_nobody(), "/bin/sh", "-c", '"$@"', "sh", *script],
            cwd="/",
            capture_output=True,
            check=False,
        )
        if tried.returncode == 0:
            return program
    pytest.skip("an ordinary user cannot run any interpreter here, or read the source")


async def examine(home: Path, **flags: str) -> DoctorFinding:
    settings = load_settings(
        home=home, environ={}, flags={f"sandbox.{name}": text for name, text in flags.items()}
    )
    [finding] = await check_sandbox(settings)
    return finding


@needs_bubblewrap
async def test_doctor_reports_each_way_on_a_line(tmp_path: Path) -> None:
    finding = await examine(tmp_path / "none")
    assert finding.level is FindingLevel.OK
    first, *lines = finding.detail.splitlines()
    assert (
        first == f"bubblewrap at level work: {len(ESCAPES)} of {len(ESCAPES)} ways out are closed"
    )
    assert len(lines) == len(ESCAPES)
    assert "closed  kill the gateway (No such process)" in lines
    assert not (tmp_path / "none").exists(), "a look makes nothing"


async def test_doctor_reports_what_is_not_isolated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    finding = await examine(tmp_path, level="host")
    assert finding.level is FindingLevel.WARN
    assert "without a sandbox" in finding.detail
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("clew.sandbox.landlock.landlock_version", lambda: 0)
    finding = await examine(tmp_path)
    assert finding.level is FindingLevel.WARN
    assert finding.detail.startswith("no command can run: there is no sandbox for the level work")
    assert "install bubblewrap" in (finding.fix or "")
    refused = load_settings(home=tmp_path, environ={"CLEW_SANDBOX__LEVEL": "net"})
    assert await check_sandbox(refused) == (), "it is told with the settings"


@needs_bubblewrap
async def test_doctor_tries_the_level_with_named_hosts(tmp_path: Path) -> None:
    finding = await examine(tmp_path, level="net", hosts="example.org")
    assert finding.level is FindingLevel.OK, finding
    assert finding.detail.startswith(f"bubblewrap at level net: {len(ESCAPES)} of {len(ESCAPES)} ")


@needs_landlock
async def test_doctor_names_a_way_that_is_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))  # no bwrap
    monkeypatch.setattr("clew.sandbox.landlock.LandlockSandbox.wrap", UnconfinedHost().wrap)
    monkeypatch.setattr("clew.sandbox.escape_check._METADATA", "127.0.0.2")
    finding = await examine(tmp_path)
    assert finding.level is FindingLevel.FAIL
    assert "not bubblewrap: bwrap is not installed" in finding.detail
    assert "OPEN    kill the gateway (the stand-in has ended)" in finding.detail
