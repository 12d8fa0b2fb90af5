"""The service under a real systemd: installed, killed, hung, changed, removed."""

from __future__ import annotations

import json
import sqlite3
import sys
from typing import TYPE_CHECKING, Any

import pytest

from clew.cli.service.definition import ServiceDefinition
from clew.cli.service.systemd import SystemdManager
from tests.acceptance.program import CLEW, until
from tests.sandboxes import needs_bubblewrap
from tests.services.systemd import open_user_systemd, why_not

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

    from tests.services.systemd import UserSystemd

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(900),
    pytest.mark.skipif(why_not() is not None, reason=f"no systemd: {why_not()}"),
]
UNIT = "clew-gateway.service"


@pytest.fixture(scope="module")
def systemd(tmp_path_factory: pytest.TempPathFactory) -> Generator[UserSystemd]:
    with open_user_systemd(tmp_path_factory.mktemp("systemd")) as manager:
        yield manager


@pytest.fixture
def home(systemd: UserSystemd, tmp_path: Path) -> Generator[Path]:
    """A home whose path needs every kind of quotation."""
    folder = tmp_path / 'a "quoted" $HOME with 100% \\ of it'
    folder.mkdir()
    settings = '[model]\nname = "offline"\n[api]\nport = 0\n'
    (folder / "config.toml").write_text(settings, encoding="utf-8")
    yield folder
    systemd.run("systemctl", "--user", "stop", UNIT)
    (systemd.units / UNIT).unlink(missing_ok=True)


def service(systemd: UserSystemd, home: Path, *args: str) -> Any:
    return json.loads(systemd.ok(CLEW, "--home", str(home), "service", *args, "--json"))


def status(systemd: UserSystemd, home: Path) -> Any:
    done = systemd.run(CLEW, "--home", str(home), "service", "status", "--json")
    found = json.loads(done.stdout)
    assert done.returncode == (0 if found["gateway"]["ready"] else 1)
    return found


def main_process(systemd: UserSystemd) -> int:
    """The number of the gateway's process inside; 0 while none runs."""
    return int(systemd.show(UNIT, "MainPID"))


def wait_for_other_process(systemd: UserSystemd, before: int) -> None:
    def is_another_ready() -> bool:
        # In one look: between two, the state of the first would be taken for that of the next.
        state, process = sorted(systemd.show(UNIT, "ActiveState,MainPID").split(), reverse=True)
        return state == "active" and int(process) not in (0, before)

    until(is_another_ready)


def test_it_is_installed_once_changed_when_asked_and_removed_without_its_data(
    systemd: UserSystemd, home: Path
) -> None:
    assert service(systemd, home, "install")["changed"]
    found = status(systemd, home)
    assert found["gateway"]["ready"]
    assert found["service"]["state"] == "active"
    assert found["service"]["enabled"]
    assert found["gateway"]["pid"] == found["service"]["pid"] == main_process(systemd)
    first = main_process(systemd)
    assert not service(systemd, home, "install")["changed"]
    assert main_process(systemd) == first
    changed = [CLEW, "--home", str(home), "--set", "lease.seconds=20", "service", "install"]
    systemd.ok(*changed)
    assert main_process(systemd) not in (0, first)
    assert systemd.show(UNIT, "Result") == "success"
    assert service(systemd, home, "uninstall")["file"] == str(systemd.units / UNIT)
    assert not (systemd.units / UNIT).exists()
    assert systemd.show(UNIT, "LoadState") == "not-found"
    assert status(systemd, home)["gateway"]["running"] is False
    assert sqlite3.connect(home / "clew.db").execute("SELECT 1").fetchone() == (1,)
    assert service(systemd, home, "uninstall")["file"] is None


def test_a_killed_and_a_hung_one_are_started_again_and_leave_their_processes_alone(
    systemd: UserSystemd, home: Path
) -> None:
    service(systemd, home, "install", "--no-start")
    assert not status(systemd, home)["gateway"]["running"]
    settings = systemd.units / f"{UNIT}.d" / "test.conf"
    settings.parent.mkdir(exist_ok=True)
    settings.write_text("[Service]\nRestartSec=0\nWatchdogSec=3\n", encoding="utf-8")
    try:
        systemd.ok("systemctl", "--user", "daemon-reload")
        service(systemd, home, "install")
        child = start_beside_gateway(systemd)
        first = main_process(systemd)
        systemd.ok("sh", "-c", f"kill -KILL {first}")
        wait_for_other_process(systemd, first)
        second = main_process(systemd)
        systemd.ok("sh", "-c", f"kill -STOP {second}")
        wait_for_other_process(systemd, second)
        systemd.ok("systemctl", "--user", "stop", UNIT)
        assert systemd.show(UNIT, "Result") == "success"
        systemd.ok("kill", "-KILL", child)  # it is still there
    finally:
        settings.unlink()


def start_beside_gateway(systemd: UserSystemd) -> str:
    """Start a process in the control group of the service, as a command of the agent is."""
    group = f"/sys/fs/cgroup{systemd.show(UNIT, 'ControlGroup')}"
    script = f"(echo $$ > {group}/cgroup.procs; exec sleep 1000) > /dev/null 2>&1 & echo $!"
    started = systemd.ok("sh", "-c", script.replace("$$", "$(exec sh -c 'echo $PPID')")).strip()
    until(lambda: f"\n{started}\n" in "\n" + systemd.ok("cat", f"{group}/cgroup.procs"))
    return started


def test_wrong_settings_are_refused_and_never_tried_again(systemd: UserSystemd, home: Path) -> None:
    config = home / "config.toml"
    right = config.read_text(encoding="utf-8")
    config.write_text(f"{right}host = '0.0.0.0'\n", encoding="utf-8")
    refused = systemd.run(CLEW, "--home", str(home), "service", "install")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "api.token" in refused.stderr
    assert not (systemd.units / UNIT).exists()
    config.write_text(right, encoding="utf-8")
    service(systemd, home, "install", "--no-start")
    config.write_text("wrong", encoding="utf-8")
    assert systemd.run("systemctl", "--user", "start", UNIT).returncode != 0
    assert systemd.show(UNIT, "ActiveState") == "failed"
    assert systemd.show(UNIT, "NRestarts") == "0"
    assert systemd.show(UNIT, "ExecMainStatus") == "2"


PROBE = """
import asyncio, sys
from pathlib import Path
from clew.sandbox.bubblewrap import BubblewrapSandbox
report = asyncio.run(BubblewrapSandbox(Path(sys.argv[1]) / "work").probe())
Path(sys.argv[1], "report").write_text(repr(report.works) + report.detail)
"""


@needs_bubblewrap
def test_bubblewrap_works_in_the_hardened_unit(systemd: UserSystemd, tmp_path: Path) -> None:
    command = (sys.executable, "-c", PROBE.strip().replace("\n", ";"), str(tmp_path))
    made = ServiceDefinition(name="probe", home=tmp_path, command=command)
    unit = SystemdManager(system=False).render_file(made)
    systemd.units.mkdir(parents=True, exist_ok=True)
    text = unit.replace("Type=notify", "Type=oneshot").replace("Restart=always", "Restart=no")
    (systemd.units / "probe.service").write_text(text, encoding="utf-8")
    systemd.ok("systemctl", "--user", "daemon-reload")
    systemd.ok("systemctl", "--user", "start", "probe.service")
    assert (tmp_path / "report").read_text(encoding="utf-8") == "True"
