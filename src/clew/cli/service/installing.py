"""Writing and removing of the file of a service."""

from __future__ import annotations

import os
import pwd
import sys
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from clew.cli.service.definition import ServiceDefinition, ServiceFailed, build_command
from clew.cli.service.launchd import LaunchdManager
from clew.cli.service.systemd import SystemdManager
from clew.errors import UsageError
from clew.record import Record

if TYPE_CHECKING:
    from collections.abc import Mapping

    from clew.cli.service.manager import ServiceManager


class InstallResult(Record):
    """Outcome of an installation."""

    file: Path
    #: Whether the file is new or has other content than before.
    changed: bool
    #: Whether the service runs on while the person is logged out.
    lingers: bool


def find_manager(*, system: bool) -> ServiceManager:
    """Return the process manager of this kind of machine, which may not run."""
    return (
        LaunchdManager(system=system) if sys.platform == "darwin" else SystemdManager(system=system)
    )


def require_manager(*, system: bool) -> ServiceManager:
    """
    Return the process manager of this machine.

    :raises ServiceFailed: if there is none
    """
    manager = find_manager(system=system)
    if not manager.available:
        raise ServiceFailed(
            f"{manager.kind} does not run here: let the process manager of this machine run "
            "`clew serve`, or use the container (docs/how-to/run-around-the-clock.md)"
        )
    return manager


def define_service(
    *, name: str, home: Path, flags: Mapping[str, str], system: bool, user: str | None
) -> ServiceDefinition:
    """
    Return the service of a home.

    :raises UsageError: if it cannot be one
    """
    if user is not None and not system:
        raise UsageError("--user is for services of the whole machine: add --system")
    return ServiceDefinition(
        name=name,
        home=home,
        command=build_command(home, flags),
        user=(user or _find_owner(home)) if system else None,
    )


def _find_owner(home: Path) -> str:
    """Return the user to whom a home belongs: the administrator only if asked for."""
    try:
        owner = pwd.getpwuid(home.stat().st_uid)
    except (OSError, KeyError):
        raise UsageError(
            f"{home} is not there, so nobody knows whose service it is to be: make it for a user "
            f"(install -d -o USER -m 700 {home}), or name one with --user"
        ) from None
    if owner.pw_uid == 0:
        raise UsageError(
            f"{home} belongs to root: name the user of the service with --user, or give {home} "
            "to one"
        )
    return owner.pw_name


def install_service(
    manager: ServiceManager, service: ServiceDefinition, *, start: bool
) -> InstallResult:
    """
    Write the file of a service and start it; repeated, it changes nothing.

    :raises UsageError: if a file of this name is not of this home
    :raises ServiceFailed: if the manager refuses, or the gateway does not become ready
    """
    file, text = manager.locate_file(service.name), manager.render_file(service)
    before = _read_own_file(manager, file, service.home)
    if before != text:
        _replace_file(file, text)
    lingers = manager.enable_linger()
    manager.activate(service.name, changed=before != text, start=start)
    return InstallResult(file=file, changed=before != text, lingers=lingers)


def uninstall_service(manager: ServiceManager, name: str, home: Path) -> Path | None:
    """
    Stop a service and remove its file, nothing else; return the path of the file, if any.

    :raises UsageError: if the file is not of this home
    :raises ServiceFailed: if the manager refuses
    """
    file = manager.locate_file(name)
    if _read_own_file(manager, file, home) is None:
        return None
    manager.deactivate(name)
    _remove_file(file)
    manager.forget(name)
    return file


def _read_own_file(manager: ServiceManager, file: Path, home: Path) -> str | None:
    """Return the content of the file of a home's service; ``None`` if there is no file."""
    try:
        text = file.read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise ServiceFailed(f"{file} cannot be read: {error}") from error
    found = manager.read_home(text)
    if found is None:
        raise UsageError(f"{file} was not written by `clew service`: remove it, or use --name")
    if found != home:
        raise UsageError(f"{file} serves the home {found}: name this one's service with --name")
    return text


def _replace_file(file: Path, text: str) -> None:
    """Write a file as a whole: a manager that reads it meanwhile sees the old one or the new."""
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        descriptor, made = tempfile.mkstemp(dir=file.parent, prefix=".clew-")
        try:
            with open(descriptor, "w", encoding="utf-8") as stream:  # noqa: PTH123  (a descriptor)
                stream.write(text)
                os.fchmod(descriptor, 0o644)
            Path(made).replace(file)
        except BaseException:
            with suppress(FileNotFoundError):
                Path(made).unlink()
            raise
    except OSError as error:
        raise ServiceFailed(f"{file} cannot be written: {error.strerror}") from error


def _remove_file(file: Path) -> None:
    try:
        file.unlink(missing_ok=True)
    except OSError as error:
        raise ServiceFailed(f"{file} cannot be removed: {error.strerror}") from error
