"""What a process manager is told of a gateway."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from clew.config.secret import is_secret_name, redact_password
from clew.errors import ClewError, UsageError
from clew.record import Record

if TYPE_CHECKING:
    from collections.abc import Mapping

#: Name of a service, unless another one is given.
DEFAULT_NAME: Final = "clew-gateway"
#: Seconds between a request to stop and the kill: more than a gateway takes.
STOP_TIMEOUT: Final = 20
#: File in the home with variables of the service, such as the keys of providers.
ENVIRONMENT_FILE: Final = "service.env"


class ServiceFailed(ClewError):
    """Process manager that refused what it was asked for."""


class ServiceDefinition(Record):
    """A gateway that a process manager starts and restarts."""

    name: str
    home: Path
    #: Program and arguments.
    command: tuple[str, ...]
    #: The user of a service of the whole machine; ``None`` for a service of the person itself.
    user: str | None = None

    @property
    def environment_file(self) -> Path:
        return self.home / ENVIRONMENT_FILE


def build_command(home: Path, flags: Mapping[str, str]) -> tuple[str, ...]:
    """
    Return the command that serves a home with the global options of this one.

    :raises UsageError: if one of them is a secret, which others could read in the file
    """
    for name, value in flags.items():
        literal = is_secret_name(name.rpartition(".")[2]) and not value.lstrip().startswith("{")
        if literal or redact_password(value) != value:
            raise UsageError(
                f"{name} is a secret, which others could read in the file of the service: write "
                f"it to {home / 'config.toml'}"
            )
    options = [word for name, value in flags.items() for word in ("--set", f"{name}={value}")]
    return (*_find_program(), "--home", str(home), *options, "serve")


def _find_program() -> tuple[str, ...]:
    """Return ``clew`` of this installation, also where it is not on the path."""
    program = Path(sys.executable).with_name("clew")
    return (str(program),) if program.is_file() else (sys.executable, "-m", "clew")


def find_home(command: list[str]) -> Path | None:
    """Return the home that a command serves."""
    if "--home" not in command[:-1]:
        return None
    return Path(command[command.index("--home") + 1])


def format_words(*words: str) -> str:
    """Return a command as a person types it."""
    return shlex.join(words)
