"""Messages of a conversation as a client that keeps a copy of it has them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.record import Record

if TYPE_CHECKING:
    from clew.core.entry import Role
    from clew.core.ids import TurnId


class ClientToolCall(Record):
    """A tool call as a response requests it."""

    id: str
    tool: str
    #: JSON, unless the model wrote something else.
    args: str


class ClientMessage(Record):
    """One stored message: what a person wrote, a response, or the results of its calls."""

    seq: int
    #: Given by the client that sent it, or made from the turn and the response's number in it.
    id: str
    turn: TurnId | None
    role: Role
    text: str
    #: The number of responses of its turn that precede it.
    number: int
    calls: tuple[ClientToolCall, ...] = ()
    #: Call ids with the results that the model was sent.
    results: tuple[tuple[str, str], ...] = ()


def make_response_id(turn: TurnId, number: int) -> str:
    """Return the id of a turn's response, known before it is stored; ``number`` is from 0."""
    return f"msg_{turn.removeprefix('trn_')}_r{number}"


def make_result_id(call_id: str) -> str:
    """Return the id of the message with the result of a call."""
    return f"result_{call_id}"
