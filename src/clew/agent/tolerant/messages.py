"""Normalisation of replies in Anthropic's Messages format."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from clew.agent.tolerant.content import dict_or_empty, extract_all_text, extract_segments
from clew.agent.tolerant.errors import find_error
from clew.agent.tolerant.finish_reasons import to_messages_reason
from clew.agent.tolerant.surrogates import TextRepairer
from clew.agent.tolerant.thinking import ContentSegment, ThinkingSplitter, find_lone_close
from clew.agent.tolerant.tool_calls import ArgumentsBuffer, generate_call_id
from clew.agent.tolerant.usage import UsageTracker

if TYPE_CHECKING:
    from collections.abc import Iterator

    from clew.agent.tolerant.reader import ServerQuirks
    from clew.agent.tolerant.unknowns import UnknownReporter

__all__ = ["MessagesReader"]

#: Other blocks that the library knows, apart from text, thinking and calls.
_OTHER_BLOCKS = frozenset(
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
_DELTA_TYPES = {
    "text": "text_delta",
    "thinking": "thinking_delta",
    "partial_json": "input_json_delta",
    "signature": "signature_delta",
    "citation": "citations_delta",
}


@dataclass(slots=True)
class _OpenBlock:
    """Open block; ``number`` is negative for text, which is emitted in blocks of its own."""

    number: int
    kind: str
    #: The input of a call, if it came with the start of the block.
    input: str = ""
    arguments: ArgumentsBuffer = field(default_factory=ArgumentsBuffer)
    repairer: TextRepairer = field(default_factory=TextRepairer)


class MessagesReader:
    """Reader of one reply, streamed or whole, as the events of a valid stream."""

    def __init__(self, note: UnknownReporter, habits: ServerQuirks) -> None:
        self._note, self._quirks = note, habits
        self._started = False
        self._usage = UsageTracker(chat=False)
        self._reason: str | None = None
        self._stopped = False
        self._end_delta: dict[str, Any] = {}
        self._end_fields: dict[str, Any] = {}
        self._block_count = 0
        #: By the server's index; ``None`` for a dropped block.
        self._blocks: dict[object, _OpenBlock | None] = {}
        self._newest: _OpenBlock | None = None
        self._text = TextRepairer()
        self._splitter = ThinkingSplitter(thinks_first=habits.thinks_first)
        #: Kind and number of the text or thinking block in the output.
        self._output_block: tuple[str, int] | None = None
        self._emitted_text = ""
        self._has_calls = False

    @property
    def is_finished(self) -> bool:
        """Return whether the reply gave its stop reason."""
        return self._reason is not None or self._stopped

    def try_pass_through(self, data: dict[str, Any]) -> bool:
        """Return whether an event may pass unchanged; it then counts as read."""
        if (
            data.get("type") != "content_block_delta"
            or "error" in data
            or self._output_block is None
        ):
            return False
        match data:
            case {"index": int() as index, "delta": {"type": "text_delta", "text": str() as text}}:
                proper = (
                    self._output_block == ("text", index) and self._blocks.get(index) is not None
                )
            case _:
                return False
        if (
            not proper
            or not self._text.needs_no_repair(text)
            or not self._splitter.try_pass_through(text)
        ):
            return False
        self._emitted_text += text
        self._reason = None
        return True

    def read_event(self, data: dict[str, Any], name: str | None = None) -> Iterator[dict[str, Any]]:
        """
        Yield the events for an event of the server.

        :raises ReplyError: if it contains an error
        """
        if (error := find_error(data)) is not None:
            raise error
        kind = data.get("type") or name
        match kind:
            case "message_start":
                yield from self._start_message(dict_or_empty(data.get("message")))
            case "content_block_start":
                yield from self._start_block(data)
            case "content_block_delta":
                yield from self._read_block_delta(data)
            case "content_block_stop":
                yield from self._stop_block(data.get("index"))
            case "message_delta":
                self._read_message_delta(data)
            case "message_stop":
                self._stopped = True
            case "message":
                yield from self.read_whole(data)
            case "ping":
                pass
            case _:
                self._note("event", str(kind))

    def finish_stream(self, *, done: bool) -> Iterator[dict[str, Any]]:
        """Yield the end of the stream if the reply has ended (``done``: the server said so)."""
        if not self.is_finished and not done:
            return
        yield from self._ensure_started()
        for block in [b for b in self._blocks.values() if b is not None]:
            yield from self._close_block(block)
        self._blocks.clear()
        yield from self._emit_content(self._splitter.feed_piece(self._text.flush_rest()))
        yield from self._emit_content(self._splitter.flush_rest(called=self._has_calls))
        yield from self._stop_output_block()
        reason = self._reason or ("tool_use" if self._has_calls else "end_turn")
        delta = {"stop_sequence": None, **self._end_delta, "stop_reason": reason}
        usage = self._usage.value or {"output_tokens": 0}
        yield {**self._end_fields, "type": "message_delta", "delta": delta, "usage": usage}
        yield {"type": "message_stop"}
        if find_lone_close(self._emitted_text) is not None:
            self._quirks.thinks_first = True

    def read_whole(self, data: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """Yield the events for a reply that came as one object."""
        if (error := find_error(data)) is not None:
            raise error
        yield from self._start_message({**data, "content": []})
        content = data.get("content")
        blocks = cast("list[object]", content) if isinstance(content, list) else [content]
        for index, block in enumerate(blocks):
            if isinstance(block, str):
                block = {"type": "text", "text": block}
            start = {"index": index, "content_block": block}
            yield from self._start_block(start)
            yield from self._stop_block(index)
        self._read_message_delta({"delta": data, "usage": data.get("usage")})
        self._end_delta = {k: v for k, v in self._end_delta.items() if k in _STOP_FIELDS}
        yield from self.finish_stream(done=self._reason is not None)

    def _start_message(self, message: dict[str, Any]) -> Iterator[dict[str, Any]]:
        if self._started:
            self._usage.record_usage(message.get("usage"))
            return
        self._started = True
        self._usage.record_usage(message.get("usage"))
        usage = {"input_tokens": 0, **(self._usage.value or {}), "output_tokens": 0}
        proper = {"id": generate_call_id(), "model": "", **_drop_none(message)}
        proper |= {"type": "message", "role": "assistant", "content": [], "usage": usage}
        proper |= {"stop_reason": None, "stop_sequence": None}
        yield {"type": "message_start", "message": proper}

    def _ensure_started(self) -> Iterator[dict[str, Any]]:
        if not self._started:
            yield from self._start_message({})

    def _start_block(self, data: dict[str, Any]) -> Iterator[dict[str, Any]]:
        yield from self._ensure_started()
        index, block = data.get("index"), dict_or_empty(data.get("content_block"))
        kind = str(block.get("type") or ("text" if "text" in block else ""))
        if (before := self._blocks.pop(index, None)) is not None:
            # One index for all blocks: a new block ends the previous one.
            yield from self._close_block(before)
        # A new block after the stop reason: the reply had not ended.
        self._reason = None
        match kind:
            case "text":
                self._blocks[index] = self._newest = _OpenBlock(-1, "text")
                for said in extract_segments(block.get("text"), self._note):
                    yield from self._emit_piece(said)
            case "thinking":
                yield from self._start_thinking(index, block)
            case "tool_use":
                yield from self._start_call(index, block)
            case _ if kind in _OTHER_BLOCKS:
                yield from self._stop_output_block()
                self._blocks[index] = self._newest = opened = self._open_block(kind)
                yield {**data, "type": "content_block_start", "index": opened.number}
            case _:
                self._blocks[index] = None
                if kind or data.get("content_block"):
                    self._note("content_block", kind or "?")

    def _start_thinking(self, index: object, block: dict[str, Any]) -> Iterator[dict[str, Any]]:
        yield from self._stop_output_block()
        self._blocks[index] = self._newest = opened = self._open_block("thinking")
        words = opened.repairer.feed_piece(extract_all_text(block.get("thinking"), self._note))
        start = {**block, "type": "thinking", "thinking": words}
        start["signature"] = block.get("signature") or ""
        yield _make_block_start(opened.number, start)

    def _start_call(self, index: object, block: dict[str, Any]) -> Iterator[dict[str, Any]]:
        yield from self._stop_output_block()
        self._has_calls = True
        self._blocks[index] = self._newest = opened = self._open_block("tool_use")
        given = block.get("input")
        opened.input = given if isinstance(given, str) else json.dumps(given) if given else ""
        id_ = block.get("id")
        id_ = id_ if isinstance(id_, str) and id_ else generate_call_id()
        yield _make_block_start(
            opened.number, {**block, "type": "tool_use", "id": id_, "input": {}}
        )

    def _read_block_delta(self, data: dict[str, Any]) -> Iterator[dict[str, Any]]:
        yield from self._ensure_started()
        delta, index = dict_or_empty(data.get("delta")), data.get("index")
        kind = delta.get("type") or next((v for k, v in _DELTA_TYPES.items() if k in delta), "")
        block = self._blocks.get(index, self._newest if index is None else None)
        if index in self._blocks and block is None:
            return
        self._reason = None
        match kind:
            case "text_delta":
                for said in extract_segments(delta.get("text"), self._note):
                    yield from self._emit_piece(said)
            case "thinking_delta":
                if block is None or block.kind != "thinking":
                    yield from self._start_thinking(index, {})
                    block = cast("_OpenBlock", self._blocks[index])
                words = block.repairer.feed_piece(
                    extract_all_text(delta.get("thinking"), self._note)
                )
                yield _make_block_delta(block.number, {"type": kind, "thinking": words})
            case "input_json_delta" if block is not None:
                yield from self._emit_input(block, delta.get("partial_json"))
            case "signature_delta" | "citations_delta" | "compaction_delta" if block is not None:
                number = (
                    self._output_block[1]
                    if block.number < 0 and self._output_block
                    else block.number
                )
                if number >= 0:
                    yield _make_block_delta(number, delta)
            case _:
                self._note("delta", str(kind))

    def _emit_input(self, block: _OpenBlock, given: object) -> Iterator[dict[str, Any]]:
        piece = given if isinstance(given, str) else json.dumps(given) if given else ""
        if piece := block.arguments.feed_piece(piece):
            block.input = ""
            yield _make_block_delta(
                block.number, {"type": "input_json_delta", "partial_json": piece}
            )

    def _stop_block(self, index: object) -> Iterator[dict[str, Any]]:
        if (block := self._blocks.pop(index, None)) is not None:
            yield from self._close_block(block)

    def _close_block(self, block: _OpenBlock) -> Iterator[dict[str, Any]]:
        """Close a block; text continues until a block of another kind begins."""
        if block.number < 0:
            return
        if rest := block.repairer.flush_rest():
            yield _make_block_delta(block.number, {"type": "thinking_delta", "thinking": rest})
        if block.input:
            yield from self._emit_input(block, block.input)
        if rest := block.arguments.flush_rest():
            yield _make_block_delta(
                block.number, {"type": "input_json_delta", "partial_json": rest}
            )
        yield {"type": "content_block_stop", "index": block.number}

    def _read_message_delta(self, data: dict[str, Any]) -> None:
        delta = dict_or_empty(data.get("delta"))
        self._usage.record_usage(data.get("usage") or delta.get("usage"))
        reason = to_messages_reason(
            delta.get("stop_reason") or delta.get("finish_reason"), self._note
        )
        self._reason = reason or self._reason
        self._end_delta |= {k: v for k, v in delta.items() if k in _STOP_FIELDS and v is not None}
        rest = {k: v for k, v in data.items() if k not in ("type", "delta", "usage")}
        self._end_fields |= _drop_none(rest)

    def _emit_piece(self, said: ContentSegment) -> Iterator[dict[str, Any]]:
        if said.kind == "thinking":
            yield from self._emit_content([said])
        else:
            yield from self._emit_content(
                self._splitter.feed_piece(self._text.feed_piece(said.text))
            )

    def _emit_content(self, said: list[ContentSegment]) -> Iterator[dict[str, Any]]:
        for one in said:
            if self._output_block is None or self._output_block[0] != one.kind:
                yield from self._stop_output_block()
                self._output_block = (one.kind, self._open_block(one.kind).number)
                empty: dict[str, Any] = {"type": "text", "text": ""}
                if one.kind == "thinking":
                    empty = {"type": "thinking", "thinking": "", "signature": ""}
                yield _make_block_start(self._output_block[1], empty)
            if one.kind == "text":
                self._emitted_text += one.text
            yield _make_block_delta(
                self._output_block[1], {"type": f"{one.kind}_delta", one.kind: one.text}
            )

    def _stop_output_block(self) -> Iterator[dict[str, Any]]:
        if self._output_block is not None:
            yield {"type": "content_block_stop", "index": self._output_block[1]}
            self._output_block = None

    def _open_block(self, kind: str) -> _OpenBlock:
        self._block_count += 1
        return _OpenBlock(self._block_count - 1, kind)


_STOP_FIELDS = frozenset({"stop_reason", "stop_sequence", "stop_details", "container"})


def _make_block_start(index: int, block: dict[str, Any]) -> dict[str, Any]:
    return {"type": "content_block_start", "index": index, "content_block": block}


def _make_block_delta(index: int, delta: dict[str, Any]) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": index, "delta": delta}


def _drop_none(fields: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in fields.items() if value is not None}
