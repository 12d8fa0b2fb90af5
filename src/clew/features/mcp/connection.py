"""The connection to one server: a task of its own opens it, closes it, and tries again for ever."""

from __future__ import annotations

import asyncio
import enum
import time
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, Final, cast

import structlog

from clew.agent.known_secrets import redact_secrets
from clew.background import cancel_and_wait
from clew.backoff import next_pause
from clew.errors import ClewError, UsageError
from clew.features.mcp import logins
from clew.features.mcp.definitions import MAX_TOOLS, McpTool, is_storable, replace_tools
from clew.record import Record
from clew.wire.meta import KEY_FIELD

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Sequence
    from contextlib import AbstractAsyncContextManager

    from mcp import Client
    from mcp_types import Tool

    from clew.features.mcp.settings import McpServer
    from clew.plugin import FeatureContext

log = structlog.get_logger(__name__)

#: Seconds for a server to start and say what it has.
CONNECT_TIMEOUT: Final = 30.0
#: Seconds between two attempts.
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 300.0
#: Seconds that a call waits for a server that is not up yet.
NEED_TIMEOUT: Final = 10.0
#: Seconds that a call which may be repeated waits for a server that has ended.
RECOVERY_TIMEOUT: Final = 20.0
#: Seconds of the list of tools before a call has it read again.
LIST_AGE: Final = 5.0
#: A server that went down is tried at once for a call after this time.
_TRY_AGAIN_AFTER: Final = timedelta(seconds=0.5)
_LIST_TIMEOUT: Final = 10.0
#: Seconds between two looks at whether somebody has logged in from another program.
_LOOK_FOR_LOGIN: Final = 5.0
#: Seconds after which a connection counts as a good one.
_GOOD_AFTER: Final = 1.0


class ServerState(enum.Enum):
    OFF = "off"  #: nobody has needed it yet
    CONNECTING = "connecting"
    UP = "up"
    DOWN = "down"
    NEEDS_LOGIN = "needs a login"


_BEGINNING: Final = (ServerState.OFF, ServerState.CONNECTING)


class ServerStatus(Record):
    """The state of a connection, for people and models."""

    state: ServerState
    since: datetime
    #: Why it is down, or was when it began to be tried again.
    why: str | None = None
    #: On the clock of ``time.monotonic``.
    next_try: float | None = None

    def describe(self) -> str:
        """Return the state in words."""
        if self.state is ServerState.NEEDS_LOGIN:
            return f"waiting for a login: {self.why}"
        if self.state is not ServerState.DOWN:
            again = "" if self.why is None else f" again; before: {self.why}"
            return f"{self.state.value}{again}"
        seconds = max(0.0, (self.next_try or 0.0) - time.monotonic())
        since = f"{self.since:%H:%M} UTC"
        return f"down since {since}: {self.why}; next attempt in {seconds:.0f} s"


class ServerDown(UsageError):
    """Server that cannot be called now."""


class CallBroken(ClewError):
    """Call whose connection was lost: whether it had its effect is not known."""


@dataclass(eq=False)
class ServerConnection:
    """One server: its state, its tools as they were listed last, and calls to it."""

    name: str
    server: McpServer
    context: FeatureContext
    tools: dict[str, McpTool] = field(default_factory=dict[str, McpTool])
    #: What the server says about itself.
    instructions: str = ""
    #: Tools that cannot be used, by count.
    left_out: int = 0
    status: ServerStatus = field(
        default_factory=lambda: ServerStatus(state=ServerState.OFF, since=datetime.now(UTC))
    )
    _task: asyncio.Task[None] | None = None
    _client: Client | None = None
    _changed: asyncio.Condition = field(default_factory=asyncio.Condition)
    _lost: asyncio.Future[None] | None = None
    _wake: asyncio.Event = field(default_factory=asyncio.Event)
    _listed_at: float = 0.0
    _listing: asyncio.Lock = field(default_factory=asyncio.Lock)
    #: Something has worked since it was opened.
    _is_good: bool = False
    _up_at: float | None = None

    def start(self) -> None:
        """Connect in the background, if that was not begun."""
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._keep_open(), name=f"mcp:{self.name}")

    def try_again(self) -> None:
        """Have an attempt made at once: something has changed."""
        self.start()
        self._wake.set()

    async def close(self) -> None:
        """End the server; its own task does it."""
        if self._task is not None:
            await cancel_and_wait(self._task)
            self._task = None

    async def _keep_open(self) -> None:
        attempt = 0
        try:
            while True:
                self._is_good, self._up_at = False, None
                await self._set(ServerState.CONNECTING, why=self.status.why)
                error = await self._serve_once()
                if isinstance(error, logins.LoginNeeded):
                    await self._wait_for_login(error)
                    attempt = 0
                    continue
                why = describe_error(error)
                attempt = 1 if self._was_good() else attempt + 1
                pause = next_pause(attempt, first=FIRST_PAUSE, longest=LONGEST_PAUSE)
                log.warning("mcp_server_down", server=self.name, why=why, seconds=round(pause, 1))
                await self._set(ServerState.DOWN, why=why, next_try=time.monotonic() + pause)
                await self._pause(pause)
        finally:
            await self._set(ServerState.OFF)

    def _was_good(self) -> bool:
        lasted = 0.0 if self._up_at is None else time.monotonic() - self._up_at
        return self._is_good or lasted > _GOOD_AFTER

    async def _pause(self, seconds: float) -> None:
        self._wake.clear()
        try:
            async with asyncio.timeout(seconds):
                await self._wake.wait()
        except TimeoutError:
            return

    async def _wait_for_login(self, error: logins.LoginNeeded) -> None:
        """Wait until somebody has logged in, here or from another program."""
        log.warning("mcp_login_needed", server=self.name, advice=str(error))
        await self._set(ServerState.NEEDS_LOGIN, why=str(error))
        seen = (self.name, self.server.url or "", error.version)
        while not await self.context.store.read(logins.has_other_tokens, *seen):
            await self._pause(_LOOK_FOR_LOGIN)

    async def _serve_once(self) -> BaseException:
        """Keep a connection until it is lost; return why."""
        try:
            await self._serve()
        except Exception as error:  # noqa: BLE001  (a server may cause anything)
            # The end of its output says more than that a request was not answered.
            return get_first(self._find_loss() or error)
        return ServerDown("it does not answer")

    def _find_loss(self) -> BaseException | None:
        lost = self._lost
        # A transport that fails cancels what waits in it, the future as well.
        if lost is None or not lost.done() or lost.cancelled():
            return None
        return lost.exception()

    async def _serve(self) -> None:
        import anyio  # noqa: PLC0415  (only where there are servers)
        from mcp import Client  # noqa: PLC0415  (heavy: only where there are servers)

        self._lost = lost = asyncio.get_running_loop().create_future()
        with anyio.CancelScope(deadline=anyio.current_time() + CONNECT_TIMEOUT) as scope:
            transport = self._open_transport()
            async with Client(transport, cache=None, message_handler=self._hear) as one:
                self._client, self.instructions = one, one.instructions or ""
                await self._read_tools(one)
                scope.deadline = float("inf")
                self._up_at = time.monotonic()
                await self._set(ServerState.UP)
                try:
                    await lost
                finally:
                    self._client = None
        self._client = None
        if scope.cancelled_caught:
            raise TimeoutError(f"it did not answer within {CONNECT_TIMEOUT:g} s")

    def _open_transport(self) -> AbstractAsyncContextManager[Any]:
        if self.server.url is None:
            from clew.features.mcp.stdio import open_stdio  # noqa: PLC0415  (only for commands)

            return open_stdio(self.name, self.server, self.context.settings, self.lose)
        from clew.features.mcp.http import open_http  # noqa: PLC0415  (only for addresses)

        if self.server.auth == "none":
            return open_http(self.server)
        from clew.features.mcp.oauth import make_auth  # noqa: PLC0415  (only for logins)

        return open_http(self.server, make_auth(self.name, self.server, self.context))

    def lose(self, error: Exception) -> None:
        """Have the connection closed and opened again."""
        # Calls from now on wait for the next connection.
        self._client = None
        if self._lost is not None and not self._lost.done():
            self._lost.set_exception(error)
            # Whoever waits for it raises it; before that, nobody may.
            self._lost.exception()

    async def _hear(self, message: Any) -> None:
        if type(message).__name__ == "ToolListChangedNotification":
            self.forget_list()

    def is_unread(self) -> bool:
        """Return whether its list has changed, or was never read and may be soon."""
        if self._is_up():
            return not self._listed_at
        return not self.tools and self.status.state in _BEGINNING and self.status.why is None

    def forget_list(self) -> None:
        """Have the list of tools read again for the next call."""
        self._listed_at = 0.0

    async def _set(
        self, state: ServerState, *, why: str | None = None, next_try: float | None = None
    ) -> None:
        async with self._changed:
            self.status = ServerStatus(
                state=state, since=datetime.now(UTC), why=why, next_try=next_try
            )
            self._changed.notify_all()

    async def need(self, seconds: float = NEED_TIMEOUT) -> Client:
        """
        Return the open connection; one that is being opened is waited for.

        :raises ServerDown: naming the state
        """
        self.start()
        before = self.status
        if before.state is ServerState.DOWN:
            await self._try_now(before, seconds)
        else:
            await self._wait_for(self._is_settled, seconds)
        if self._client is None or not self._is_up():
            raise ServerDown(f"the MCP server {self.name} is {self.status.describe()}")
        return self._client

    async def _try_now(self, before: ServerStatus, seconds: float) -> None:
        """Have an attempt made at once, unless the last one was just now."""
        if datetime.now(UTC) - before.since < _TRY_AGAIN_AFTER:
            return
        self._wake.set()
        await self._wait_for(lambda: self._is_settled() and self.status is not before, seconds)

    async def _wait_for(self, condition: Callable[[], bool], seconds: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds), self._changed:
                await self._changed.wait_for(condition)

    def _is_settled(self) -> bool:
        return self._is_up() or self.status.state in (ServerState.DOWN, ServerState.NEEDS_LOGIN)

    def _is_up(self) -> bool:
        return self.status.state is ServerState.UP and self._client is not None

    async def wait_until_up(self, seconds: float = RECOVERY_TIMEOUT) -> None:
        """Wait for the next connection after one was lost."""
        await self._wait_for(self._is_up, seconds)

    async def refresh(self) -> None:
        """Read the list of tools again, if that was not done just now; a failure ends nothing."""
        client = self._client
        if client is None or time.monotonic() - self._listed_at < LIST_AGE:
            return
        async with self._listing:
            if time.monotonic() - self._listed_at < LIST_AGE:
                return
            try:
                async with asyncio.timeout(_LIST_TIMEOUT):
                    await self._read_tools(client)
            except Exception as error:  # noqa: BLE001  (a server may cause anything)
                self._note_failure(error)

    async def _read_tools(self, client: Client) -> None:
        found = [self._make_tool(one) async for one in _list_all(client)]
        allowed = [one for one in found if self._is_allowed(one.name)]
        tools = {one.name: one for one in allowed if is_storable(one)}
        self.left_out = len(allowed) - len(tools)
        if tools != self.tools or not self._listed_at:
            await self.context.store.write(replace_tools, self.name, list(tools.values()))
        self.tools, self._listed_at = tools, time.monotonic()

    def _make_tool(self, tool: Tool) -> McpTool:
        hints: dict[str, object] = {}
        if tool.annotations is not None:
            hints = tool.annotations.model_dump(by_alias=True)
        return McpTool(
            server=self.name,
            name=tool.name,
            description=tool.description or tool.title or "",
            schema=tool.input_schema,
            annotations={key: value for key, value in hints.items() if isinstance(value, bool)},
        )

    def _is_allowed(self, tool: str) -> bool:
        patterns = self.server.tools
        return patterns is None or any(fnmatchcase(tool, one) for one in patterns)

    async def call(self, tool: McpTool, arguments: dict[str, Any], *, key: str | None) -> Any:
        """
        Call a tool; the result is that of the SDK.

        :raises ServerDown: if it cannot be reached; nothing was sent
        :raises CallBroken: if the connection was lost meanwhile
        """
        client = await self.need()
        meta: Any = None if key is None else {KEY_FIELD: key}
        return await self._send(client.call_tool(tool.name, arguments, meta=meta))

    async def read_resource(self, uri: str) -> Any:
        """
        Read a resource; the result is that of the SDK.

        :raises ServerDown: if it cannot be reached
        :raises CallBroken: if the connection was lost meanwhile
        """
        client = await self.need()
        return await self._send(client.read_resource(uri))

    async def list_resources(self) -> Sequence[Any]:
        """
        Return the resources of the first page.

        :raises ServerDown: if it cannot be reached
        :raises CallBroken: if the connection was lost meanwhile
        """
        client = await self.need()
        if client.server_capabilities.resources is None:
            return ()
        return (await self._send(client.list_resources())).resources

    async def list_prompts(self) -> Sequence[Any]:
        """
        Return the prompts of the first page.

        :raises ServerDown: if it cannot be reached
        :raises CallBroken: if the connection was lost meanwhile
        """
        client = await self.need()
        if client.server_capabilities.prompts is None:
            return ()
        return (await self._send(client.list_prompts())).prompts

    async def get_prompt(self, name: str, arguments: dict[str, str]) -> Any:
        """
        Return the messages of a prompt; the result is that of the SDK.

        :raises ServerDown: if it cannot be reached
        :raises CallBroken: if the connection was lost meanwhile
        """
        client = await self.need()
        return await self._send(client.get_prompt(name, arguments))

    async def _send(self, request: Any) -> Any:
        from mcp.shared.exceptions import MCPError  # noqa: PLC0415  (only where there are servers)
        from mcp_types import CONNECTION_CLOSED  # noqa: PLC0415  (as above)

        try:
            result = await request
        except MCPError as error:
            if error.code != CONNECTION_CLOSED:
                self._is_good = True
                raise UsageError(f"{self.name} refuses: {redact_secrets(error.message)}") from error
            self._note_failure(error)
            raise CallBroken(f"the connection to {self.name} was lost") from error
        except Exception as error:
            self._note_failure(error)
            raise CallBroken(
                f"the connection to {self.name} was lost: {describe_error(error)}"
            ) from error
        self._is_good = True
        return result

    def _note_failure(self, error: Exception) -> None:
        self.lose(ServerDown(describe_error(error)))


async def _list_all(client: Client) -> AsyncGenerator[Tool]:
    cursor, count = None, 0
    if client.server_capabilities.tools is None:
        return
    while True:
        page = await client.list_tools(cursor=cursor)
        for tool in page.tools:
            yield tool
        count += len(page.tools)
        if (cursor := page.next_cursor) is None or count >= MAX_TOOLS or not page.tools:
            return


def get_first(error: BaseException) -> BaseException:
    """Return an error, of a group the first."""
    while isinstance(error, BaseExceptionGroup):
        error = cast("BaseExceptionGroup[BaseException]", error).exceptions[0]
    return error


def describe_error(error: BaseException) -> str:
    """Return an error in a line: of a group the first, without secrets."""
    first = get_first(error)
    said = redact_secrets(str(first)) or type(first).__name__
    return " ".join(said.split())[:500]
