"""A server that is a command in the sandbox: its processes, and messages over its pipes."""

from __future__ import annotations

import asyncio
import os
import signal
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

import anyio
from mcp.shared.message import SessionMessage
from mcp_types import jsonrpc_message_adapter

from clew.background import kill_and_wait, start_child
from clew.config.workspaces import make_sandbox_policy
from clew.errors import UsageError
from clew.sandbox.request import SandboxRequest
from clew.sandbox.selection import choose_sandbox
from clew.sandbox.workspace import name_folder

if TYPE_CHECKING:
    from asyncio.subprocess import Process
    from collections.abc import AsyncGenerator, Callable, Sequence

    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

    from clew.config.settings import Settings
    from clew.core.sandbox_level import Level
    from clew.features.mcp.settings import McpServer
    from clew.sandbox.protocol import Sandbox

#: Bytes of a message, and of what a server writes to its error output that is kept.
MAX_MESSAGE: Final = 16 * 1024 * 1024
_ERRORS_KEPT: Final = 2_000
_CHUNK: Final = 64 * 1024
#: Seconds that a server has to end by itself, once its input has ended.
_GRACE: Final = 2.0
#: Seconds for the exit code and the errors of one whose output has ended.
_LAST_WORDS: Final = 0.3
#: Seconds of processor time: a server runs for as long as the gateway.
_FOREVER: Final = 10.0 * 365 * 86400


class ServerEnded(UsageError):
    """Server whose output has ended; the text says why, as far as it is known."""


class StdioServer:
    """A running command that speaks the protocol."""

    def __init__(self, process: Process, on_end: Callable[[Exception], None]) -> None:
        self._process, self._on_end = process, on_end
        self._errors = b""
        #: Lines that are no messages.
        self._noise = 0

    def describe_end(self) -> str:
        """Return why it does not answer any more, or never did."""
        parts: list[str] = []
        if self._process.returncode is not None:
            parts.append(f"it ended with exit code {self._process.returncode}")
        if self._noise:
            parts.append(f"it wrote {self._noise} lines to its output that are no messages")
        if said := self._errors.decode(errors="replace").strip():
            parts.append(f"it said: {said[-400:]}")
        return "; ".join(parts) or "its output has ended"

    async def read(self, received: MemoryObjectSendStream[SessionMessage | Exception]) -> None:
        """Pass on the messages of the server; lines that are none are left out."""
        with suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):
            async with received:
                async for line in self._iter_lines():
                    await self._pass_on(line, received)

    async def _iter_lines(self) -> AsyncGenerator[bytes]:
        buffer = bytearray()
        while chunk := await self._get_output().read(_CHUNK):
            buffer += chunk
            if b"\n" in chunk:
                *lines, buffer = buffer.split(b"\n")
                for line in lines:
                    yield bytes(line)
            if len(buffer) > MAX_MESSAGE:
                self._on_end(ServerEnded(f"it sent a message of more than {MAX_MESSAGE:,} bytes"))
                return
        with suppress(TimeoutError):
            await asyncio.wait_for(self._process.wait(), _LAST_WORDS)
        self._on_end(ServerEnded(self.describe_end()))

    async def _pass_on(
        self, line: bytes, received: MemoryObjectSendStream[SessionMessage | Exception]
    ) -> None:
        if not line.strip():
            return
        try:
            message = jsonrpc_message_adapter.validate_json(line, by_name=False)
        except ValueError:
            self._noise += 1
        else:
            await received.send(SessionMessage(message))

    async def write(self, sent: MemoryObjectReceiveStream[SessionMessage]) -> None:
        """Pass on messages to the server."""
        stdin = self._process.stdin
        assert stdin is not None
        with suppress(anyio.ClosedResourceError, anyio.BrokenResourceError, OSError):
            async with sent:
                async for one in sent:
                    text = one.message.model_dump_json(by_alias=True, exclude_unset=True)
                    stdin.write(text.encode() + b"\n")
                    await stdin.drain()

    async def read_errors(self) -> None:
        """Keep the end of what it writes to its error output."""
        stderr = self._process.stderr
        assert stderr is not None
        while chunk := await stderr.read(_CHUNK):
            self._errors = (self._errors + chunk)[-_ERRORS_KEPT:]

    def _get_output(self) -> asyncio.StreamReader:
        assert self._process.stdout is not None
        return self._process.stdout

    async def begin(self) -> None:
        """
        Answer the command, which says that it begins, and is tied to us from then on.

        :raises ServerEnded: if it cannot be started
        """
        first = await self._get_output().read(1)
        stdin = self._process.stdin
        assert stdin is not None
        if first != b"\0":
            with suppress(TimeoutError):
                await asyncio.wait_for(self.read_errors(), _GRACE)
            raise ServerEnded(f"it cannot be started: {self.describe_end()}")
        with suppress(OSError):
            stdin.write(b"\n")
            await stdin.drain()

    async def end(self, sandbox: Sandbox) -> None:
        """End its processes: first by the end of its input, then by signals."""
        stdin = self._process.stdin
        assert stdin is not None
        stdin.close()
        for number in (None, sandbox.end_signal or signal.SIGTERM):
            if number is not None:
                with suppress(ProcessLookupError):
                    self._process.send_signal(number)
            with suppress(TimeoutError):
                await asyncio.wait_for(self._process.wait(), _GRACE)
                break
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        await kill_and_wait(self._process)


@asynccontextmanager
async def open_stdio(
    name: str, server: McpServer, settings: Settings, on_end: Callable[[Exception], None]
) -> AsyncGenerator[Any]:
    """
    Run a server in the sandbox during the block; yield the streams of its messages.

    :raises ServerEnded: if it cannot be started
    :raises SandboxError: if there is no sandbox for it
    """
    sandbox, argv, request = await _wrap(name, server, settings)
    process = await start_child(
        *argv,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=sandbox.make_environment(request),
        start_new_session=True,
    )
    running = StdioServer(process, on_end)
    try:
        await running.begin()
        async with _open_streams(running) as streams:
            yield streams
    finally:
        with anyio.CancelScope(shield=True):
            await running.end(sandbox)


@asynccontextmanager
async def _open_streams(running: StdioServer) -> AsyncGenerator[Any]:
    received, read_stream = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    write_stream, sent = anyio.create_memory_object_stream[SessionMessage](0)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(running.read, received)
        tasks.start_soon(running.write, sent)
        tasks.start_soon(running.read_errors)
        try:
            yield read_stream, write_stream
        finally:
            for stream in (read_stream, write_stream, received, sent):
                stream.close()
            tasks.cancel_scope.cancel()


async def _wrap(
    name: str, server: McpServer, settings: Settings
) -> tuple[Sandbox, Sequence[str], SandboxRequest]:
    policy = replace(make_sandbox_policy(settings), level=cast("Level", server.level))
    sandbox = (await choose_sandbox(policy)).require_sandbox()
    request = SandboxRequest(
        workspace=policy.folder / name_folder(f"mcp:{name}"),
        level=policy.level,
        limits=replace(policy.limits, seconds=_FOREVER),
        readable=[_find_path(one) for one in server.readable],
        environment={key: secret.reveal() for key, secret in (server.env or {}).items()},
        takes_input=True,
    )
    await sandbox.prepare(request)
    return sandbox, sandbox.wrap(server.command, request), request


def _find_path(text: str) -> Path:
    return Path(text).expanduser()
