"""The workspace of the running turn, and the right to change files in it."""

from __future__ import annotations

import asyncio
import hashlib
import os
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final
from weakref import WeakValueDictionary

from clew.config.workspaces import find_workspace
from clew.file_locks import try_lock_descriptor
from clew.plugin import get_turn_context
from clew.record import Record
from clew.sandbox.disk_meter import get_disk_meter
from clew.sandbox.errors import (
    FileRefused,
    OutsideWorkspace,
    PathLeadsElsewhere,
    WorkspaceFull,
    quote_path,
)
from clew.sandbox.workspace import Workspace

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from clew.config.settings import Settings
    from clew.plugin import TurnContext

#: Seconds that a change waits for other changes in the same workspace.
_PATIENCE: Final = 60.0
_PAUSE: Final = 0.005
_MEGABYTE: Final = 1024 * 1024
#: What is there is no file, and tells about processes, among them the gateway.
_OF_THE_KERNEL: Final = ("/proc", "/sys", "/dev")
#: By workspace: calls of this process change files in the order in which they ask.
_LOCKS: Final = WeakValueDictionary[str, asyncio.Lock]()


def require_context() -> TurnContext:
    """
    Return the context of the running turn.

    :raises RuntimeError: outside of a turn
    """
    context = get_turn_context()
    if context is None:
        raise RuntimeError("the file tools work in a turn only")
    return context


class LocatedPath(Record, kw_only=False):
    """A path of the model, and the folder below which it is used."""

    #: The workspace, or the root of the file system for a path outside of it.
    workspace: Workspace
    path: str
    is_inside: bool

    def show_path(self, path: str) -> str:
        """Return a path below the folder as the model can use it."""
        return path if self.is_inside else f"/{path}"


def locate(path: str) -> LocatedPath:
    """
    Locate a path of the running call.

    A path whose text stays inside the workspace stays inside: the workspace refuses links that
    lead out. Other paths were allowed by a rule or a person before the call runs; no link is
    followed on them, so that what is used is what was allowed.

    :raises FileRefused: if the path is not usable, or private
    """
    workspace = get_workspace()
    try:
        workspace.relative_path(path)
    except OutsideWorkspace:
        found = normalize_path(path)
    else:
        return LocatedPath(workspace, path, is_inside=True)
    _refuse_private(path, found)
    actual = Path(os.path.realpath(found))
    if actual != found:
        raise PathLeadsElsewhere(path, str(actual))
    return LocatedPath(Workspace(Path("/")), str(found), is_inside=False)


def normalize_path(path: str) -> Path:
    """Return the absolute path that a text names, whatever is there."""
    return Path(os.path.normpath(get_workspace().root / path))


def _refuse_private(path: str, found: Path) -> None:
    home = require_context().services.settings.home.resolve()
    if found.is_relative_to(home) or home.is_relative_to(found):
        raise FileRefused(f"{quote_path(path)} is or contains the data of Clew: it cannot be used")
    if any(found.is_relative_to(one) for one in _OF_THE_KERNEL):
        raise FileRefused(f"{quote_path(path)} is made by the kernel: it is not a file")


def get_workspace() -> Workspace:
    """Return the workspace of the running turn; it exists."""
    context = require_context()
    workspace = find_workspace(context.services.settings, context.scope)
    workspace.create()
    return workspace


@asynccontextmanager
async def changing_files(home: Path, workspace: Workspace) -> AsyncGenerator[None]:
    """
    Hold the exclusive right to change files of a workspace on this machine.

    :raises FileRefused: if others hold it for too long
    """
    # Not in the workspace, where a command could hold it for ever.
    name = hashlib.sha256(os.fsencode(workspace.root)).hexdigest()[:16]
    async with _LOCKS.setdefault(name, asyncio.Lock()):
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
        (home / "run").mkdir(parents=True, exist_ok=True, mode=0o700)
        descriptor = os.open(home / "run" / f"workspace-{name}", flags, 0o600)
        try:
            await _take_lock(descriptor)
            yield
        finally:
            os.close(descriptor)


async def require_room(settings: Settings, workspace: Workspace, growth: int) -> None:
    """
    Refuse to let files grow by so many bytes if the workspace would become too large.

    :raises WorkspaceFull: if it would; files outside of a workspace are not limited
    """
    if workspace.root == Path("/"):
        return
    meter = get_disk_meter(workspace.root, settings.sandbox.disk * _MEGABYTE)
    if (refusal := await meter.refuse_growth(growth)) is not None:
        raise WorkspaceFull(refusal)


async def _take_lock(descriptor: int) -> None:
    try:
        async with asyncio.timeout(_PATIENCE):
            while not try_lock_descriptor(descriptor):  # noqa: ASYNC110  (nothing announces it)
                await asyncio.sleep(_PAUSE)
    except TimeoutError:
        raise FileRefused("other calls are changing files of the workspace: try again") from None
