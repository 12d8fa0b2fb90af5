"""The files that process managers read: what they say, and what they must not say."""

from __future__ import annotations

import configparser
import plistlib
from pathlib import Path
from typing import Any

import pytest

from clew.cli.service.definition import STOP_TIMEOUT, ServiceDefinition, build_command
from clew.cli.service.installing import define_service
from clew.cli.service.launchd import LaunchdManager
from clew.cli.service.systemd import SystemdManager
from clew.errors import UsageError

HOME = Path('/data/a "quoted" $HOME with 100% \\ of <it> & more')
#: What bubblewrap needs: namespaces, all of /proc, and the calls that make them.
BREAKS_BUBBLEWRAP = {
    "MemoryDenyWriteExecute",
    "PrivateUsers",
    "ProcSubset",
    "ProtectKernelLogs",
    "ProtectKernelTunables",
    "ProtectProc",
    "RestrictAddressFamilies",
    "RestrictNamespaces",
    "SystemCallFilter",
}
#: The keys of launchd.plist(5) that are used, with the type of each.
LAUNCHD_KEYS: dict[str, type] = {
    "Label": str,
    "UserName": str,
    "ProgramArguments": list,
    "RunAtLoad": bool,
    "KeepAlive": bool,
    "ThrottleInterval": int,
    "AbandonProcessGroup": bool,
    "ExitTimeOut": int,
    "EnvironmentVariables": dict,
    "SoftResourceLimits": dict,
    "StandardOutPath": str,
    "StandardErrorPath": str,
    "Umask": int,
}


def define(*, user: str | None = None, home: Path = HOME) -> ServiceDefinition:
    command = build_command(home, {"api.port": "9000"})
    return ServiceDefinition(name="clew-gateway", home=home, command=command, user=user)


def read_unit(text: str) -> configparser.RawConfigParser:
    unit = configparser.RawConfigParser(interpolation=None, comment_prefixes=("#",))
    unit.optionxform = str  # pyright: ignore[reportAttributeAccessIssue]
    unit.read_string(text)
    return unit


@pytest.mark.parametrize("system", [False, True])
def test_a_unit_restarts_the_gateway_alone_and_leaves_bubblewrap_what_it_needs(
    system: bool,
) -> None:
    manager = SystemdManager(system=system)
    text = manager.render_file(define(user="clew" if system else None))
    assert text == manager.render_file(define(user="clew" if system else None))
    assert manager.read_home(text) == HOME
    unit = read_unit(text)["Service"]
    assert unit["Type"] == "notify"
    assert unit["KillMode"] == "process"
    assert unit["Restart"] == "always"
    assert int(unit["WatchdogSec"]) > 0
    assert unit.get("User") == ("clew" if system else None)
    assert unit["ExecStart"].endswith('100%% \\\\ of <it> & more" --set api.port=9000 serve')
    assert '--home "/data/a \\"quoted\\" $$HOME with' in unit["ExecStart"]
    assert BREAKS_BUBBLEWRAP.isdisjoint(unit)


def test_a_unit_of_somebody_else_is_of_no_home() -> None:
    assert SystemdManager(system=False).read_home("[Service]\nExecStart=/bin/true\n") is None
    assert LaunchdManager(system=False).read_home("no property list") is None
    other = plistlib.dumps({"Label": "x", "ProgramArguments": ["/bin/true"]}).decode()
    assert LaunchdManager(system=False).read_home(other) is None


def test_a_unit_cannot_hold_a_line_end() -> None:
    with pytest.raises(UsageError, match="control characters"):
        SystemdManager(system=False).render_file(define(home=Path("/data/two\nlines")))


@pytest.mark.parametrize("user", [None, "clew"])
def test_a_property_list_has_known_keys_and_abandons_the_processes_of_the_gateway(
    user: str | None,
) -> None:
    manager = LaunchdManager(system=user is not None)
    service = define(user=user)
    text = manager.render_file(service)
    assert manager.read_home(text) == HOME
    found: dict[str, Any] = plistlib.loads(text.encode())
    assert {name: type(value) for name, value in found.items()} == {
        name: kind for name, kind in LAUNCHD_KEYS.items() if user or name != "UserName"
    }
    assert found["ProgramArguments"] == list(service.command)
    assert found["AbandonProcessGroup"] is found["KeepAlive"] is found["RunAtLoad"] is True
    assert found["ExitTimeOut"] == STOP_TIMEOUT > 10
    assert found["EnvironmentVariables"].keys() == {"PATH", "CLEW_SUPERVISOR"}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("api.token", "secret"),
        ("channels.slack.app_token", "secret"),
        ("store.url", "postgresql://clew:secret@db/clew"),
    ],
)
def test_a_secret_never_becomes_part_of_a_file_that_others_read(name: str, value: str) -> None:
    with pytest.raises(UsageError, match=name) as told:
        build_command(HOME, {name: value})
    assert "secret@" not in str(told.value)
    assert build_command(HOME, {"api.token": '{ env = "CLEW_TOKEN" }'})[-1] == "serve"


def test_a_service_of_the_machine_belongs_to_the_owner_of_its_home_or_to_who_is_named(
    tmp_path: Path,
) -> None:
    missing = tmp_path / "missing"
    with pytest.raises(UsageError, match="--user"):
        define_service(name="x", home=missing, flags={}, system=True, user=None)
    named = define_service(name="x", home=missing, flags={}, system=True, user="clew")
    assert named.user == "clew"
    assert define_service(name="x", home=missing, flags={}, system=False, user=None).user is None
    with pytest.raises(UsageError, match="--system"):
        define_service(name="x", home=missing, flags={}, system=False, user="clew")
