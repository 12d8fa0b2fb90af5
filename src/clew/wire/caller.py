"""
The client's side of the protocol, without I/O: calls and their answers, events and what was heard.

Whoever has a connection sends what ``Caller.call`` gives and hands in what arrives::

    caller = Caller()
    call, frame = caller.call(methods.OPEN, OpenParams(conversation="main"))
    connection.send(frame)
    for happened in caller.feed(connection.receive()):
        match happened:
            case Answered(call=one) if one is call: opened = call.read(happened.result)
            case Failed(call=one) if one is call: raise CallFailed(happened.error)
            case Happened(notice=notice): show(notice)

After the connection was lost, ``lost`` gives the calls that were not answered, and ``Heard`` knows
after which entry to subscribe.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from pydantic import BaseModel

from clew.wire import framing
from clew.wire.errors import Code, Error
from clew.wire.framing import Failure, FrameError, Request, Response
from clew.wire.notices import (
    AnyNotice,
    DeltaNotice,
    EntryNotice,
    SnapshotNotice,
    read_notice,
)
from clew.wire.params import Params, SubscribeParams

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clew.wire.methods import Method

R = TypeVar("R", bound=BaseModel)


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Call(Generic[R]):
    """A call that was made; two are never equal."""

    id: int
    method: Method[Any, R]
    params: Params

    def read(self, result: object) -> R:
        """:raises ValidationError: if the answer is of another kind than this program knows"""
        return self.method.result.model_validate(result, extra="ignore")


@dataclass(frozen=True, kw_only=True, slots=True)
class Answered:
    """A call has come to something."""

    call: Call[Any]
    result: object


@dataclass(frozen=True, kw_only=True, slots=True)
class Failed:
    """A call has come to nothing; without ``call`` the server could not read what we sent."""

    call: Call[Any] | None
    error: Error


@dataclass(frozen=True, kw_only=True, slots=True)
class Happened:
    """An event."""

    notice: AnyNotice


Arrived = Answered | Failed | Happened


class Caller:
    """The calls of one connection."""

    def __init__(self) -> None:
        self._ids = count(1)
        self._open: dict[int, Call[Any]] = {}

    def call(self, method: Method[Any, R], params: Params) -> tuple[Call[R], str]:
        """A call, and the frame to be sent."""
        call = Call(id=next(self._ids), method=method, params=params)
        self._open[call.id] = call
        given = params.model_dump(mode="json", exclude_unset=True)
        return call, framing.write(Request(id=call.id, method=method.name, params=given))

    def feed(self, frame: str | bytes) -> Sequence[Arrived]:
        """
        What a frame tells; nothing for what this program does not know.

        :raises FrameError: if it is no message
        """
        message = framing.parse(frame)
        match message:
            case Response(id=id_):
                call = self._answered(id_)
                return [] if call is None else [Answered(call=call, result=message.result)]
            case Failure(id=id_):
                return [Failed(call=self._answered(id_), error=message.error)]
            case Request(method=framing.EVENT):
                notice = read_notice(message.params)
                return [] if notice is None else [Happened(notice=notice)]
            case Request():
                return []

    def _answered(self, id_: framing.RequestId | None) -> Call[Any] | None:
        return self._open.pop(id_, None) if isinstance(id_, int) else None

    def lost(self) -> Sequence[Failed]:
        """The connection is gone: the calls that were not answered, in order."""
        left, self._open = self._open, {}
        error = Error.of(Code.DISCONNECTED)
        return [Failed(call=call, error=error) for call in left.values()]


@dataclass(slots=True)
class Heard:
    """What was heard of one conversation, over all connections: where to go on, what is new."""

    conversation: str
    #: The last entry that was told.
    seq: int = 0
    #: The text of the response that is being made, as told so far.
    text: str = field(default="")

    def subscription(self, *, live: bool = True) -> SubscribeParams:
        """The subscription that goes on from here; what was provisional comes again."""
        self.text = ""
        return SubscribeParams(conversation=self.conversation, after=self.seq, live=live)

    def is_new(self, notice: AnyNotice) -> bool:
        """
        Take note of an event; ``False`` if it is of another conversation, or was told before.

        :raises GapError: if entries in between were not told: subscribe again
        """
        if notice.conversation != self.conversation:
            return False
        match notice:
            case EntryNotice(seq=seq) if seq <= self.seq:
                return False
            case EntryNotice(seq=seq) if seq > self.seq + 1:
                raise GapError(self.conversation, last=self.seq, told=seq)
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


class GapError(Exception):
    """Entries are missing between what was told last and what is told now."""

    def __init__(self, conversation: str, *, last: int, told: int) -> None:
        super().__init__(f"{conversation}: entry {told} was told after {last}")
        self.conversation, self.last, self.told = conversation, last, told


__all__ = [
    "Answered",
    "Arrived",
    "Call",
    "Caller",
    "Failed",
    "FrameError",
    "GapError",
    "Happened",
    "Heard",
]
