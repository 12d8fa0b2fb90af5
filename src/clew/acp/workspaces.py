"""The folder in which the tools of a conversation work, as the server has it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from clew.record import Record
from clew.wire import methods
from clew.wire.errors import CallFailed, ErrorCode
from clew.wire.params import ConfigGetParams, NoParams

if TYPE_CHECKING:
    from clew.tui.client import RpcClient

#: Returns the folder of a scope in a home.
LocateFolder = Callable[[Path, str], Path]
_SETTING = "sandbox.workspace"


class Workspaces(Record):
    """The folders of a server."""

    home: Path
    #: One folder for all.
    shared: Path | None
    locate: LocateFolder

    def find(self, scope: str) -> Path:
        """Return the folder of a scope."""
        return self.shared or self.locate(self.home, scope)

    def explain(self, scope: str, cwd: str) -> str | None:
        """Say that the folder of an editor is another one; ``None`` if the files are the same."""
        folder = self.find(scope)
        if Path(cwd).resolve().is_relative_to(folder.resolve()):
            return None
        return (
            f"The tools work in {folder}, not in {cwd}: the setting {_SETTING} of Clew chooses "
            "the folder."
        )


async def read_workspaces(client: RpcClient, locate: LocateFolder) -> Workspaces:
    """Ask the server for its folders."""
    agent = await client.call(methods.DESCRIBE, NoParams())
    return Workspaces(home=Path(agent.home), shared=await _read_shared(client), locate=locate)


async def _read_shared(client: RpcClient) -> Path | None:
    try:
        found = await client.call(methods.CONFIG_GET, ConfigGetParams(key=_SETTING))
    except CallFailed as error:
        if error.code != ErrorCode.METHOD_NOT_FOUND:
            raise
        return None  # settings are shown only to clients that see everything
    value = found.items[0].value
    return Path(str(value)) if value else None
