"""An editor: the official client of its protocol, which keeps what it is told."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, cast

import acp
from acp.client.connection import ClientSideConnection
from acp.schema import (
    AllowedOutcome,
    DeniedOutcome,
    RequestPermissionResponse,
)

from clew.acp.server import serve_editor
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
    from pathlib import Path

    from acp.schema import PermissionOption, ToolCallUpdate

    from clew.tui.transports import Connect


class Recorder:
    """The editor's own methods."""

    def __init__(self) -> None:
        #: What it was told, as ``(session, update)``.
        self.told: list[tuple[str, Mapping[str, Any]]] = []
        #: The questions that it was asked, and those that were not answered yet.
        self.asked: list[tuple[ToolCallUpdate, list[PermissionOption]]] = []
        self.open: set[str] = set()
        #: Chooses an option by its id; ``None`` waits for ever.
        self.choose: Callable[[ToolCallUpdate], str | None] = lambda _: None

    async def session_update(self, session_id: str, update: Any, **_: Any) -> None:
        self.told.append((session_id, update.model_dump(by_alias=True, exclude_none=True)))

    async def request_permission(
        self, session_id: str, tool_call: ToolCallUpdate, options: list[PermissionOption], **_: Any
    ) -> RequestPermissionResponse:
        self.asked.append((tool_call, options))
        self.open.add(tool_call.tool_call_id)
        while (chosen := self.choose(tool_call)) is None:  # noqa: ASYNC110  (a person takes time)
            await asyncio.sleep(0.01)
        self.open.discard(tool_call.tool_call_id)
        if chosen == "close":
            return RequestPermissionResponse(outcome=DeniedOutcome(outcome="cancelled"))
        outcome = AllowedOutcome(outcome="selected", option_id=chosen)
        return RequestPermissionResponse(outcome=outcome)

    def of(self, session: str, kind: str) -> list[Mapping[str, Any]]:
        """The updates of a kind."""
        return [told for to, told in self.told if to == session and told["sessionUpdate"] == kind]

    def text(self, session: str, kind: str = "agent_message_chunk") -> str:
        """The text of all chunks of a kind."""
        return "".join(told["content"]["text"] for told in self.of(session, kind))

    def talk(self, session: str) -> list[tuple[str, str]]:
        """Who said what, in order; chunks of one speaker are one text."""
        found: list[tuple[str, str]] = []
        for to, told in self.told:
            who = str(told["sessionUpdate"]).partition("_message")[0]
            if to != session or who not in ("user", "agent"):
                continue
            text = told["content"]["text"]
            if found and found[-1][0] == who:
                text = found.pop()[1] + text
            found.append((who, text))
        return found

    async def until_asked(self, count: int = 1) -> None:
        await wait_until(lambda: len(self.asked) >= count, "a question")


class LineTransport:
    """Messages of the official client over lines; keeps those that no client understands."""

    def __init__(
        self, read: Callable[[], Awaitable[str]], write: Callable[[str], Awaitable[None]]
    ) -> None:
        self._read, self._write = read, write
        #: Notifications of the protocol itself, and answers to garbage.
        self.others: list[dict[str, Any]] = []

    async def send(self, message: dict[str, Any]) -> None:
        await self._write(json.dumps(message))

    async def send_line(self, line: str) -> None:
        """Send what is no message."""
        await self._write(line)

    async def receive(self) -> dict[str, Any] | None:
        while line := await self._read():
            message: dict[str, Any] = json.loads(line)
            if str(message.get("method", "")).startswith("$/") or message.get("id", 0) is None:
                self.others.append(message)
            else:
                return message
        return None

    async def close(self) -> None:
        pass


class EditorAtWork:
    """The connection of an editor, and what it was told; its folder is the workspace."""

    def __init__(self, transport: LineTransport, home: Path) -> None:
        self.transport, self.seen = transport, Recorder()
        self.folder = str(home / "work" / "local")
        self.agent = ClientSideConnection(
            cast("acp.Client", self.seen), transport, use_unstable_protocol=True
        )

    async def open(self, **meta: Any) -> str:
        """Open a session; its id."""
        opened = await self.agent.new_session(cwd=self.folder, mcp_servers=[], **meta)
        return opened.session_id

    async def load(self, session: str) -> None:
        """Load a session anew, until all of it was told."""
        self.seen.told.clear()
        await self.agent.load_session(cwd=self.folder, session_id=session, mcp_servers=[])
        await wait_until(lambda: self.seen.of(session, "available_commands_update"))

    async def say(self, session: str, text: str, **meta: Any) -> str:
        """Send a prompt, and return why its turn has stopped."""
        block = acp.text_block(text)
        done = await self.agent.prompt(session_id=session, prompt=[block], **meta)
        return done.stop_reason


@asynccontextmanager
async def editing(connect: Connect, home: Path) -> AsyncGenerator[EditorAtWork]:
    """An editor whose agent is in this process, at a server."""
    to_agent: asyncio.Queue[bytes | None] = asyncio.Queue()
    to_editor: asyncio.Queue[str] = asyncio.Queue()

    async def lines() -> AsyncIterator[bytes]:
        while (line := await to_agent.get()) is not None:
            yield line

    async def write(line: str) -> None:
        await to_agent.put(line.encode())

    def locate(home: Path, scope: str) -> Path:
        return home / "work" / scope

    serving = asyncio.create_task(
        serve_editor(connect, lines(), to_editor.put, agent=None, locate=locate)
    )
    editor = EditorAtWork(LineTransport(to_editor.get, write), home)
    try:
        await editor.agent.initialize(protocol_version=acp.PROTOCOL_VERSION)
        yield editor
    finally:
        await to_agent.put(None)
        await serving
        await to_editor.put("")
        await editor.agent.close()
