"""The commands of the shown conversation that go on in the background."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

from pydantic import BaseModel, Field

from clew.wire.errors import CallFailed, ErrorCode
from clew.wire.methods import RpcMethod
from clew.wire.params import Params

if TYPE_CHECKING:
    from clew.tui.state.view import ViewState

R = TypeVar("R", bound=BaseModel)

#: Seconds between two looks.
_PERIOD: Final = 2.0


class _Command(BaseModel):
    """The shown part of a process; a server tells more."""

    command: str
    conversation: str
    state: str
    background: bool


class _Commands(BaseModel):
    items: list[_Command]


class _Limit(Params):
    limit: int = Field(default=100)


#: Those that run come first, the latest of them at the beginning.
_LIST: Final = RpcMethod(
    name="process.list", params=_Limit, result=_Commands, summary="Processes, as far as shown."
)


class _Controller(Protocol):
    @property
    def view(self) -> ViewState: ...

    async def call(self, method: RpcMethod[Any, R], params: Params) -> R: ...

    def set_commands(self, conversation: str, commands: tuple[str, ...]) -> None: ...


class BackgroundCommands:
    """Keeper of the list in the view; nothing announces the end of a command."""

    def __init__(self, controller: _Controller) -> None:
        self._controller = controller
        self._looked_at: object = None
        #: The server has no such method.
        self._is_unknown = False

    async def run(self) -> None:
        """Keep the list until cancelled, or until the server turns out to run no commands."""
        while not self._is_unknown:
            if self._is_due(self._controller.view):
                await self._look()
            await asyncio.sleep(_PERIOD)

    def _is_due(self, view: ViewState) -> bool:
        """Return whether a command may have begun or ended since the last look."""
        now = (view.conversation and view.conversation.id, view.seq)
        changed, self._looked_at = now != self._looked_at, now
        return changed or view.is_running or bool(view.commands)

    async def _look(self) -> None:
        conversation = self._controller.view.conversation
        if conversation is None:
            return
        try:
            found = await self._controller.call(_LIST, _Limit())
        except CallFailed as error:
            # The line is a help: what fails here fails elsewhere as well, and is told there.
            self._is_unknown = error.code == ErrorCode.METHOD_NOT_FOUND
            return
        commands = tuple(
            one.command
            for one in found.items
            if one.conversation == conversation.id and one.background
            if one.state in ("asked", "running")
        )
        self._controller.set_commands(conversation.id, commands)
