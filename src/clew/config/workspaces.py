"""The sandbox that the settings ask for, and checks of these settings."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final, cast

from clew.errors import SettingsError
from clew.sandbox.request import NET_REFUSAL, CommandLimits, SandboxPolicy
from clew.sandbox.workspace import Workspace, name_folder

if TYPE_CHECKING:
    from clew.config.settings import Settings
    from clew.sandbox.request import Level

#: The folder of the workspaces, in ``CLEW_HOME``.
WORK_FOLDER: Final = "work"
_MEBIBYTE: Final = 1024 * 1024


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
        secrets={name: secret.reveal() for name, secret in section.secrets},
        image=section.image,
    )


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
    Reject a level that is not available yet, and a workspace with private files.

    :raises SettingsError: if one of them is set
    """
    if settings.sandbox.level == "net":
        raise SettingsError(f"sandbox.level: {NET_REFUSAL}")
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
