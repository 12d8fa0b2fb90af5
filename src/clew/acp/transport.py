"""The editor's end of the protocol: JSON-RPC messages, each in a line."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from clew.wire import framing
from clew.wire.framing import FrameError, RpcErrorResponse, RpcRequest, RpcResponse
from clew.wire.json import dump_json

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from clew.wire.framing import RequestId, RpcMessage


class EditorTransport:
    """
    Transport of the protocol library over lines.

    What is not a message is answered with an error: the library would only log it. As an
    answer to a request, it is an error.
    """

    def __init__(
        self, lines: AsyncIterator[bytes], write: Callable[[str], Awaitable[None]]
    ) -> None:
        self._lines, self._write = lines, write
        self._after: dict[asyncio.Task[Any] | None, list[Callable[[], object]]] = {}
        self._asked: dict[asyncio.Task[Any] | None, RequestId] = {}

    async def receive(self) -> dict[str, Any] | None:
        """Return the next message; ``None`` once the editor has closed its end."""
        async for line in self._lines:
            try:
                return _to_fields(framing.parse_frame(line))
            except FrameError as error:
                if self._is_answer(line, error.failure):
                    return _to_fields(error.failure)
                await self._write(framing.write_message(error.failure))
        return None

    def _is_answer(self, line: bytes, failure: RpcErrorResponse) -> bool:
        """Return whether a line without meaning answers a request of this side."""
        return failure.id in self._asked.values() and b'"method"' not in line

    async def send(self, message: dict[str, Any]) -> None:
        """Write a message; after a response, run what waits for it."""
        await self._write(dump_json(message))
        task = asyncio.current_task()
        if "method" not in message:
            for each in self._after.pop(task, ()):
                each()
        elif "id" in message:
            self._asked[task] = message["id"]

    async def close(self) -> None:
        """Close nothing: whoever opened the lines closes them."""

    def run_after_response(self, each: Callable[[], object]) -> None:
        """Run ``each`` once the request of the current task is answered."""
        self._after.setdefault(asyncio.current_task(), []).append(each)

    async def withdraw_request(self) -> None:
        """Tell the editor that the request which the current task has sent is void."""
        asked = self._asked.pop(asyncio.current_task(), None)
        if asked is not None:
            params = {"requestId": asked}
            await self.send({"jsonrpc": "2.0", "method": "$/cancel_request", "params": params})

    def forget_request(self) -> None:
        """Forget the request which the current task has sent: it is answered."""
        self._asked.pop(asyncio.current_task(), None)


def _to_fields(message: RpcMessage) -> dict[str, Any]:
    match message:
        case RpcRequest(id=None):
            return {"jsonrpc": "2.0", "method": message.method, "params": dict(message.params)}
        case RpcRequest(id=id_):
            params = dict(message.params)
            return {"jsonrpc": "2.0", "id": id_, "method": message.method, "params": params}
        case RpcResponse(id=id_):
            return {"jsonrpc": "2.0", "id": id_, "result": message.result}
        case RpcErrorResponse(id=id_):
            return {"jsonrpc": "2.0", "id": id_, "error": message.error.fields}
