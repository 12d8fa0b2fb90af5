"""
Client side of the protocol, without I/O: calls, their results, and events.

The owner of a connection sends the frames of ``ClientProtocol.call`` and feeds in what it
receives::

    protocol = ClientProtocol()
    call, frame = protocol.call(methods.OPEN, OpenParams(conversation="main"))
    connection.send(frame)
    for received in protocol.feed(connection.receive()):
        match received:
            case ResultReceived(call=one) if one is call:
                opened = call.parse_result(received.result)
            case ErrorReceived(call=one) if one is call:
                raise CallFailed(received.error)
            case EventReceived(notice=notice):
                show(notice)

When the connection is lost, ``connection_lost`` returns the unanswered calls, and
``SubscriptionState`` knows the entry after which to subscribe.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from pydantic import BaseModel

from clew.record import Record
from clew.wire import framing
from clew.wire.errors import ErrorCode, RpcError
from clew.wire.event_models import (
    AnyNotice,
    DeltaNotice,
    EntryNotice,
    SnapshotNotice,
    parse_notice,
)
from clew.wire.framing import FrameError, RpcErrorResponse, RpcRequest, RpcResponse
from clew.wire.params import Params, SubscribeParams

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clew.wire.methods import RpcMethod

R = TypeVar("R", bound=BaseModel)


class PendingCall(Record, Generic[R], eq=False):
    """A call that was made; two are never equal."""

    id: int
    method: RpcMethod[Any, R]
    params: Params

    def parse_result(self, result: object) -> R:
        """
        Parse the result of the call.

        :raises ValidationError: if this program does not know its type
        """
        return self.method.result.model_validate(result, extra="ignore")


class ResultReceived(Record):
    """The result of a call."""

    call: PendingCall[Any]
    result: object


class ErrorReceived(Record):
    """The error of a call; without ``call`` the server could not parse what was sent."""

    call: PendingCall[Any] | None
    error: RpcError


class EventReceived(Record):
    """An event."""

    notice: AnyNotice


ReceivedMessage = ResultReceived | ErrorReceived | EventReceived


class ClientProtocol:
    """The calls of one connection."""

    def __init__(self) -> None:
        self._ids = count(1)
        self._pending: dict[int, PendingCall[Any]] = {}

    def call(self, method: RpcMethod[Any, R], params: Params) -> tuple[PendingCall[R], str]:
        """Return a new call, and the frame to send."""
        call = PendingCall(id=next(self._ids), method=method, params=params)
        self._pending[call.id] = call
        given = params.model_dump(mode="json", exclude_unset=True)
        return call, framing.write_message(RpcRequest(id=call.id, method=method.name, params=given))

    def feed(self, frame: str | bytes) -> Sequence[ReceivedMessage]:
        """
        Parse a frame; return nothing for what this program does not know.

        :raises FrameError: if it is not a message
        """
        message = framing.parse_frame(frame)
        match message:
            case RpcResponse(id=id_):
                call = self._pop_call(id_)
                return [] if call is None else [ResultReceived(call=call, result=message.result)]
            case RpcErrorResponse(id=id_):
                return [ErrorReceived(call=self._pop_call(id_), error=message.error)]
            case RpcRequest(method=framing.EVENT_METHOD):
                notice = parse_notice(message.params)
                return [] if notice is None else [EventReceived(notice=notice)]
            case RpcRequest():
                return []

    def _pop_call(self, id_: framing.RequestId | None) -> PendingCall[Any] | None:
        return self._pending.pop(id_, None) if isinstance(id_, int) else None

    def connection_lost(self) -> Sequence[ErrorReceived]:
        """Return an error for each unanswered call, in order: the connection is lost."""
        left, self._pending = self._pending, {}
        error = RpcError.from_code(ErrorCode.DISCONNECTED)
        return [ErrorReceived(call=call, error=error) for call in left.values()]


@dataclass(slots=True)
class SubscriptionState:
    """The position in one conversation's events, across all connections."""

    conversation: str
    #: The last entry received.
    seq: int = 0
    #: The text of the current response, as far as received.
    text: str = field(default="")

    def subscribe_params(self, *, live: bool = True) -> SubscribeParams:
        """Return the subscription that continues here; provisional text is sent again."""
        self.text = ""
        return SubscribeParams(conversation=self.conversation, after=self.seq, live=live)

    def accept_notice(self, notice: AnyNotice) -> bool:
        """
        Record an event; return False if it belongs to another conversation or is a repeat.

        :raises GapError: if entries are missing before it: subscribe again
        """
        if notice.conversation != self.conversation:
            return False
        match notice:
            case EntryNotice(seq=seq) if seq <= self.seq:
                return False
            case EntryNotice(seq=seq) if seq > self.seq + 1:
                raise EntryGapError(self.conversation, last=self.seq, told=seq)
            case EntryNotice(seq=seq):
                self.seq, self.text = seq, ""
            case SnapshotNotice(text=text):
                self.text = text
            case DeltaNotice(kind="text", text=text):
                self.text += text
            case DeltaNotice():
                pass
            case _ if notice.type in ("retracted", "turn_closed"):
                self.text = ""
            case _:
                pass
        return True


class EntryGapError(Exception):
    """Entries are missing between the last one received and this one."""

    def __init__(self, conversation: str, *, last: int, told: int) -> None:
        super().__init__(f"{conversation}: entry {told} was told after {last}")
        self.conversation, self.last, self.received = conversation, last, told


__all__ = [
    "ClientProtocol",
    "EntryGapError",
    "ErrorReceived",
    "EventReceived",
    "FrameError",
    "PendingCall",
    "ReceivedMessage",
    "ResultReceived",
    "SubscriptionState",
]
