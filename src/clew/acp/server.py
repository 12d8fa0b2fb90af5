"""The protocol with one editor, until it closes its end."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final, cast

import structlog
from acp.agent.router import build_agent_router
from acp.connection import Connection
from acp.meta import AGENT_METHODS

from clew.acp.agent import EditorAgent
from clew.acp.editor import Editor
from clew.acp.failures import KNOWN_FAILURES, translate_failure
from clew.acp.prompt_blocks import reject_unknown_blocks
from clew.acp.transport import EditorTransport
from clew.tui.client import RpcClient

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from acp import Agent
    from acp.router import MessageRouter

    from clew.acp.workspaces import LocateFolder
    from clew.tui.transports import Connect

log = structlog.get_logger(__name__)

_PROMPT: Final = AGENT_METHODS["session_prompt"]
#: Seconds that open requests get once the editor has closed its end.
_ANSWER_TIMEOUT: Final = 5.0


async def serve_editor(
    connect: Connect,
    lines: AsyncIterator[bytes],
    write: Callable[[str], Awaitable[None]],
    *,
    agent: str | None,
    locate: LocateFolder,
) -> None:
    """
    Serve an editor until its lines end; what it has submitted is stored, and goes on.

    New sessions have the named ``agent``, else the main one.
    """
    transport = EditorTransport(lines, write)
    editor = Editor(transport)
    async with RpcClient(connect) as client:
        methods = EditorAgent(client, editor, agent=agent, locate=locate)
        calls = _Calls(build_agent_router(cast("Agent", methods), use_unstable_protocol=True))
        connection = Connection(calls.handle, transport, listening=False)
        editor.attach(connection)
        try:
            await connection.main_loop()
            await calls.finish()
        finally:
            await methods.close()
            await connection.close()


class _Calls:
    """The requests of an editor, with errors as it gets them."""

    def __init__(self, router: MessageRouter) -> None:
        self._router = router
        self._open: set[asyncio.Task[Any]] = set()

    async def handle(self, method: str, params: Any, is_notification: bool) -> Any:
        """
        Carry out a request or a notification.

        :raises RequestError: if that is not possible
        """
        task = asyncio.current_task()
        if task is not None:
            self._open.add(task)
            task.add_done_callback(self._open.discard)
        try:
            if method == _PROMPT:
                reject_unknown_blocks(params)
            return await self._router(method, params, is_notification)
        except KNOWN_FAILURES as error:
            failure = translate_failure(error, method=method)
            if is_notification:
                log.info("notification_ignored", method=method, error=str(failure))
                return None
            raise failure from None

    async def finish(self) -> None:
        """Wait a moment for open requests; what was submitted goes on without them."""
        await asyncio.sleep(0)  # those that were just read begin
        if self._open:
            await asyncio.wait(self._open, timeout=_ANSWER_TIMEOUT)
