"""Showing in a chat that an answer is being made, and the answer as it grows."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

import structlog

from clew.core.chat import DM, OutboundMessage
from clew.core.entry import EntryKind, Role
from clew.core.events import (
    Delta,
    DeltaKind,
    EntryAppended,
    InputCompleted,
    Retracted,
    Snapshot,
    TurnStarted,
)
from clew.core.text import is_blank
from clew.errors import ChannelError, ClewError, NotDelivered, NotSent, Throttled
from clew.gateway.previews import Place

if TYPE_CHECKING:
    from clew.core.events import ConversationEvent
    from clew.core.ids import TurnId
    from clew.core.inbox import AcceptResult
    from clew.core.route import Route
    from clew.engine.engine import Engine
    from clew.gateway.line import Line
    from clew.gateway.previews import Previews
    from clew.gateway.timer import Timer

log = structlog.get_logger(__name__)

#: Seconds between two looks at what has come; an edit waits at least so long.
BEAT = 1.0
#: Seconds after which a platform stops to show that somebody is typing.
TYPING = 4.5
#: Behind a text that is not all yet.
MORE = " …"


class Progress:
    """Shows the answers of one account."""

    def __init__(
        self, engine: Engine, line: Line, previews: Previews, timer: Timer, *, stream: bool
    ) -> None:
        self._engine, self._line, self._previews, self._timer = engine, line, previews, timer
        self._stream = stream and line.channel.capabilities.edits
        self._waiting: dict[str, list[tuple[AcceptResult, str]]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def follow(self, route: Route, accepted: AcceptResult, *, message: str) -> None:
        """Show what comes of an input (a ``message``), after those before it on the same route."""
        waiting = self._waiting.setdefault(route.key, [])
        waiting.append((accepted, message))
        if len(waiting) == 1:
            task = asyncio.create_task(self._show(route), name=f"progress:{route.chat}")
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def close(self) -> None:
        for task in (tasks := list(self._tasks)):
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    async def _show(self, route: Route) -> None:
        waiting = self._waiting[route.key]
        try:
            while waiting:
                await self._one(route, *waiting[0])
                waiting.pop(0)
        except ClewError as error:
            # What is shown on the way need not be; the answer is delivered.
            log.info("progress_not_shown", chat=route.chat, error=str(error))
        finally:
            del self._waiting[route.key]

    async def _one(self, route: Route, accepted: AcceptResult, message: str) -> None:
        growing = _Growing(self._line, self._previews, route, stream=self._stream)
        if route.kind != DM:
            growing.reply_to = message
        events = self._engine.stream_input(accepted, live=self._stream)
        beat = asyncio.create_task(self._beat(growing), name=f"beat:{route.chat}")
        try:
            async for event in events:
                growing.told(event)
        finally:
            beat.cancel()
            with suppress(asyncio.CancelledError):
                await beat
            await events.aclose()

    async def _beat(self, growing: _Growing) -> None:
        while True:
            await growing.show(self._timer.monotonic())
            await self._timer.sleep(BEAT)


class _Growing:
    """One input's answer, as far as it has come."""

    def __init__(self, line: Line, previews: Previews, route: Route, *, stream: bool) -> None:
        self._line, self._previews, self._route, self._stream = line, previews, route, stream
        #: The message that it answers, where several people write.
        self.reply_to: str | None = None
        self._turn: TurnId | None = None
        self._text = ""
        self._shown = ""
        #: Texts of the turn that are stored, and so delivered.
        self._told = 0
        self._typed_at: float | None = None

    def told(self, event: ConversationEvent | InputCompleted) -> None:
        match event:
            case TurnStarted(turn=turn):
                self._turn = turn.id
            case Delta(kind=DeltaKind.TEXT, turn=turn, text=text):
                self._turn, self._text = turn, self._text + text
            case Snapshot(turn=turn, text=text):
                self._turn, self._text = turn, text
            case Retracted():
                self._text = ""
            case EntryAppended(entry=entry):
                if entry.kind is EntryKind.MESSAGE and entry.role is Role.ASSISTANT:
                    self._told += not is_blank(entry.text)
                    self._text = ""
            case _:
                pass

    async def show(self, now: float) -> None:
        """Show what is new, if the platform takes it now."""
        if self._turn is None:
            return
        if self._stream and not is_blank(self._text) and self._text != self._shown:
            await self._show_text(self._turn)
        elif self._typed_at is None or now - self._typed_at >= TYPING:
            self._typed_at = now
            await self._line.typing(self._route)

    async def _show_text(self, turn: TurnId) -> None:
        async with self._previews.lock(self._route.key):
            if not self._previews.may_show(self._route.key, turn, told=self._told):
                return
            text = self._text
            chunks = self._line.channel.render(
                OutboundMessage(text=text.rstrip() + MORE, reply_to=self.reply_to)
            )
            if not chunks or not self._line.gate.try_enter(self._route):
                return
            try:
                tried = await self._put(turn, chunks[0])
            except ChannelError as error:
                # Shown in vain or not at all: from now on only the answer counts.
                log.info("preview_failed", chat=self._route.chat, error=str(error))
                self._stream, tried = False, True
            if tried:
                self._shown = text

    async def _put(self, turn: TurnId, chunk: str) -> bool:
        """Show a chunk; whether that was tried."""
        route, key = self._route.key, f"preview:{turn}:{self._told}"
        place = Place.THERE
        if self._previews.message(route, turn) is None:
            place = await self._previews.begin(route, turn, key)
        if place is Place.NEW:
            await self._send(turn, chunk, key)
        elif (message := self._previews.message(route, turn)) is not None:
            await self._line.edit(self._route, message, chunk)
        return place is not Place.NOWHERE

    async def _send(self, turn: TurnId, chunk: str, key: str) -> None:
        try:
            message = await self._line.send(self._route, chunk, key=key)
        except (NotSent, Throttled, NotDelivered):
            await self._previews.unsent(self._route.key, turn)
            raise
        if message is None:
            # It can neither be changed nor found again: the answer will say that it is there.
            self._stream = False
            return
        await self._previews.show(self._route.key, turn, message)
