"""
Client of the protocol: awaits calls, iterates events and reconnects automatically.

::

    async with RpcClient(websocket("ws://127.0.0.1:8420/api/ws", token=token)) as client:
        opened = await client.call(methods.OPEN, OpenParams(conversation="main"))
        async with client.follow(opened.conversation.id) as events:
            await client.submit("main", "hello")
            async for notice in events:
                show(notice)

After a loss the client reconnects with growing pauses, reopens its conversations and
subscribes after the last entry that it received: iteration continues, with a ``Resumed``
event in between.
"""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any, Self, TypeVar
from uuid import uuid4

from pydantic import BaseModel

from clew.background import cancel_and_wait
from clew.backoff import add_jitter
from clew.record import Record
from clew.tui.transports import ConnectionLost, ConnectionRefused
from clew.wire import methods
from clew.wire.client_protocol import (
    ClientProtocol,
    EntryGapError,
    ErrorReceived,
    EventReceived,
    FrameError,
    ResultReceived,
    SubscriptionState,
)
from clew.wire.errors import CallFailed, ErrorCode, RpcError
from clew.wire.event_models import AnyNotice, DeletedNotice, EndedNotice
from clew.wire.params import Attachment, Named, OpenParams, ResultParams, SubmitParams

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
    from types import TracebackType

    from clew.tui.transports import Connect, FrameConnection
    from clew.wire.client_protocol import PendingCall, ReceivedMessage
    from clew.wire.methods import RpcMethod
    from clew.wire.params import DoubleTextName, Params
    from clew.wire.results import InputResult, Submitted

R = TypeVar("R", bound=BaseModel)

#: Seconds before the first try to connect again, and the longest pause between two.
MIN_PAUSE, MAX_PAUSE = 0.1, 2.0

#: Errors after which a call that may be made twice is made again.
_REPEATED = (ErrorCode.DISCONNECTED, ErrorCode.UNAVAILABLE, ErrorCode.STOPPING)


class Resumed(Record):
    """Restored connection: provisional text is void, missed events follow."""

    conversation: str


class RpcClient:
    """
    Protocol client that survives connection losses.

    ``on_change`` receives whether the client is connected, on each change; ``None`` means
    that the server refused it and that it has given up.
    """

    def __init__(
        self,
        connect: Connect,
        *,
        on_change: Callable[[bool | None], None] = lambda _: None,
    ) -> None:
        self._connect, self.on_change = connect, on_change
        self._caller = ClientProtocol()
        self._connection: FrameConnection | None = None
        self._sending = asyncio.Lock()
        self._connected = asyncio.Event()
        self._refused: ConnectionRefused | None = None
        self._answers: dict[PendingCall[Any], asyncio.Future[object]] = {}
        self._followed: dict[str, EventSubscription] = {}
        #: Opened conversations, in order; they are reopened after a loss.
        self._opened: dict[str, None] = {}

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self._keep_connected(), name="rpc-client")
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await _cancel_task(self._task)

    async def close_conversations(self, *, seconds: float) -> None:
        """Close the opened conversations, within ``seconds``."""
        closing = [
            self._close_conversation(conversation)
            for conversation in self._opened
            if self.is_connected
        ]
        with suppress(TimeoutError):
            await asyncio.wait_for(asyncio.gather(*closing), seconds)

    async def _close_conversation(self, conversation: str) -> None:
        with suppress(CallFailed, ConnectionRefused):  # it may have been deleted
            await self.call(methods.CLOSE, Named(conversation=conversation))

    @property
    def is_connected(self) -> bool:
        return self._connected.is_set()

    async def call(self, method: RpcMethod[Any, R], params: Params) -> R:
        """
        Call a method; waits for a connection if there is none.

        :raises CallFailed: if the call fails; with ``Code.DISCONNECTED`` the connection was
            lost before the answer, and the call may have taken effect
        :raises ConnectionRefused: if the server refuses this client
        """
        await self._wait_connected()
        found = await self._send_request(method, params)
        self._track_opened(method, params, found)
        return found

    async def submit(
        self,
        conversation: str,
        text: str,
        *,
        double_text: DoubleTextName | None = None,
        attachments: Sequence[Attachment] | None = None,
        key: str | None = None,
    ) -> Submitted:
        """
        Submit a message exactly once, resending it after connection losses.

        A message with the ``key`` of an earlier one stands for that one.

        :raises CallFailed: if the server rejects it
        """
        given: dict[str, Any] = {
            "session_id": conversation,
            "text": text,
            "key": key or uuid4().hex,
        }
        if double_text is not None:
            given["double_text"] = double_text
        if attachments:
            given["attachments"] = list(attachments)
        return await self._call_until_answered(methods.SUBMIT, SubmitParams(**given))

    async def await_result(self, inbox_id: str) -> InputResult:
        """
        Wait for the outcome of a message, across connection losses.

        :raises CallFailed: if there is no such message
        """
        return await self._call_until_answered(methods.RESULT, ResultParams(inbox_id=inbox_id))

    async def _call_until_answered(self, method: RpcMethod[Any, R], params: Params) -> R:
        """Call a method that may be called twice, until the server answers."""
        while True:
            try:
                return await self.call(method, params)
            except CallFailed as error:
                if error.code not in _REPEATED:
                    raise
                await asyncio.sleep(MIN_PAUSE)

    @asynccontextmanager
    async def follow(
        self, conversation: str, *, after: int = 0, live: bool = True
    ) -> AsyncGenerator[EventSubscription]:
        """
        Subscribe to a conversation's events (by its id) while the block lasts.

        Each entry after ``after`` arrives once and in order, across all connections.
        """
        followed = EventSubscription(SubscriptionState(conversation, after), live=live)
        self._followed[conversation] = followed
        try:
            if self.is_connected:
                # Otherwise the next connection subscribes to it.
                await self._subscribe_events(followed)
            yield followed
        finally:
            if self._followed.get(conversation) is followed:
                del self._followed[conversation]
                await self._unsubscribe_events(conversation)

    # Connections

    async def _keep_connected(self) -> None:
        pause = MIN_PAUSE
        while True:
            try:
                async with self._connect() as connection:
                    pause = MIN_PAUSE
                    await self._serve_connection(connection)
            except ConnectionLost:
                pass
            except ConnectionRefused as error:
                self._refused = error
                self._connected.set()
                self.on_change(None)
                return
            await asyncio.sleep(add_jitter(pause))
            pause = min(2 * pause, MAX_PAUSE)

    async def _serve_connection(self, connection: FrameConnection) -> None:
        self._connection, self._sending = connection, asyncio.Lock()
        try:
            async with AsyncExitStack() as stack:
                back = asyncio.create_task(self._restore_state(), name="rpc-resume")
                stack.push_async_callback(_cancel_task, back)
                while True:
                    self._handle_frame(await connection.receive())
        finally:
            self._connection = None
            was, _ = self._connected.is_set(), self._connected.clear()
            for lost in self._caller.connection_lost():
                self._resolve_call(lost)
            if was:
                self.on_change(False)

    async def _restore_state(self) -> None:
        """Reopen conversations and resubscribe, before other calls are let through."""
        for conversation in list(self._opened):
            with suppress(CallFailed):
                await self._send_request(methods.OPEN, OpenParams(conversation=conversation))
        told: set[EventSubscription] = set()
        # Further subscriptions may be added meanwhile.
        while pending := [each for each in self._followed.values() if each not in told]:
            told.update(pending)
            for followed in pending:
                followed.put_event(Resumed(conversation=followed.heard.conversation))
                await self._subscribe_events(followed)
        self._connected.set()
        self.on_change(True)

    async def _subscribe_events(self, followed: EventSubscription) -> None:
        try:
            await self._send_request(
                methods.SUBSCRIBE, followed.heard.subscribe_params(live=followed.live)
            )
        except CallFailed as error:
            if error.code != ErrorCode.DISCONNECTED:
                followed.finish(error)

    async def _unsubscribe_events(self, conversation: str) -> None:
        if self.is_connected:
            with suppress(CallFailed):
                await self._send_request(methods.UNSUBSCRIBE, Named(conversation=conversation))

    async def _wait_connected(self) -> None:
        await self._connected.wait()
        if self._refused is not None:
            raise self._refused

    async def _send_request(self, method: RpcMethod[Any, R], params: Params) -> R:
        if (connection := self._connection) is None:
            raise CallFailed(RpcError.from_code(ErrorCode.DISCONNECTED))
        call, frame = self._caller.call(method, params)
        answer = self._answers[call] = asyncio.get_running_loop().create_future()
        try:
            # If the connection fails, the receiving task notices and fails the call.
            with suppress(ConnectionLost):
                await self._send_frame(connection, frame)
            return call.parse_result(await answer)
        finally:
            del self._answers[call]
            _discard_answer(answer)

    async def _send_frame(self, connection: FrameConnection, frame: str) -> None:
        # One after the other: the end of a subscription must not come after the next one.
        async with self._sending:
            if connection is self._connection:
                await connection.send(frame)

    def _track_opened(self, method: RpcMethod[Any, Any], params: Params, result: BaseModel) -> None:
        """Track opened conversations, to reopen them after a loss."""
        told: Mapping[str, Any] = result.model_dump(include={"conversation"})
        if method in (methods.OPEN, methods.NEW, methods.RESUME):
            self._opened[told["conversation"]["id"]] = None
        elif method is methods.CLOSE:
            self._opened.pop(told["conversation"], None)

    # Incoming frames

    def _handle_frame(self, frame: str | bytes) -> None:
        try:
            arrived = self._caller.feed(frame)
        except FrameError as error:
            raise ConnectionLost(f"the server does not speak JSON-RPC: {error}") from error
        for each in arrived:
            if isinstance(each, EventReceived):
                self._deliver_event(each.notice)
            else:
                self._resolve_call(each)

    def _resolve_call(self, arrived: ReceivedMessage) -> None:
        match arrived:
            case ResultReceived(call=call) if answer := self._answers.get(call):
                if not answer.done():
                    answer.set_result(arrived.result)
            case ErrorReceived(call=call) if call is not None and (
                answer := self._answers.get(call)
            ):
                if not answer.done():
                    answer.set_exception(CallFailed(arrived.error))
            case _:
                pass

    def _deliver_event(self, notice: AnyNotice) -> None:
        followed = self._followed.get(notice.conversation)
        if followed is None:
            return
        try:
            new = followed.heard.accept_notice(notice)
        except EntryGapError as error:
            # Never observed; reconnecting requests the missing entries.
            raise ConnectionLost(str(error)) from error
        if isinstance(notice, EndedNotice):
            raise ConnectionLost(notice.reason)
        if new:
            followed.put_event(notice)
        if isinstance(notice, DeletedNotice):
            followed.finish(None)


class EventSubscription:
    """Events of one conversation; iteration ends when it is deleted."""

    def __init__(self, heard: SubscriptionState, *, live: bool) -> None:
        self.heard, self.live = heard, live
        self._queue: asyncio.Queue[AnyNotice | Resumed | None] = asyncio.Queue()
        self._error: CallFailed | None = None

    def put_event(self, told: AnyNotice | Resumed) -> None:
        self._queue.put_nowait(told)

    def finish(self, error: CallFailed | None) -> None:
        """End the iteration; ``error`` is raised to the iterating caller."""
        self._error = error
        self._queue.put_nowait(None)

    def pending_count(self) -> int:
        """Return the number of received events that are not taken yet, for batching."""
        return self._queue.qsize()

    def __aiter__(self) -> AsyncIterator[AnyNotice | Resumed]:
        return self

    async def __anext__(self) -> AnyNotice | Resumed:
        told = await self._queue.get()
        if told is not None:
            return told
        self._queue.put_nowait(None)
        if self._error is not None:
            raise self._error
        raise StopAsyncIteration


def _discard_answer(answer: asyncio.Future[object]) -> None:
    """Discard an answer whose caller is gone, so that asyncio does not report it."""
    if not answer.cancel() and not answer.cancelled():
        answer.exception()  # asked for, so that it does not complain


async def _cancel_task(task: asyncio.Task[None]) -> None:
    """Cancel a task and wait for its end; raise its error, or the cancellation of the waiter."""
    await cancel_and_wait(task)
    if not task.cancelled():
        task.result()
