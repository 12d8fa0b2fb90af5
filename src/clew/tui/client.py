"""
A client of the protocol: calls are awaited, events are iterated, and a lost connection comes back.

::

    async with Client(websocket("ws://127.0.0.1:8420/api/ws", token=token)) as client:
        opened = await client.call(methods.OPEN, OpenParams(conversation="main"))
        async with client.follow(opened.conversation.id) as events:
            await client.submit("main", "hello")
            async for notice in events:
                show(notice)

After a loss the client connects again, with pauses that grow, attaches to what it had open and
subscribes after the last entry that it heard: whoever iterates notices nothing but a ``Resumed``.
"""

from __future__ import annotations

import asyncio
import random
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self, TypeVar
from uuid import uuid4

from pydantic import BaseModel

from clew.tui.transports import ConnectionLost, Refused
from clew.wire import methods
from clew.wire.caller import (
    ClientProtocol,
    EntryGapError,
    ErrorReceived,
    EventReceived,
    FrameError,
    ResultReceived,
    SubscriptionState,
)
from clew.wire.errors import CallFailed, ErrorCode, RpcError
from clew.wire.notices import AnyNotice, DeletedNotice, EndedNotice
from clew.wire.params import Attachment, Named, OpenParams, SubmitParams

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
    from types import TracebackType

    from clew.tui.transports import Connect, Connection
    from clew.wire.caller import PendingCall, ReceivedMessage
    from clew.wire.methods import RpcMethod
    from clew.wire.params import DoubleTextName, Params
    from clew.wire.results import Submitted

R = TypeVar("R", bound=BaseModel)

#: Seconds before the first try to connect again, and the longest pause between two.
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 2.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Resumed:
    """The connection was lost and is back: text that was provisional is void, the rest follows."""

    conversation: str


class Client:
    """
    One client, over as many connections as it takes.

    ``on_change`` is told whether it is connected, whenever that changes; ``None`` says that it is
    refused and gives up.
    """

    def __init__(
        self,
        connect: Connect,
        *,
        on_change: Callable[[bool | None], None] = lambda _: None,
    ) -> None:
        self._connect, self.on_change = connect, on_change
        self._caller = ClientProtocol()
        self._connection: Connection | None = None
        self._connected = asyncio.Event()
        self._refused: Refused | None = None
        self._answers: dict[PendingCall[Any], asyncio.Future[object]] = {}
        self._followed: dict[str, Followed] = {}
        #: Conversations that were opened, in order; they are opened again after a loss.
        self._opened: dict[str, None] = {}

    async def __aenter__(self) -> Self:
        self._task = asyncio.create_task(self._live(), name="rpc-client")
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._task.cancel()
        with suppress(asyncio.CancelledError):
            await self._task

    async def close_all(self, *, seconds: float) -> None:
        """Close what was opened, as a person who leaves does; not at any price."""
        closing = [self._close(conversation) for conversation in self._opened if self.connected]
        with suppress(TimeoutError):
            await asyncio.wait_for(asyncio.gather(*closing), seconds)

    async def _close(self, conversation: str) -> None:
        with suppress(CallFailed, Refused):  # it may have been deleted
            await self.call(methods.CLOSE, Named(conversation=conversation))

    @property
    def connected(self) -> bool:
        return self._connected.is_set()

    async def call(self, method: RpcMethod[Any, R], params: Params) -> R:
        """
        Call a method; waits for a connection if there is none.

        :raises CallFailed: if it comes to nothing; with ``Code.DISCONNECTED`` the connection was
            lost before the answer, and what was asked for may have happened
        :raises Refused: if the server does not let this client in
        """
        await self._until_connected()
        found = await self._ask(method, params)
        self._note(method, params, found)
        return found

    async def submit(
        self,
        conversation: str,
        text: str,
        *,
        double_text: DoubleTextName | None = None,
        attachments: Sequence[Attachment] | None = None,
    ) -> Submitted:
        """
        Hand a message in, once: it is sent again as often as connections are lost.

        :raises CallFailed: if it is refused
        """
        given: dict[str, Any] = {"session_id": conversation, "text": text, "key": uuid4().hex}
        if double_text is not None:
            given["double_text"] = double_text
        if attachments:
            given["attachments"] = list(attachments)
        params = SubmitParams(**given)
        while True:
            try:
                return await self.call(methods.SUBMIT, params)
            except CallFailed as error:
                if error.code not in (
                    ErrorCode.DISCONNECTED,
                    ErrorCode.UNAVAILABLE,
                    ErrorCode.STOPPING,
                ):
                    raise
                await asyncio.sleep(FIRST_PAUSE)

    @asynccontextmanager
    async def follow(
        self, conversation: str, *, after: int = 0, live: bool = True
    ) -> AsyncGenerator[Followed]:
        """
        The events of a conversation (its id) above an entry, for as long as the block lasts.

        Each entry comes once and in order, over all connections.
        """
        followed = Followed(SubscriptionState(conversation, after), live=live)
        self._followed[conversation] = followed
        try:
            if self.connected:
                # Else it is subscribed to with the next connection.
                await self._subscribe(followed)
            yield followed
        finally:
            if self._followed.get(conversation) is followed:
                del self._followed[conversation]
                await self._unsubscribe(conversation)

    # Connections

    async def _live(self) -> None:
        pause = FIRST_PAUSE
        while True:
            try:
                async with self._connect() as connection:
                    pause = FIRST_PAUSE
                    await self._serve(connection)
            except ConnectionLost:
                pass
            except Refused as error:
                self._refused = error
                self._connected.set()
                self.on_change(None)
                return
            await asyncio.sleep(pause * random.uniform(0.5, 1))
            pause = min(2 * pause, LONGEST_PAUSE)

    async def _serve(self, connection: Connection) -> None:
        self._connection = connection
        try:
            async with AsyncExitStack() as stack:
                back = asyncio.create_task(self._come_back(), name="rpc-resume")
                stack.push_async_callback(_cancelled, back)
                while True:
                    self._take(await connection.receive())
        finally:
            self._connection = None
            was, _ = self._connected.is_set(), self._connected.clear()
            for lost in self._caller.connection_lost():
                self._settle(lost)
            if was:
                self.on_change(False)

    async def _come_back(self) -> None:
        """Attach and subscribe again; then others may call."""
        for conversation in list(self._opened):
            with suppress(CallFailed):
                await self._ask(methods.OPEN, OpenParams(conversation=conversation))
        told: set[Followed] = set()
        # Others may begin to follow meanwhile.
        while pending := [each for each in self._followed.values() if each not in told]:
            told.update(pending)
            for followed in pending:
                followed.put(Resumed(conversation=followed.heard.conversation))
                await self._subscribe(followed)
        self._connected.set()
        self.on_change(True)

    async def _subscribe(self, followed: Followed) -> None:
        try:
            await self._ask(methods.SUBSCRIBE, followed.heard.subscribe_params(live=followed.live))
        except CallFailed as error:
            if error.code != ErrorCode.DISCONNECTED:
                followed.end(error)

    async def _unsubscribe(self, conversation: str) -> None:
        if self.connected:
            with suppress(CallFailed):
                await self._ask(methods.UNSUBSCRIBE, Named(conversation=conversation))

    async def _until_connected(self) -> None:
        await self._connected.wait()
        if self._refused is not None:
            raise self._refused

    async def _ask(self, method: RpcMethod[Any, R], params: Params) -> R:
        if self._connection is None:
            raise CallFailed(RpcError.from_code(ErrorCode.DISCONNECTED))
        call, frame = self._caller.call(method, params)
        answer = self._answers[call] = asyncio.get_running_loop().create_future()
        try:
            # A connection that fails now is noticed by whoever receives, and settles the call.
            with suppress(ConnectionLost):
                await self._connection.send(frame)
            return call.parse_result(await answer)
        finally:
            del self._answers[call]
            _disregard(answer)

    def _note(self, method: RpcMethod[Any, Any], params: Params, result: BaseModel) -> None:
        """Remember what is open, to be opened again."""
        told: Mapping[str, Any] = result.model_dump(include={"conversation"})
        if method in (methods.OPEN, methods.NEW, methods.RESUME):
            self._opened[told["conversation"]["id"]] = None
        elif method is methods.CLOSE:
            self._opened.pop(told["conversation"], None)

    # What arrives

    def _take(self, frame: str | bytes) -> None:
        try:
            arrived = self._caller.feed(frame)
        except FrameError as error:
            raise ConnectionLost(f"the server does not speak JSON-RPC: {error}") from error
        for each in arrived:
            if isinstance(each, EventReceived):
                self._tell(each.notice)
            else:
                self._settle(each)

    def _settle(self, arrived: ReceivedMessage) -> None:
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

    def _tell(self, notice: AnyNotice) -> None:
        followed = self._followed.get(notice.conversation)
        if followed is None:
            return
        try:
            new = followed.heard.accept_notice(notice)
        except EntryGapError as error:
            # Never seen; connecting again asks for what is missing.
            raise ConnectionLost(str(error)) from error
        if isinstance(notice, EndedNotice):
            raise ConnectionLost(notice.reason)
        if new:
            followed.put(notice)
        if isinstance(notice, DeletedNotice):
            followed.end(None)


class Followed:
    """The events of one conversation: iterate; ends when it is deleted."""

    def __init__(self, heard: SubscriptionState, *, live: bool) -> None:
        self.heard, self.live = heard, live
        self._queue: asyncio.Queue[AnyNotice | Resumed | None] = asyncio.Queue()
        self._error: CallFailed | None = None

    def put(self, told: AnyNotice | Resumed) -> None:
        self._queue.put_nowait(told)

    def end(self, error: CallFailed | None) -> None:
        """Nothing more comes; ``error`` is raised to whoever iterates."""
        self._error = error
        self._queue.put_nowait(None)

    def waiting(self) -> int:
        """How many events were received and not taken yet: who draws may take them together."""
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


def _disregard(answer: asyncio.Future[object]) -> None:
    """Let go of an answer: it may have failed while its caller was cancelled, or failed to send."""
    if not answer.cancel() and not answer.cancelled():
        answer.exception()  # asked for, so that it does not complain


async def _cancelled(task: asyncio.Task[None]) -> None:
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
