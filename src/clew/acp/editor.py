"""The editor as this program calls it: updates of sessions, and questions."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from acp import RequestError
from acp.meta import CLIENT_METHODS
from acp.schema import AvailableCommandsUpdate, RequestPermissionResponse, SessionNotification

from clew.acp.updates import say

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Sequence

    from acp.connection import Connection
    from acp.schema import AvailableCommand, RequestPermissionRequest
    from pydantic import BaseModel

    from clew.acp.transport import EditorTransport

_UPDATE: Final = CLIENT_METHODS["session_update"]
_ASK: Final = CLIENT_METHODS["session_request_permission"]


class Editor:
    """The editor at the other end."""

    def __init__(self, transport: EditorTransport) -> None:
        self.transport = transport
        self._connection: Connection | None = None
        self._telling: set[asyncio.Task[None]] = set()

    def attach(self, connection: Connection) -> None:
        """Use the connection, which needs the handlers that call the editor."""
        self._connection = connection

    @property
    def _connected(self) -> Connection:
        assert self._connection is not None
        return self._connection

    async def update(self, session: str, update: Any) -> None:
        """Send an update of a session; an editor that has gone misses nothing."""
        told = SessionNotification(session_id=session, update=update)
        with suppress(ConnectionError):
            await self._connected.send_notification(_UPDATE, _to_json(told))

    def run_after_response(self, tell: Callable[[], Coroutine[None, None, None]]) -> None:
        """Tell the editor something once the request of the current task is answered."""
        self.transport.run_after_response(lambda: self._tell_later(tell()))

    def _tell_later(self, telling: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(telling, name="acp-tell")
        self._telling.add(task)
        task.add_done_callback(self._telling.discard)

    async def introduce(
        self, session: str, commands: list[AvailableCommand], remarks: Sequence[str]
    ) -> None:
        """Tell the commands of a session, and what is not as the editor asked for."""
        update = AvailableCommandsUpdate(
            session_update="available_commands_update", available_commands=commands
        )
        await self.update(session, update)
        if remarks:
            await self.update(session, say("".join(f"\n\n({each})" for each in remarks) + "\n\n"))

    async def ask(self, question: RequestPermissionRequest) -> RequestPermissionResponse:
        """
        Ask a person, and return the answer; cancelled, the question is withdrawn.

        :raises RequestError: if the editor cannot ask
        :raises ValueError: if what it answers is no answer
        """
        transport = self.transport
        try:
            answer = await self._connected.send_request(_ASK, _to_json(question))
            transport.forget_request()
        except RequestError:
            transport.forget_request()  # an error is an answer, too
            raise
        finally:
            await transport.withdraw_request()
        return RequestPermissionResponse.model_validate(answer)


def _to_json(model: BaseModel) -> dict[str, Any]:
    return model.model_dump(mode="json", by_alias=True, exclude_none=True)
