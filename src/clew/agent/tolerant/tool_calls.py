"""Assembly of tool calls from pieces."""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from clew.agent.tolerant.content import dict_or_empty
from clew.agent.tolerant.surrogates import EscapeRepairer

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = [
    "ArgumentsBuffer",
    "StreamedCall",
    "ToolCallReader",
    "arguments_to_json",
    "generate_call_id",
]


def generate_call_id() -> str:
    """Return an id for a call that came without one."""
    return f"call_{uuid.uuid4().hex[:24]}"


def arguments_to_json(value: object) -> str:
    """Return the arguments of a call, in any form, as JSON text."""
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value)


class ArgumentsBuffer:
    """Buffer for the arguments of one call, in pieces that may repeat earlier ones."""

    def __init__(self) -> None:
        self.raw = ""
        self._repairer = EscapeRepairer()

    @property
    def is_complete(self) -> bool:
        """Return whether the arguments are a complete JSON object."""
        if not self.raw.rstrip().endswith("}"):
            return False
        try:
            return isinstance(json.loads(self.raw), dict)
        except ValueError:
            return False

    def feed_piece(self, piece: str) -> str:
        """Return the new part of a piece."""
        if self.raw and piece.startswith("{") and self.raw.startswith("{"):
            if piece.startswith(self.raw):
                # Cumulative pieces, or the whole sent once more.
                piece = piece[len(self.raw) :]
            elif self.is_complete:
                return ""
        self.raw += piece
        return self._repairer.feed_piece(piece)

    def flush_rest(self) -> str:
        """Return the rest at the end."""
        return self._repairer.flush_rest()


@dataclass(slots=True)
class StreamedCall:
    """A call as far as received."""

    number: int
    id: str
    #: The server's id, empty if it sent none.
    server_id: str
    name: str
    arguments: ArgumentsBuffer = field(default_factory=ArgumentsBuffer)
    #: The name was sent: it can no longer change.
    is_announced: bool = False


class ToolCallReader:
    """Reader of the calls in the deltas of one reply in the Chat format."""

    def __init__(self) -> None:
        self.calls: list[StreamedCall] = []
        self._by_index: dict[object, StreamedCall] = {}

    def read_deltas(self, given: object) -> Iterator[dict[str, Any]]:
        """Yield normalised deltas for the ``tool_calls`` of one delta."""
        items = cast("list[object]", given if isinstance(given, list) else [given])
        here: set[int] = set()
        for item in items:
            if not isinstance(item, dict):
                continue
            yield from self._read_item(cast("dict[str, Any]", item), here)

    def flush_calls(self) -> Iterator[dict[str, Any]]:
        """Yield the rest of the calls at the end of the reply."""
        for call in self.calls:
            rest = call.arguments.flush_rest()
            if rest or not call.is_announced:
                yield from _make_deltas(call, rest, {}, last=True)

    def _read_item(self, item: dict[str, Any], here: set[int]) -> Iterator[dict[str, Any]]:
        function = dict_or_empty(item.get("function")) or item
        name, piece = function.get("name"), arguments_to_json(function.get("arguments"))
        name = name if isinstance(name, str) else ""
        id_ = item.get("id")
        id_ = id_ if isinstance(id_, str) else ""
        call = self._find_or_add_call(item.get("index"), id_, name, piece, here)
        here.add(call.number)
        extra = {k: v for k, v in item.items() if k not in _STANDARD_FIELDS}
        yield from _make_deltas(call, call.arguments.feed_piece(piece), extra)

    def _find_or_add_call(
        self, index: object, id_: str, name: str, piece: str, here: set[int]
    ) -> StreamedCall:
        if index is None and id_:
            call = next((call for call in self.calls if call.server_id == id_), None)
        elif index is None:
            call = self.calls[-1] if self.calls else None
        else:
            call = self._by_index.get(index)
            if call is not None and id_ and id_ != call.server_id:
                # Some servers send index 0 for every call: the id identifies the call.
                call = next((c for c in self.calls if c.server_id == id_), call)
        if call is None or self._is_new_call(call, id_, name, piece, here):
            call = StreamedCall(len(self.calls), id_ or generate_call_id(), id_, name)
            self.calls.append(call)
        elif name and name != call.name and not call.is_announced:
            call.name = name if name.startswith(call.name) else call.name + name
        if index is not None:
            self._by_index[index] = call
        return call

    def _is_new_call(
        self, call: StreamedCall, id_: str, name: str, piece: str, here: set[int]
    ) -> bool:
        if not name:
            return False
        if id_ and id_ == call.server_id:
            return False
        if call.number in here:
            return True
        if name != call.name:
            return bool(id_ and call.server_id) or bool(call.arguments.raw)
        if not call.arguments.is_complete:
            return False
        return bool(id_ and call.server_id) or (bool(piece.strip()) and piece != call.arguments.raw)


_STANDARD_FIELDS = frozenset({"index", "id", "type", "function", "name", "arguments"})


def _make_deltas(
    call: StreamedCall, piece: str, extra: dict[str, Any], *, last: bool = False
) -> Iterator[dict[str, Any]]:
    function: dict[str, Any] = {"arguments": piece}
    if call.is_announced:
        if piece or extra:
            yield {**extra, "index": call.number, "function": function}
        return
    if not piece and not last and not extra:
        # The name may continue.
        return
    call.is_announced = True
    function["name"] = call.name
    yield {
        **extra,
        "index": call.number,
        "id": call.id,
        "type": "function",
        "function": function,
    }
