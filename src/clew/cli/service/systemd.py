"""Services of systemd: the unit, and what ``systemctl`` says of it."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Final

from clew.cli.service.definition import STOP_TIMEOUT, ServiceFailed
from clew.cli.service.manager import ManagedState, run_program
from clew.errors import UsageError
from clew.record import Record

if TYPE_CHECKING:
    from clew.cli.service.definition import ServiceDefinition

#: There only where systemd is the first process.
_BOOTED: Final = Path("/run/systemd/system")
_SYSTEM_FOLDER: Final = Path("/etc/systemd/system")
_MARK: Final = "# Written by `clew service install` for the home "
#: The commands of the agent are children of the gateway, and bubblewrap is one of them. It needs
#: user and mount namespaces and a whole /proc: RestrictNamespaces, SystemCallFilter,
#: ProtectKernelTunables, ProtectKernelLogs, ProtectProc and ProcSubset would break it.
_TEMPLATE: Final = """\
{mark}{home}
[Unit]
Description=Clew gateway ({name})
{after}# It is always started again, however often it fails.
StartLimitIntervalSec=0

[Service]
Type=notify
NotifyAccess=main
ExecStart={command}
# Variables such as the keys of providers, mode 0600; it may be missing.
EnvironmentFile=-{environment}
# Lets /restart end the gateway: it is started again.
Environment=CLEW_SUPERVISOR=systemd
{user}Restart=always
RestartSec=2
# Wrong settings, and a home that another gateway serves: waiting does not help.
RestartPreventExitStatus=2 3
# Processes of the agent survive a restart; the next gateway takes them over.
KillMode=process
# A command that runs out of memory does not end the gateway.
OOMPolicy=continue
# A new version may change a large store first.
TimeoutStartSec=15min
TimeoutStopSec={stop}
WatchdogSec=60
UMask=0077
# What bubblewrap works under; see the page of the sandbox for what it does not.
NoNewPrivileges=yes
LockPersonality=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
{hardening}
[Install]
WantedBy={target}
"""
_AFTER: Final = "Wants=network-online.target\nAfter=network-online.target\n"
_HARDENING: Final = """\
CapabilityBoundingSet=
PrivateTmp=yes
ProtectSystem=full
ProtectClock=yes
ProtectHostname=yes
"""
_PROPERTIES: Final = ("ActiveState", "SubState", "UnitFileState", "MainPID", "NRestarts", "Result")
#: What a value must not contain.
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")


class SystemdManager(Record):
    """The systemd of this machine, or of this person."""

    system: bool
    kind: str = "systemd"

    @property
    def available(self) -> bool:
        return _BOOTED.is_dir()

    def locate_file(self, name: str) -> Path:
        if self.system:
            return _SYSTEM_FOLDER / f"{name}.service"
        config = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
        return Path(config) / "systemd" / "user" / f"{name}.service"

    def render_file(self, service: ServiceDefinition) -> str:
        """
        Return the unit.

        :raises UsageError: if a path or an option cannot be written in one
        """
        home, environment = str(service.home), str(service.environment_file)
        for value in (*service.command, home):
            if _CONTROL.search(value):
                raise UsageError(f"{value!r} has control characters, which a unit cannot hold")
        return _TEMPLATE.format(
            mark=_MARK,
            home=home,
            name=service.name,
            after=_AFTER if self.system else "",
            command=_quote_command(service.command),
            environment=environment.replace("%", "%%"),
            user=f"User={service.user}\n" if service.user else "",
            stop=STOP_TIMEOUT,
            hardening=_HARDENING if self.system else "",
            target="multi-user.target" if self.system else "default.target",
        )

    def read_home(self, text: str) -> Path | None:
        """Return the home of a unit that ``render_file`` made."""
        first = text.partition("\n")[0]
        return Path(first.removeprefix(_MARK)) if first.startswith(_MARK) else None

    def activate(self, name: str, *, changed: bool, start: bool) -> None:
        """
        Enable the unit, and start it; restart it if it has changed.

        :raises ServiceFailed: if that is refused, or it does not become ready
        """
        if changed:
            self._control("daemon-reload")
        self._control("enable", name)
        if not start:
            return
        was_running = self.query_state(name).state == "active"
        self._control("restart" if changed and was_running else "start", name)

    def deactivate(self, name: str) -> None:
        """
        Stop the unit, and let nothing start it again.

        :raises ServiceFailed: if that is refused
        """
        self._control("disable", "--now", name)

    def forget(self, name: str) -> None:
        """Forget a unit whose file is gone."""
        self._control("daemon-reload")
        # It keeps that the unit has failed; one that has not is not known any more.
        run_program(self._systemctl("reset-failed", f"{name}.service"))

    def query_state(self, name: str) -> ManagedState:
        """Return what systemd says."""
        shown = ",".join(_PROPERTIES)
        code, out, err = run_program(
            self._systemctl("show", f"--property={shown}", f"{name}.service")
        )
        if code:
            return ManagedState(detail=err)
        found = {
            name: value for name, _, value in (line.partition("=") for line in out.splitlines())
        }
        return ManagedState(
            state=found.get("ActiveState", "unknown"),
            detail=_describe_state(found),
            enabled=found.get("UnitFileState") == "enabled",
            pid=int(found.get("MainPID", "0")) or None,
            restarts=int(found.get("NRestarts", "0")),
            lingers=self._check_linger(),
        )

    def enable_linger(self) -> bool:
        """Let services of this person run while it is not logged in; ``False`` if refused."""
        if self._check_linger() is not False:
            return True
        run_program(["loginctl", "enable-linger"])
        return self._check_linger() is not False

    def _check_linger(self) -> bool | None:
        """Return whether services outlive the session; ``None`` if nothing says so."""
        if self.system:
            return None
        user = str(os.getuid())
        code, out, _ = run_program(["loginctl", "show-user", user, "--property=Linger"])
        if code == 0:
            return out.strip() == "Linger=yes"
        # A person who has not logged in is not known yet.
        lingering = Path("/var/lib/systemd/linger")
        return False if lingering.is_dir() and os.getuid() else None

    def follow_log_command(self, name: str) -> tuple[str, ...]:
        scope = () if self.system else ("--user",)
        return ("journalctl", *scope, "--unit", name)

    def _control(self, *words: str) -> None:
        argv = self._systemctl(*words)
        code, _, err = run_program(argv)
        if code:
            raise ServiceFailed(f"{' '.join(argv)}: {err or f'exit code {code}'}")

    def _systemctl(self, *words: str) -> list[str]:
        return ["systemctl", *(() if self.system else ("--user",)), *words]


def _describe_state(found: dict[str, str]) -> str:
    """Return ``running``, or why it does not run."""
    result = found.get("Result", "success")
    detail = found.get("SubState", "")
    return detail if result == "success" else f"{detail}: {result}"


def _quote_command(command: tuple[str, ...]) -> str:
    """Return the words of ``ExecStart``; only in the first one a variable is not replaced."""
    program, *arguments = command
    return " ".join([_quote(program), *(_quote(word.replace("$", "$$")) for word in arguments)])


def _quote(word: str) -> str:
    escaped = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
    return escaped if re.fullmatch(r"[\w@%+=:,./$-]+", word) else f'"{escaped}"'
