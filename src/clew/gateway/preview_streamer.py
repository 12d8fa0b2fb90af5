"""Typing indicators and previews of growing answers in a chat."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import structlog

from clew.background import cancel_and_wait, shield_until_done
from clew.core.channel_events import DM, OutboundMessage
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
from clew.gateway.previews import PreviewTarget

if TYPE_CHECKING:
    from clew.core.events import ConversationEvent
    from clew.core.ids import TurnId
    from clew.core.inbox import AcceptResult
    from clew.core.route import Route
    from clew.engine.engine import Engine
    from clew.gateway.platform_client import PlatformClient
    from clew.gateway.previews import PreviewRegistry
    from clew.gateway.timer import Timer

log = structlog.get_logger(__name__)

#: Seconds between two updates; an edit waits at least so long.
UPDATE_INTERVAL = 1.0
#: Seconds that a message which is being sent gets when its answer has ended.
_SEND_GRACE = 10.0
#: Seconds after which a platform hides its typing indicator.
TYPING_DURATION = 4.5
#: Appended to an incomplete text.
CONTINUATION_MARK = " …"


class PreviewStreamer:
    """Shows the progress of the answers of one account."""

    def __init__(
        self,
        engine: Engine,
        line: PlatformClient,
        previews: PreviewRegistry,
        timer: Timer,
        *,
        stream: bool,
    ) -> None:
        self._engine, self._line, self._previews, self._timer = engine, line, previews, timer
        self._stream = stream and line.channel.capabilities.edits
        self._waiting: dict[str, list[tuple[AcceptResult, str]]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def follow_input(self, route: Route, accepted: AcceptResult, *, message: str) -> None:
        """
        Show the progress of an input's answer, after earlier inputs of the same route.

        ``message`` is the platform's id of the message that brought the input.
        """
        waiting = self._waiting.setdefault(route.key, [])
        waiting.append((accepted, message))
        if len(waiting) == 1:
            task = asyncio.create_task(self._show_route(route), name=f"progress:{route.chat}")
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def close(self) -> None:
        """Cancel all tasks and wait for them."""
        await cancel_and_wait(*self._tasks)

    async def _show_route(self, route: Route) -> None:
        waiting = self._waiting[route.key]
        try:
            while waiting:
                await self._show_input(route, *waiting[0])
                waiting.pop(0)
        except ClewError as error:
            # Previews are optional; the answer is delivered anyway.
            log.info("progress_not_shown", chat=route.chat, error=str(error))
        finally:
            del self._waiting[route.key]

    async def _show_input(self, route: Route, accepted: AcceptResult, message: str) -> None:
        growing = _AnswerPreview(self._line, self._previews, route, stream=self._stream)
        if route.kind != DM:
            growing.reply_to = message
        events = self._engine.stream_input(accepted, live=self._stream)
        beat = asyncio.create_task(self._refresh_periodically(growing), name=f"beat:{route.chat}")
        try:
            async for event in events:
                growing.apply_event(event)
        finally:
            await cancel_and_wait(beat)
            await events.aclose()
            if not beat.cancelled():
                beat.result()

    async def _refresh_periodically(self, growing: _AnswerPreview) -> None:
        while True:
            await growing.show_update(self._timer.monotonic())
            await self._timer.sleep(UPDATE_INTERVAL)


class _AnswerPreview:
    """The preview of one input's answer."""

    def __init__(
        self, line: PlatformClient, previews: PreviewRegistry, route: Route, *, stream: bool
    ) -> None:
        self._line, self._previews, self._route, self._stream = line, previews, route, stream
        #: The message to reply to, in chats with several people.
        self.reply_to: str | None = None
        self._turn: TurnId | None = None
        self._text = ""
        self._shown = ""
        #: Texts of the turn that are stored, and thus delivered.
        self._stored_texts = 0
        self._typing_shown_at: float | None = None

    def apply_event(self, event: ConversationEvent | InputCompleted) -> None:
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
                    self._stored_texts += not is_blank(entry.text)
                    self._text = ""
            case _:
                pass

    async def show_update(self, now: float) -> None:
        """Show new text or the typing indicator, if the rate limit allows it now."""
        if self._turn is None:
            return
        if self._stream and not is_blank(self._text) and self._text != self._shown:
            await self._show_text(self._turn)
        elif self._typing_shown_at is None or now - self._typing_shown_at >= TYPING_DURATION:
            self._typing_shown_at = now
            await self._line.show_typing(self._route)

    async def _show_text(self, turn: TurnId) -> None:
        async with self._previews.get_lock(self._route.key):
            if not self._previews.can_show(self._route.key, turn, told=self._stored_texts):
                return
            text = self._text
            chunks = self._line.channel.render(
                OutboundMessage(text=text.rstrip() + CONTINUATION_MARK, reply_to=self.reply_to)
            )
            if not chunks or not self._line.rate_limiter.try_acquire(self._route):
                return
            try:
                tried = await self._publish_chunk(turn, chunks[0])
            except ChannelError as error:
                # The preview failed: from now on only the answer counts.
                log.info("preview_failed", chat=self._route.chat, error=str(error))
                self._stream, tried = False, True
            if tried:
                self._shown = text

    async def _publish_chunk(self, turn: TurnId, chunk: str) -> bool:
        """Show a chunk; return whether it was attempted."""
        route, key = self._route.key, f"preview:{turn}:{self._stored_texts}"
        place = PreviewTarget.EXISTING_MESSAGE
        if self._previews.get_message(route, turn) is None:
            place = await self._previews.reserve_target(route, turn, key)
        if place is PreviewTarget.NEW_MESSAGE:
            # The end of the answer cancels this: what was sent and is not recorded stays beside it.
            await shield_until_done(self._send_preview(turn, chunk, key), grace=_SEND_GRACE)
        elif (message := self._previews.get_message(route, turn)) is not None:
            await self._line.edit_message(self._route, message, chunk)
        return place is not PreviewTarget.UNAVAILABLE

    async def _send_preview(self, turn: TurnId, chunk: str, key: str) -> None:
        try:
            message = await self._line.send_chunk(self._route, chunk, key=key)
        except (NotSent, Throttled, NotDelivered):
            await self._previews.drop_unsent(self._route.key, turn)
            raise
        if message is None:
            # It can neither be edited nor found again: the answer will carry the repeat notice.
            self._stream = False
            return
        await self._previews.record_sent(self._route.key, turn, message)
