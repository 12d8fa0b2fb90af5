"""Normalisation of replies in OpenAI's Chat format."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, cast

from clew.agent.tolerant.content import dict_or_empty, extract_all_text, extract_segments
from clew.agent.tolerant.errors import find_error
from clew.agent.tolerant.finish_reasons import to_chat_reason
from clew.agent.tolerant.surrogates import TextRepairer
from clew.agent.tolerant.thinking import (
    CLOSE_TAG,
    OPEN_TAG,
    ContentSegment,
    ThinkingSplitter,
    find_lone_close,
)
from clew.agent.tolerant.tool_calls import ToolCallReader
from clew.agent.tolerant.usage import UsageTracker

if TYPE_CHECKING:
    from collections.abc import Iterator

    from clew.agent.tolerant.reader import ServerQuirks
    from clew.agent.tolerant.unknowns import UnknownReporter

__all__ = ["ChatReader"]

_THINKING_FIELDS = ("reasoning_content", "reasoning", "thinking", "reasoning_text")
_DELTA_FIELDS = frozenset(
    {"content", "tool_calls", "function_call", "role", "refusal", *_THINKING_FIELDS}
)
_CHOICE_FIELDS = frozenset({"index", "delta", "message", "text", "finish_reason"})
_CHUNK_FIELDS = frozenset({"choices", "usage", "error", "object", "id", "created", "model"})


class ChatReader:
    """Reader of one reply, streamed or whole, as the chunks of a valid stream."""

    def __init__(self, note: UnknownReporter, habits: ServerQuirks) -> None:
        self._note, self._quirks = note, habits
        self._head: dict[str, Any] = {}
        self._finish: str | None = None
        self._usage = UsageTracker(chat=True)
        self._text, self._thinking_text = TextRepairer(), TextRepairer()
        self._splitter = ThinkingSplitter(thinks_first=habits.thinks_first)
        self._calls = ToolCallReader()
        self._emitted_text = ""
        self._has_started = False
        #: Between the thinking tags in the output.
        self._in_thinking = False

    @property
    def is_finished(self) -> bool:
        """Return whether the reply gave its finish reason."""
        return self._finish is not None

    def try_pass_through(self, data: dict[str, Any]) -> bool:
        """Return whether a chunk may pass unchanged; it then counts as read."""
        if not self._has_started or self._in_thinking or data.get("usage") or "error" in data:
            return False
        match data.get("choices"):
            case [{"index": 0, "delta": {"content": str() as text, **rest}, **about}]:
                proper = not any(rest.values()) and not about.get("finish_reason")
                if not proper or "message" in about:
                    return False
            case _:
                return False
        if not self._text.needs_no_repair(text) or not self._splitter.try_pass_through(text):
            return False
        self._emitted_text += text
        self._finish = None
        return True

    def read_event(self, data: dict[str, Any], name: str | None = None) -> Iterator[dict[str, Any]]:
        """
        Yield the chunks for a chunk of the server.

        :raises ReplyError: if it contains an error
        """
        del name
        if (error := find_error(data)) is not None:
            raise error
        self._store_head(data)
        self._usage.record_usage(data.get("usage"))
        extra = {key: value for key, value in data.items() if key not in _CHUNK_FIELDS}
        choice = self._find_choice(data)
        if choice is None:
            if not self._has_started or any(extra.values()):
                yield self._make_chunk({"role": "assistant"}, extra)
            return
        yield from self._read_choice(choice, extra)

    def finish_stream(self, *, done: bool) -> Iterator[dict[str, Any]]:
        """Yield the end of the stream if the reply has ended (``done``: the server said so)."""
        if self._finish is None and not done:
            return
        for delta in self._flush_deltas():
            yield self._make_chunk(delta, {})
        reason = self._finish or ("tool_calls" if self._calls.calls else "stop")
        yield self._make_chunk({}, {}, finish=reason)
        if self._usage.value is not None:
            yield {**self._head, "choices": [], "usage": self._usage.value}
        self._learn_quirks()

    def read_whole(self, data: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """Yield the chunks for a reply that came as one object."""
        yield from self.read_event(data)
        yield from self.finish_stream(done=True)

    def _read_choice(
        self, choice: dict[str, Any], extra: dict[str, Any]
    ) -> Iterator[dict[str, Any]]:
        delta = dict_or_empty(choice.get("delta")) or dict_or_empty(choice.get("message"))
        if choice.get("delta") is None and self._emitted_text:
            whole = extract_all_text(
                dict_or_empty(choice.get("message")).get("content"), self._note
            )
            # The whole message, repeated after its pieces.
            delta = {} if whole == self._emitted_text else delta
        if not delta and choice.get("text"):
            delta = {"content": choice["text"]}
        about = {key: value for key, value in choice.items() if key not in _CHOICE_FIELDS}
        reason = to_chat_reason(choice.get("finish_reason"), self._note)
        deltas = list(self._make_deltas(delta))
        if not self._has_started and not deltas:
            deltas = [{"role": "assistant"}]
        if deltas and any(one for one in deltas if one.keys() - {"role"}):
            # A reply that continues had not ended.
            self._finish = None
        for one in deltas:
            yield self._make_chunk(one, extra, about)
            extra, about = {}, {}
        if any(about.values()) or any(extra.values()):
            yield self._make_chunk({}, extra, about)
        self._finish = reason or self._finish

    def _make_deltas(self, delta: dict[str, Any]) -> Iterator[dict[str, Any]]:
        rest = {key: value for key, value in delta.items() if key not in _DELTA_FIELDS}
        if isinstance(refusal := delta.get("refusal"), str) and refusal:
            rest["refusal"] = refusal
        said: list[ContentSegment] = []
        for field in _THINKING_FIELDS:
            if words := extract_all_text(delta.get(field), self._note):
                said.append(ContentSegment("thinking", words))
                break
        said += extract_segments(delta.get("content"), self._note)
        for one in said:
            yield from self._emit_piece(one)
        given = delta.get("tool_calls")
        if not given and delta.get("function_call"):
            given = [{"index": 0, "function": delta["function_call"]}]
        for call in self._calls.read_deltas(given):
            yield {"tool_calls": [call]}
        if any(value for value in rest.values()):
            yield rest

    def _emit_piece(self, said: ContentSegment) -> Iterator[dict[str, Any]]:
        if said.kind == "thinking":
            if words := self._thinking_text.feed_piece(said.text):
                yield {"reasoning_content": words}
        else:
            yield from self._emit_content(
                self._splitter.feed_piece(self._text.feed_piece(said.text))
            )

    def _flush_deltas(self) -> Iterator[dict[str, Any]]:
        if thought := self._thinking_text.flush_rest():
            yield {"reasoning_content": thought}
        yield from self._emit_content(self._splitter.feed_piece(self._text.flush_rest()))
        yield from self._emit_content(self._splitter.flush_rest(called=bool(self._calls.calls)))
        for call in self._calls.flush_calls():
            yield {"tool_calls": [call]}

    def _emit_content(self, said: list[ContentSegment]) -> Iterator[dict[str, Any]]:
        """Yield text and thinking in the library's form: each tag is a separate delta."""
        for one in said:
            if (one.kind == "thinking") is not self._in_thinking:
                self._in_thinking = not self._in_thinking
                yield {"content": OPEN_TAG if self._in_thinking else CLOSE_TAG}
            if one.kind == "text":
                self._emitted_text += one.text
            pieces = ("<", one.text[1:]) if one.text in (OPEN_TAG, CLOSE_TAG) else (one.text,)
            for piece in pieces:
                yield {"content": piece}

    def _learn_quirks(self) -> None:
        if find_lone_close(self._emitted_text) is not None:
            self._quirks.thinks_first = True

    def _find_choice(self, data: dict[str, Any]) -> dict[str, Any] | None:
        given: object = data.get("choices")
        if given is None and ("message" in data or "delta" in data):
            given = data
        choices = cast("list[object]", given if isinstance(given, list) else [given])
        found = [cast("dict[str, Any]", one) for one in choices if isinstance(one, dict)]
        first = next((one for one in found if one.get("index") in (0, None)), None)
        return first or (found[0] if found else None)

    def _store_head(self, data: dict[str, Any]) -> None:
        if self._head:
            return
        created = data.get("created")
        self._head = {
            "id": str(data.get("id") or ""),
            "object": "chat.completion.chunk",
            "created": int(created) if isinstance(created, (int, float)) else int(time.time()),
            "model": data["model"] if isinstance(data.get("model"), str) else "",
        }

    def _make_chunk(
        self,
        delta: dict[str, Any],
        extra: dict[str, Any],
        about: dict[str, Any] | None = None,
        *,
        finish: str | None = None,
    ) -> dict[str, Any]:
        self._has_started = True
        choice = {**(about or {}), "index": 0, "delta": delta, "finish_reason": finish}
        return {**self._head, **extra, "choices": [choice]}
