"""Services of launchd: the property list, and what ``launchctl`` says of it."""

from __future__ import annotations

import os
import plistlib
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from clew.cli.service.definition import STOP_TIMEOUT, ServiceFailed, find_home
from clew.cli.service.manager import ManagedState, run_program
from clew.record import Record

if TYPE_CHECKING:
    from clew.cli.service.definition import ServiceDefinition

#: launchd gives almost none; programs of Homebrew are in one of them.
_PATH: Final = "/opt/homebrew/bin:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin"
_UMASK: Final = 0o077
#: Seconds between two starts.
_THROTTLE: Final = 5
#: The soft limit of launchd is 256, too few for hundreds of conversations.
_OPEN_FILES: Final = 8192


class LaunchdManager(Record):
    """The launchd of this machine, or of this person."""

    system: bool
    kind: str = "launchd"

    @property
    def available(self) -> bool:
        return run_program(["launchctl", "print", self._domain])[0] == 0

    def locate_file(self, name: str) -> Path:
        if self.system:
            return Path("/Library/LaunchDaemons") / f"{name}.plist"
        return Path.home() / "Library" / "LaunchAgents" / f"{name}.plist"

    def render_file(self, service: ServiceDefinition) -> str:
        """Return the property list."""
        log = str(service.home / "logs" / "service.log")
        keys: dict[str, Any] = {
            "Label": service.name,
            "ProgramArguments": list(service.command),
            "RunAtLoad": True,
            "KeepAlive": True,
            "ThrottleInterval": _THROTTLE,
            # Processes of the agent survive a restart; the next gateway takes them over.
            "AbandonProcessGroup": True,
            "ExitTimeOut": STOP_TIMEOUT,
            # The second lets /restart end the gateway: it is started again.
            "EnvironmentVariables": {"PATH": _PATH, "CLEW_SUPERVISOR": "launchd"},
            "SoftResourceLimits": {"NumberOfFiles": _OPEN_FILES},
            "StandardOutPath": log,
            "StandardErrorPath": log,
            "Umask": _UMASK,
        }
        if service.user is not None:
            keys["UserName"] = service.user
        return plistlib.dumps(keys, sort_keys=False).decode()

    def read_home(self, text: str) -> Path | None:
        """Return the home of a property list that ``render_file`` made."""
        try:
            keys: Any = plistlib.loads(text.encode())
        except plistlib.InvalidFileException:
            return None
        command = keys.get("ProgramArguments") if isinstance(keys, dict) else None  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
        words = cast("list[object]", command) if isinstance(command, list) else []
        return find_home([str(word) for word in words])

    def activate(self, name: str, *, changed: bool, start: bool) -> None:
        """
        Load the list, and with it start the service; load it anew if it has changed.

        :raises ServiceFailed: if that is refused
        """
        self._control("enable", self._target(name))
        if not start:
            return
        if self._is_loaded(name):
            if not changed:
                return
            self._control("bootout", self._target(name))
        self._control("bootstrap", self._domain, str(self.locate_file(name)))

    def deactivate(self, name: str) -> None:
        """
        Unload the list, which stops the service.

        :raises ServiceFailed: if that is refused
        """
        if self._is_loaded(name):
            self._control("bootout", self._target(name))

    def forget(self, name: str) -> None:
        """Do nothing: launchd knows only what is loaded."""

    def query_state(self, name: str) -> ManagedState:
        """Return what launchd says."""
        code, out, _ = run_program(["launchctl", "print", self._target(name)])
        if code:
            return ManagedState(state="inactive", detail="not loaded")
        # The first of a name: what follows, in deeper tables, is of other things.
        found: dict[str, str] = {}
        for key, value in re.findall(r"^\s*([\w ]+) = (.*)$", out, re.MULTILINE):
            found.setdefault(key, value)
        running = found.get("state") == "running"
        ended = found.get("last exit code", "(never exited)")
        return ManagedState(
            state="active" if running else "failed",
            detail="running" if running else f"last exit code {ended}",
            enabled=True,
            pid=int(found["pid"]) if found.get("pid", "").isdigit() else None,
            restarts=max(0, int(found["runs"]) - 1) if found.get("runs", "").isdigit() else None,
        )

    def enable_linger(self) -> bool:
        """Return true: agents run as long as the person is logged in, and no setting changes it."""
        return True

    def follow_log_command(self, name: str) -> tuple[str, ...]:
        text = self.locate_file(name).read_bytes()
        return ("tail", "-f", str(plistlib.loads(text)["StandardErrorPath"]))

    @property
    def _domain(self) -> str:
        return "system" if self.system else f"gui/{os.getuid()}"

    def _target(self, name: str) -> str:
        return f"{self._domain}/{name}"

    def _is_loaded(self, name: str) -> bool:
        return run_program(["launchctl", "print", self._target(name)])[0] == 0

    def _control(self, *words: str) -> None:
        code, _, err = run_program(["launchctl", *words])
        if code:
            raise ServiceFailed(f"launchctl {' '.join(words)}: {err or f'exit code {code}'}")
