"""Replies in Anthropic's Messages format, made proper."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from clew.agent.tolerant.calls import Arguments, made_up_id
from clew.agent.tolerant.errors import find_error
from clew.agent.tolerant.finish import messages_reason
from clew.agent.tolerant.parts import dict_of, said_in, text_in
from clew.agent.tolerant.text import Mender
from clew.agent.tolerant.thinking import Said, ThinkingSplitter, lone_close
from clew.agent.tolerant.usage import LastUsage

if TYPE_CHECKING:
    from collections.abc import Iterator

    from clew.agent.tolerant.notes import Note
    from clew.agent.tolerant.reply import Habits

__all__ = ["MessagesReader"]

#: Blocks that the library knows besides text, thinking and calls.
_OTHERS = frozenset(
    {
        "redacted_thinking",
        "server_tool_use",
        "web_search_tool_result",
        "web_fetch_tool_result",
        "code_execution_tool_result",
        "bash_code_execution_tool_result",
        "text_editor_code_execution_tool_result",
        "tool_search_tool_result",
        "advisor_tool_result",
        "mcp_tool_use",
        "mcp_tool_result",
        "compaction",
    }
)
_DELTAS = {
    "text": "text_delta",
    "thinking": "thinking_delta",
    "partial_json": "input_json_delta",
    "signature": "signature_delta",
    "citation": "citations_delta",
}


@dataclass(slots=True)
class _Block:
    """A block that is open."""

    number: int
    kind: str
    #: The input of a call, where it came with its beginning.
    input: str = ""
    arguments: Arguments = field(default_factory=Arguments)
    mender: Mender = field(default_factory=Mender)


class MessagesReader:
    """Reads one reply, streamed or whole, as the events of a proper stream."""

    def __init__(self, note: Note, habits: Habits) -> None:
        self._note, self._habits = note, habits
        self._started = False
        self._usage = LastUsage(chat=False)
        self._reason: str | None = None
        self._stopped = False
        self._delta: dict[str, Any] = {}
        self._last: dict[str, Any] = {}
        self._count = 0
        #: By the server's index; ``None`` for a block that is left out.
        self._blocks: dict[object, _Block | None] = {}
        self._newest: _Block | None = None
        self._text = Mender()
        self._splitter = ThinkingSplitter(thinks_first=habits.thinks_first)
        #: The block of text, or of thinking found in text, that is told now.
        self._told: tuple[str, int] | None = None
        self._spoken = ""
        self._called = False

    @property
    def finished(self) -> bool:
        """Whether the reply said why it ended."""
        return self._reason is not None or self._stopped

    def passes(self, data: dict[str, Any]) -> bool:
        """Return whether an event may go on as it is; then it counts as read."""
        if data.get("type") != "content_block_delta" or "error" in data or self._told is None:
            return False
        match data:
            case {"index": int() as index, "delta": {"type": "text_delta", "text": str() as text}}:
                proper = self._told == ("text", index) and self._blocks.get(index) is not None
            case _:
                return False
        if not proper or not self._text.passes(text) or not self._splitter.passes(text):
            return False
        self._spoken += text
        self._reason = None
        return True

    def event(self, data: dict[str, Any], name: str | None = None) -> Iterator[dict[str, Any]]:
        """
        Yield the events that an event of the server leads to.

        :raises ReplyError: if it tells an error
        """
        if (error := find_error(data)) is not None:
            raise error
        kind = data.get("type") or name
        match kind:
            case "message_start":
                yield from self._start(dict_of(data.get("message")))
            case "content_block_start":
                yield from self._block_start(data)
            case "content_block_delta":
                yield from self._block_delta(data)
            case "content_block_stop":
                yield from self._block_stop(data.get("index"))
            case "message_delta":
                self._message_delta(data)
            case "message_stop":
                self._stopped = True
            case "message":
                yield from self.whole(data)
            case "ping":
                pass
            case _:
                self._note("event", str(kind))

    def end(self, *, done: bool) -> Iterator[dict[str, Any]]:
        """Yield the end of the stream, if the reply has ended (``done``: the server said so)."""
        if not self.finished and not done:
            return
        yield from self._begun()
        for block in [b for b in self._blocks.values() if b is not None]:
            yield from self._close(block)
        self._blocks.clear()
        yield from self._tell(self._splitter.feed(self._text.end()))
        yield from self._tell(self._splitter.end(called=self._called))
        yield from self._stop_told()
        reason = self._reason or ("tool_use" if self._called else "end_turn")
        delta = {"stop_sequence": None, **self._delta, "stop_reason": reason}
        usage = self._usage.value or {"output_tokens": 0}
        yield {**self._last, "type": "message_delta", "delta": delta, "usage": usage}
        yield {"type": "message_stop"}
        if lone_close(self._spoken) is not None:
            self._habits.thinks_first = True

    def whole(self, data: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """Yield the events of a reply that came as one object."""
        if (error := find_error(data)) is not None:
            raise error
        yield from self._start({**data, "content": []})
        content = data.get("content")
        blocks = cast("list[object]", content) if isinstance(content, list) else [content]
        for index, block in enumerate(blocks):
            if isinstance(block, str):
                block = {"type": "text", "text": block}
            start = {"index": index, "content_block": block}
            yield from self._block_start(start)
            yield from self._block_stop(index)
        self._message_delta({"delta": data, "usage": data.get("usage")})
        self._delta = {k: v for k, v in self._delta.items() if k in _ENDING}
        yield from self.end(done=self._reason is not None)

    def _start(self, message: dict[str, Any]) -> Iterator[dict[str, Any]]:
        if self._started:
            self._usage.take(message.get("usage"))
            return
        self._started = True
        self._usage.take(message.get("usage"))
        usage = {"input_tokens": 0, **(self._usage.value or {}), "output_tokens": 0}
        proper = {"id": made_up_id(), "model": "", **_without_none(message)}
        proper |= {"type": "message", "role": "assistant", "content": [], "usage": usage}
        proper |= {"stop_reason": None, "stop_sequence": None}
        yield {"type": "message_start", "message": proper}

    def _begun(self) -> Iterator[dict[str, Any]]:
        if not self._started:
            yield from self._start({})

    def _block_start(self, data: dict[str, Any]) -> Iterator[dict[str, Any]]:
        yield from self._begun()
        index, block = data.get("index"), dict_of(data.get("content_block"))
        kind = str(block.get("type") or ("text" if "text" in block else ""))
        if (before := self._blocks.pop(index, None)) is not None:
            # One index for all blocks: a new one ends the one before.
            yield from self._close(before)
        # More than the beginning of a block makes the end of the reply no end.
        self._reason = None
        match kind:
            case "text":
                self._blocks[index] = self._newest = _Block(-1, "text")
                for said in said_in(block.get("text"), self._note):
                    yield from self._say(said)
            case "thinking":
                yield from self._thinking_start(index, block)
            case "tool_use":
                yield from self._call_start(index, block)
            case _ if kind in _OTHERS:
                yield from self._stop_told()
                self._blocks[index] = self._newest = opened = self._open(kind)
                yield {**data, "type": "content_block_start", "index": opened.number}
            case _:
                self._blocks[index] = None
                if kind or data.get("content_block"):
                    self._note("content_block", kind or "?")

    def _thinking_start(self, index: object, block: dict[str, Any]) -> Iterator[dict[str, Any]]:
        yield from self._stop_told()
        self._blocks[index] = self._newest = opened = self._open("thinking")
        words = opened.mender.feed(text_in(block.get("thinking"), self._note))
        start = {**block, "type": "thinking", "thinking": words}
        start["signature"] = block.get("signature") or ""
        yield _begin(opened.number, start)

    def _call_start(self, index: object, block: dict[str, Any]) -> Iterator[dict[str, Any]]:
        yield from self._stop_told()
        self._called = True
        self._blocks[index] = self._newest = opened = self._open("tool_use")
        given = block.get("input")
        opened.input = given if isinstance(given, str) else json.dumps(given) if given else ""
        id_ = block.get("id")
        id_ = id_ if isinstance(id_, str) and id_ else made_up_id()
        yield _begin(opened.number, {**block, "type": "tool_use", "id": id_, "input": {}})

    def _block_delta(self, data: dict[str, Any]) -> Iterator[dict[str, Any]]:
        yield from self._begun()
        delta, index = dict_of(data.get("delta")), data.get("index")
        kind = delta.get("type") or next((v for k, v in _DELTAS.items() if k in delta), "")
        block = self._blocks.get(index, self._newest if index is None else None)
        if index in self._blocks and block is None:
            return
        self._reason = None
        match kind:
            case "text_delta":
                for said in said_in(delta.get("text"), self._note):
                    yield from self._say(said)
            case "thinking_delta":
                if block is None or block.kind != "thinking":
                    yield from self._thinking_start(index, {})
                    block = cast("_Block", self._blocks[index])
                words = block.mender.feed(text_in(delta.get("thinking"), self._note))
                yield _delta(block.number, {"type": kind, "thinking": words})
            case "input_json_delta" if block is not None:
                yield from self._input(block, delta.get("partial_json"))
            case "signature_delta" | "citations_delta" | "compaction_delta" if block is not None:
                number = self._told[1] if block.number < 0 and self._told else block.number
                if number >= 0:
                    yield _delta(number, delta)
            case _:
                self._note("delta", str(kind))

    def _input(self, block: _Block, given: object) -> Iterator[dict[str, Any]]:
        piece = given if isinstance(given, str) else json.dumps(given) if given else ""
        if piece := block.arguments.feed(piece):
            block.input = ""
            yield _delta(block.number, {"type": "input_json_delta", "partial_json": piece})

    def _block_stop(self, index: object) -> Iterator[dict[str, Any]]:
        if (block := self._blocks.pop(index, None)) is not None:
            yield from self._close(block)

    def _close(self, block: _Block) -> Iterator[dict[str, Any]]:
        """End a block; text goes on until another kind of block begins."""
        if block.number < 0:
            return
        if rest := block.mender.end():
            yield _delta(block.number, {"type": "thinking_delta", "thinking": rest})
        if block.input:
            yield from self._input(block, block.input)
        if rest := block.arguments.end():
            yield _delta(block.number, {"type": "input_json_delta", "partial_json": rest})
        yield {"type": "content_block_stop", "index": block.number}

    def _message_delta(self, data: dict[str, Any]) -> None:
        delta = dict_of(data.get("delta"))
        self._usage.take(data.get("usage") or delta.get("usage"))
        reason = messages_reason(delta.get("stop_reason") or delta.get("finish_reason"), self._note)
        self._reason = reason or self._reason
        self._delta |= {k: v for k, v in delta.items() if k in _ENDING and v is not None}
        rest = {k: v for k, v in data.items() if k not in ("type", "delta", "usage")}
        self._last |= _without_none(rest)

    def _say(self, said: Said) -> Iterator[dict[str, Any]]:
        if said.kind == "thinking":
            yield from self._tell([said])
        else:
            yield from self._tell(self._splitter.feed(self._text.feed(said.text)))

    def _tell(self, said: list[Said]) -> Iterator[dict[str, Any]]:
        for one in said:
            if self._told is None or self._told[0] != one.kind:
                yield from self._stop_told()
                self._told = (one.kind, self._open(one.kind).number)
                empty: dict[str, Any] = {"type": "text", "text": ""}
                if one.kind == "thinking":
                    empty = {"type": "thinking", "thinking": "", "signature": ""}
                yield _begin(self._told[1], empty)
            if one.kind == "text":
                self._spoken += one.text
            yield _delta(self._told[1], {"type": f"{one.kind}_delta", one.kind: one.text})

    def _stop_told(self) -> Iterator[dict[str, Any]]:
        if self._told is not None:
            yield {"type": "content_block_stop", "index": self._told[1]}
            self._told = None

    def _open(self, kind: str) -> _Block:
        self._count += 1
        return _Block(self._count - 1, kind)


_ENDING = frozenset({"stop_reason", "stop_sequence", "stop_details", "container"})


def _begin(index: int, block: dict[str, Any]) -> dict[str, Any]:
    return {"type": "content_block_start", "index": index, "content_block": block}


def _delta(index: int, delta: dict[str, Any]) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": index, "delta": delta}


def _without_none(fields: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in fields.items() if value is not None}
