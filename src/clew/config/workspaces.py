"""The sandbox that the settings ask for, and checks of these settings."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

from clew.errors import SettingsError
from clew.sandbox.network_rules import parse_network_rules
from clew.sandbox.request import CommandLimits, SandboxPolicy
from clew.sandbox.workspace import Workspace, name_folder

if TYPE_CHECKING:
    from clew.config.settings import Settings
    from clew.core.sandbox_level import Level
    from clew.sandbox.network_rules import NetworkRules

#: The folder of the workspaces, in ``CLEW_HOME``.
WORK_FOLDER: Final = "work"
#: The socket of the proxy; a command that outlives its gateway finds that of the next one there.
PROXY_SOCKET: Final = "run/net.sock"
_MEBIBYTE: Final = 1024 * 1024


def name_place(settings: Settings) -> str:
    """Return the name of this machine and its home: two homes do not see each other's folders."""
    return f"{socket.gethostname()}:{settings.home.resolve()}"


def make_sandbox_policy(settings: Settings) -> SandboxPolicy:
    """
    Return the terms of the settings, with the values of the secrets.

    :raises SettingsError: if a secret is missing, or the settings contradict each other
    """
    section, home = settings.sandbox, settings.home.resolve()
    check_sandbox(settings)
    return SandboxPolicy(
        level=cast("Level", section.level),
        limits=CommandLimits(
            memory=section.memory * _MEBIBYTE,
            processes=section.processes,
            seconds=float(section.seconds),
            output=section.output,
            disk=section.disk * _MEBIBYTE,
        ),
        folder=home / WORK_FOLDER,
        shared_workspace=section.workspace and section.workspace.resolve(),
        private=(home,),
        secrets={name: secret.reveal() for name, secret in section.secrets if "@" not in name},
        image=section.image,
        proxy=home / PROXY_SOCKET,
    )


def make_network_rules(settings: Settings) -> NetworkRules:
    """
    Return the rules of the proxy.

    :raises SettingsError: naming what is no host
    """
    try:
        return parse_network_rules(settings.sandbox.hosts)
    except ValueError as error:
        raise SettingsError(f"sandbox.hosts: {error}") from None


def make_credentials(settings: Settings) -> dict[str, str]:
    """
    Return the header ``Authorization`` by host, for secrets that commands never see.

    :raises SettingsError: if a secret cannot be read
    """
    found: dict[str, str] = {}
    for name, secret in settings.sandbox.secrets:
        host, value = name.partition("@")[2], secret.reveal() if "@" in name else ""
        if host:
            # A value of two words has its own kind, as "Basic …".
            found[host.lower()] = value if " " in value else f"Bearer {value}"
    return found


def find_workspace(settings: Settings, scope: str) -> Workspace:
    """Return the workspace of a scope, as commands in the sandbox have it; it may not exist yet."""
    shared = settings.sandbox.workspace
    if shared is not None:
        return Workspace(shared.resolve())
    return Workspace(settings.home.resolve() / WORK_FOLDER / name_folder(scope))


def move_workspace(settings: Settings, old: str, new: str) -> bool:
    """
    Give a scope the workspace of another one that has become it; repeatable.

    :return: ``False`` if there is nothing to move, or the new scope has files of its own
    """
    source, target = find_workspace(settings, old).root, find_workspace(settings, new).root
    if source == target or not source.is_dir():
        return False
    try:
        source.rename(target)
    except OSError:
        # Files that were made under the new id stay where they are, and so do the old ones.
        return False
    return True


def check_sandbox(settings: Settings) -> None:
    """
    Reject a level without what it needs, hosts that are none, and a workspace with private files.

    :raises SettingsError: if one of them is set
    """
    if not make_network_rules(settings).hosts and settings.sandbox.level == "net":
        raise SettingsError(
            'sandbox.level is "net", and sandbox.hosts is empty: name the hosts that commands may '
            'reach, or use "work"'
        )
    if settings.sandbox.workspace is None:
        return
    workspace = settings.sandbox.workspace.resolve()
    home, person = settings.home.resolve(), Path.home().resolve()
    if workspace.is_relative_to(home) and not workspace.is_relative_to(home / WORK_FOLDER):
        raise SettingsError(
            f"sandbox.workspace is {workspace}, which is in CLEW_HOME, where commands must not "
            f"write: name a folder elsewhere, or one in {home / WORK_FOLDER}"
        )
    for kept, what in ((home, "CLEW_HOME, with the database"), (person, "your home folder")):
        if kept.is_relative_to(workspace):
            raise SettingsError(
                f"sandbox.workspace is {workspace}, which contains {what}: name a folder with "
                "only those files that commands may read and change"
            )
