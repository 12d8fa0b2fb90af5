"""What every process manager can do, and how its program is run."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING, Protocol

from clew.record import Record

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from clew.cli.service.definition import ServiceDefinition


class ManagedState(Record):
    """State of a service, as its process manager reports it."""

    #: ``active``, ``activating``, ``failed``, ``inactive`` …; ``unknown`` if it says nothing.
    state: str = "unknown"
    #: The rest of what it says, for people.
    detail: str = ""
    #: Whether the service starts with the machine, or with the person's session.
    enabled: bool = False
    pid: int | None = None
    restarts: int | None = None
    #: Whether it runs on after the person has logged out; ``None`` if that is no question.
    lingers: bool | None = None


class ServiceManager(Protocol):
    """A process manager of the machine."""

    @property
    def kind(self) -> str:
        """Return its name: ``systemd`` or ``launchd``."""
        ...

    @property
    def system(self) -> bool:
        """Return whether its services belong to the machine, not to the person."""
        ...

    @property
    def available(self) -> bool:
        """Return whether it runs here."""
        ...

    def locate_file(self, name: str) -> Path:
        """Return the path of the file of a service."""
        ...

    def render_file(self, service: ServiceDefinition) -> str:
        """
        Return what the file contains: the same for the same service.

        :raises UsageError: if a path or an option cannot be written in one
        """
        ...

    def read_home(self, text: str) -> Path | None:
        """Return the home that a file serves; ``None`` if ``render_file`` did not make it."""
        ...

    def activate(self, name: str, *, changed: bool, start: bool) -> None:
        """
        Let a service start with the machine, and start it; repeated, it changes nothing.

        :raises ServiceFailed: if that is refused, or it does not become ready
        """
        ...

    def deactivate(self, name: str) -> None:
        """
        Stop a service whose file is still there, and let nothing start it again.

        :raises ServiceFailed: if that is refused
        """
        ...

    def forget(self, name: str) -> None:
        """Forget a service whose file is gone."""
        ...

    def query_state(self, name: str) -> ManagedState:
        """Return what it says of a service, also of one that it does not know."""
        ...

    def enable_linger(self) -> bool:
        """Let services of this person run on after a logout; ``False`` if that is refused."""
        ...

    def follow_log_command(self, name: str) -> tuple[str, ...]:
        """Return the command that shows the log of a service."""
        ...


def run_program(argv: Sequence[str]) -> tuple[int, str, str]:
    """Run a program of the manager; return its exit code, its output and what it complains of."""
    try:
        done = subprocess.run(
            argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
        )
    except OSError as error:
        return 127, "", f"{argv[0]} cannot be run: {error.strerror}"
    return done.returncode, done.stdout, done.stderr.strip()
