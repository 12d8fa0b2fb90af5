"""Tool calls in pieces: which piece belongs to which call, and what of it is new."""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from clew.agent.tolerant.parts import dict_of
from clew.agent.tolerant.text import EscapeMender

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Arguments", "Call", "CallReader", "arguments_text", "made_up_id"]


def made_up_id() -> str:
    """Return an id for a call that came without one."""
    return f"call_{uuid.uuid4().hex[:24]}"


def arguments_text(value: object) -> str:
    """Return the arguments of a call as JSON text, whatever they came as."""
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value)


class Arguments:
    """The arguments of one call, in pieces that may repeat what came before."""

    def __init__(self) -> None:
        self.raw = ""
        self._mender = EscapeMender()

    @property
    def complete(self) -> bool:
        """Whether they are a whole JSON object."""
        if not self.raw.rstrip().endswith("}"):
            return False
        try:
            return isinstance(json.loads(self.raw), dict)
        except ValueError:
            return False

    def feed(self, piece: str) -> str:
        """Return what of a piece is new."""
        if self.raw and piece.startswith("{") and self.raw.startswith("{"):
            if piece.startswith(self.raw):
                # Told from the beginning each time, or once more as a whole.
                piece = piece[len(self.raw) :]
            elif self.complete:
                return ""
        self.raw += piece
        return self._mender.feed(piece)

    def end(self) -> str:
        """Return what is left at the end."""
        return self._mender.end()


@dataclass(slots=True)
class Call:
    """A call as far as it came."""

    number: int
    id: str
    #: The id that the server gave, if it did.
    given: str
    name: str
    arguments: Arguments = field(default_factory=Arguments)
    #: Its name was told: it can change no more.
    told: bool = False


class CallReader:
    """Reads the calls of the Chat format from the deltas of one reply."""

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self._at: dict[object, Call] = {}

    def read(self, given: object) -> Iterator[dict[str, Any]]:
        """Yield proper deltas for the ``tool_calls`` of one delta."""
        items = cast("list[object]", given if isinstance(given, list) else [given])
        here: set[int] = set()
        for item in items:
            if not isinstance(item, dict):
                continue
            yield from self._item(cast("dict[str, Any]", item), here)

    def end(self) -> Iterator[dict[str, Any]]:
        """Yield what is left of the calls at the end of the reply."""
        for call in self.calls:
            rest = call.arguments.end()
            if rest or not call.told:
                yield from _deltas(call, rest, {}, last=True)

    def _item(self, item: dict[str, Any], here: set[int]) -> Iterator[dict[str, Any]]:
        function = dict_of(item.get("function")) or item
        name, piece = function.get("name"), arguments_text(function.get("arguments"))
        name = name if isinstance(name, str) else ""
        id_ = item.get("id")
        id_ = id_ if isinstance(id_, str) else ""
        call = self._call(item.get("index"), id_, name, piece, here)
        here.add(call.number)
        extra = {k: v for k, v in item.items() if k not in _OWN}
        yield from _deltas(call, call.arguments.feed(piece), extra)

    def _call(self, index: object, id_: str, name: str, piece: str, here: set[int]) -> Call:
        if index is None and id_:
            call = next((call for call in self.calls if call.given == id_), None)
        elif index is None:
            call = self.calls[-1] if self.calls else None
        else:
            call = self._at.get(index)
            if call is not None and id_ and id_ != call.given:
                # An index that stays at 0 while calls go by: the id says which one is meant.
                call = next((c for c in self.calls if c.given == id_), call)
        if call is None or self._is_another(call, id_, name, piece, here):
            call = Call(len(self.calls), id_ or made_up_id(), id_, name)
            self.calls.append(call)
        elif name and name != call.name and not call.told:
            call.name = name if name.startswith(call.name) else call.name + name
        if index is not None:
            self._at[index] = call
        return call

    def _is_another(self, call: Call, id_: str, name: str, piece: str, here: set[int]) -> bool:
        if not name:
            return False
        if id_ and id_ == call.given:
            return False
        if call.number in here:
            return True
        if name != call.name:
            return bool(id_ and call.given) or bool(call.arguments.raw)
        if not call.arguments.complete:
            return False
        return bool(id_ and call.given) or (bool(piece.strip()) and piece != call.arguments.raw)


_OWN = frozenset({"index", "id", "type", "function", "name", "arguments"})


def _deltas(
    call: Call, piece: str, extra: dict[str, Any], *, last: bool = False
) -> Iterator[dict[str, Any]]:
    function: dict[str, Any] = {"arguments": piece}
    if call.told:
        if piece or extra:
            yield {**extra, "index": call.number, "function": function}
        return
    if not piece and not last and not extra:
        # Its name may go on.
        return
    call.told = True
    function["name"] = call.name
    yield {
        **extra,
        "index": call.number,
        "id": call.id,
        "type": "function",
        "function": function,
    }
