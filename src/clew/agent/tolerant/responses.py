"""Normalisation of replies in OpenAI's Responses format."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final, cast

from clew.agent.tolerant.content import dict_or_empty, extract_all_text, extract_segments
from clew.agent.tolerant.errors import find_error
from clew.agent.tolerant.finish_reasons import to_responses_status
from clew.agent.tolerant.surrogates import TextRepairer
from clew.agent.tolerant.thinking import ContentSegment, ThinkingSplitter, find_lone_close
from clew.agent.tolerant.tool_calls import ArgumentsBuffer, arguments_to_json, generate_call_id
from clew.agent.tolerant.usage import UsageTracker

if TYPE_CHECKING:
    from collections.abc import Iterator

    from clew.agent.tolerant.reader import ServerQuirks
    from clew.agent.tolerant.unknowns import UnknownReporter

__all__ = ["ResponsesReader"]

#: Id under which the library keeps thinking found in text, and sends it back as text.
_TEXT_THINKING_ID: Final = "content"
_END_EVENTS: Final = frozenset(
    {"response.completed", "response.done", "response.incomplete", "response.cancelled"}
)
_THINKING_EVENTS: Final = frozenset({"response.reasoning_summary_text.delta"})
_RAW_THINKING_EVENTS: Final = frozenset(
    {"response.reasoning_text.delta", "response.reasoning.delta"}
)
#: Read here, or irrelevant once the deltas came.
_KNOWN_EVENTS: Final = frozenset(
    {
        "response.in_progress",
        "response.queued",
        "response.content_part.added",
        "response.content_part.done",
        "response.reasoning_summary_part.done",
        "response.reasoning_summary_part.added",
        "response.reasoning_summary_text.done",
        "response.reasoning_text.done",
        "response.reasoning_part.added",
        "response.reasoning_part.done",
        "keepalive",
        "ping",
    }
)
#: Prefixes of events that pass unchanged.
_PASSED_PREFIXES: Final = (
    "response.output_text.annotation",
    "response.refusal",
    "response.web_search_call",
    "response.file_search_call",
    "response.code_interpreter_call",
    "response.image_generation_call",
    "response.mcp_",
)


class _OutputCall:
    """A call as far as received."""

    def __init__(self, item: str) -> None:
        self.item_id = item
        self.arguments = ArgumentsBuffer()
        self.is_done = False


class ResponsesReader:
    """Reader of one reply, streamed or whole, as the events of a valid stream."""

    def __init__(self, note: UnknownReporter, habits: ServerQuirks) -> None:
        self._note, self._quirks = note, habits
        self._usage = UsageTracker(chat=False)
        self._response: dict[str, Any] = {}
        self._started = False
        self._status: str | None = None
        self._splitter = ThinkingSplitter(thinks_first=habits.thinks_first)
        self._text, self._thinking_text = TextRepairer(), TextRepairer()
        self._emitted_text = ""
        #: Ids of the items whose content was received.
        self._received_items: set[str] = set()
        #: The newest call for each of the server's item ids.
        self._calls: dict[str, _OutputCall] = {}
        self._output: list[dict[str, Any]] = []
        self._next_number = 0
        #: Position of the current text.
        self._text_position: dict[str, Any] = _make_position({}, "msg")

    @property
    def is_finished(self) -> bool:
        """Return whether the reply gave its final status."""
        return self._status is not None

    def try_pass_through(self, data: dict[str, Any]) -> bool:
        """Return whether an event may pass unchanged; it then counts as read."""
        if data.get("type") != "response.output_text.delta" or "error" in data or "usage" in data:
            return False
        text = data.get("delta")
        if not isinstance(text, str) or any(
            data.get(k) != v for k, v in self._text_position.items()
        ):
            return False
        if not self._text.needs_no_repair(text) or not self._splitter.try_pass_through(text):
            return False
        self._emitted_text += text
        return True

    def read_event(self, data: dict[str, Any], name: str | None = None) -> Iterator[dict[str, Any]]:
        """
        Yield the events for an event of the server.

        :raises ReplyError: if it contains an error
        """
        for event in self._dispatch_event(data, str(data.get("type") or name or "")):
            yield self._add_number(event)

    def finish_stream(self, *, done: bool) -> Iterator[dict[str, Any]]:
        """Yield the end of the stream if the reply has ended (``done``: the server said so)."""
        if self._status is None and not done:
            return
        for event in self._flush_events():
            yield self._add_number(event)
        status = self._status or "completed"
        response = {**self._make_response(), "status": status, "usage": self._usage.value}
        if status == "incomplete" and not response.get("incomplete_details"):
            response["incomplete_details"] = {"reason": "max_output_tokens"}
        kind = "incomplete" if status == "incomplete" else "completed"
        yield self._add_number({"type": f"response.{kind}", "response": response})
        if find_lone_close(self._emitted_text) is not None:
            self._quirks.thinks_first = True

    def read_whole(self, data: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """Yield the events for a reply that came as one object."""
        if (error := find_error(data)) is not None:
            raise error
        kind = "response.completed" if data.get("status") is not None else "response.in_progress"
        yield from self.read_event({"type": kind, "response": data})
        yield from self.finish_stream(done=self._status not in (None, "in_progress", "queued"))

    def _dispatch_event(self, data: dict[str, Any], kind: str) -> Iterator[dict[str, Any]]:
        if kind != "response.failed" and (error := find_error(data)) is not None:
            raise error
        self._usage.record_usage(
            data.get("usage") or dict_or_empty(data.get("response")).get("usage")
        )
        if kind.startswith("response.output_item."):
            yield from self._read_output_item(data, done=kind.endswith("done"))
        elif kind.startswith("response.function_call_arguments."):
            yield from self._read_arguments(data, done=kind.endswith("done"))
        elif kind.startswith("response.output_text.d"):
            yield from self._read_output_text(data, done=kind.endswith("done"))
        elif kind in _THINKING_EVENTS | _RAW_THINKING_EVENTS:
            yield from self._read_thinking(data, kind)
        elif kind.startswith(_PASSED_PREFIXES):
            yield self._text_position | data
        else:
            yield from self._read_status_event(data, kind)

    def _read_status_event(self, data: dict[str, Any], kind: str) -> Iterator[dict[str, Any]]:
        response = dict_or_empty(data.get("response"))
        if kind == "response.failed":
            error = find_error(response) or find_error({"error": "the response failed"})
            assert error is not None
            raise error
        if kind == "response.created" or kind in _KNOWN_EVENTS:
            self._response = {**self._response, **response}
            yield from self._ensure_created()
        elif kind in _END_EVENTS:
            given = response.get("status") or kind.removeprefix("response.")
            self._status = to_responses_status(given, self._note)
            self._response = {**self._response, **response}
            yield from self._ensure_created()
            yield from self._emit_missed_items(response.get("output"))
        elif kind:
            self._note("event", kind)

    def _ensure_created(self) -> Iterator[dict[str, Any]]:
        if not self._started:
            self._started = True
            begun: dict[str, Any] = {"status": "in_progress", "usage": None, "output": []}
            base = self._make_response() | begun
            yield {"type": "response.created", "response": base}

    def _read_output_text(self, data: dict[str, Any], *, done: bool) -> Iterator[dict[str, Any]]:
        where = _make_position(data, self._get_item_id(data))
        key = f"{where['item_id']}/{where['content_index']}"
        if not done:
            yield from self._emit_text(data.get("delta"), where)
        elif key not in self._received_items:
            yield from self._emit_text(data.get("text"), where)
        elif isinstance(data.get("text"), str):
            yield where | data

    def _emit_text(self, content: object, where: dict[str, Any]) -> Iterator[dict[str, Any]]:
        self._received_items |= {f"{where['item_id']}/{where['content_index']}", where["item_id"]}
        self._text_position = where
        yield from self._ensure_created()
        for said in extract_segments(content, self._note):
            if said.kind == "thinking":
                yield from self._emit_content([said])
            else:
                yield from self._emit_content(
                    self._splitter.feed_piece(self._text.feed_piece(said.text))
                )

    def _emit_content(self, said: list[ContentSegment]) -> Iterator[dict[str, Any]]:
        for one in said:
            if one.kind == "text":
                self._emitted_text += one.text
                kind = "response.output_text.delta"
                yield {"type": kind, **self._text_position, "delta": one.text, "logprobs": []}
            else:
                yield _make_thinking_delta(_TEXT_THINKING_ID, one.text)

    def _read_thinking(self, data: dict[str, Any], kind: str) -> Iterator[dict[str, Any]]:
        yield from self._ensure_created()
        item = self._get_item_id(data, "rs")
        self._received_items.add(item)
        words = self._thinking_text.feed_piece(extract_all_text(data.get("delta"), self._note))
        if words and kind in _RAW_THINKING_EVENTS:
            place = {"output_index": 0, "content_index": 0, **data}
            kind = "response.reasoning_text.delta"
            yield {**place, "type": kind, "item_id": item, "delta": words}
        elif words:
            place = {"output_index": 0, "summary_index": 0, **data}
            yield {**place, "type": kind, "item_id": item, "delta": words}

    def _read_output_item(self, data: dict[str, Any], *, done: bool) -> Iterator[dict[str, Any]]:
        item = dict_or_empty(data.get("item"))
        yield from self._ensure_created()
        match item.get("type"):
            case "function_call":
                yield from self._read_call(data, item, done=done)
            case "message":
                if done:
                    yield from self._read_message(item)
                elif item.get("phase") and item.get("id"):
                    yield data
            case "reasoning":
                item = _make_reasoning(item, self._get_item_id({**data, "item": item}, "rs"))
                yield {**data, "item": item, "output_index": data.get("output_index") or 0}
                self._received_items.add(item["id"])
                self._output += [item] if done else []
            case None:
                self._note("output_item", "?")
            case _:
                yield data
                self._received_items.add(str(item.get("id")))
                self._output += [item] if done else []

    def _read_message(self, item: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """Yield the text of a message that did not come in pieces."""
        name = str(item.get("id") or self._text_position["item_id"])
        if name not in self._received_items and not self._emitted_text:
            yield from self._emit_text(item.get("content"), _make_position({}, name))
        self._output.append(item)

    def _read_call(
        self, data: dict[str, Any], item: dict[str, Any], *, done: bool
    ) -> Iterator[dict[str, Any]]:
        name = self._get_item_id({**data, "item": item}, "fc")
        call = self._calls.get(name)
        if call is None or (not done and (call.is_done or call.arguments.raw)):
            # Two calls with one id: the second gets its own.
            given_id = item.get("id")
            call = _OutputCall(given_id if given_id and call is None else generate_call_id())
            self._calls[name] = call
            proper = _make_function_call(item, call.item_id)
            where = {"output_index": data.get("output_index") or 0}
            yield {**where, "type": "response.output_item.added", "item": proper}
            self._output.append(proper)
        given = arguments_to_json(item.get("arguments"))
        if given and (done or given.strip() != "{}"):
            yield from self._emit_arguments(call, given)
        if done:
            call.is_done = True
            yield from self._flush_arguments(call)

    def _read_arguments(self, data: dict[str, Any], *, done: bool) -> Iterator[dict[str, Any]]:
        call = self._calls.get(self._get_item_id(data, "fc"))
        if call is None and len(self._calls) == 1 and not data.get("item_id"):
            call = next(iter(self._calls.values()))
        if call is not None:
            given = data.get("arguments") if done else data.get("delta")
            yield from self._emit_arguments(call, arguments_to_json(given))

    def _emit_arguments(self, call: _OutputCall, piece: str) -> Iterator[dict[str, Any]]:
        if piece := call.arguments.feed_piece(piece):
            yield _make_arguments_delta(call.item_id, piece)

    def _flush_arguments(self, call: _OutputCall) -> Iterator[dict[str, Any]]:
        if rest := call.arguments.flush_rest():
            yield _make_arguments_delta(call.item_id, rest)

    def _emit_missed_items(self, output: object) -> Iterator[dict[str, Any]]:
        """Yield the output in the last event that no earlier event contained."""
        items = cast("list[object]", output) if isinstance(output, list) else []
        called = any(call.arguments.raw for call in self._calls.values())
        for index, given in enumerate(items):
            item = dict_or_empty(given)
            name = self._get_item_id({"item": item, "output_index": index}, _get_id_prefix(item))
            if item.get("type") == "message":
                if name not in self._received_items and not self._emitted_text:
                    yield from self._read_message(item)
            elif name not in self._calls and name not in self._received_items:
                if called and item.get("type") == "function_call" and not item.get("id"):
                    # Received before, with its index as its id.
                    continue
                place = {"type": "response.output_item.added", "output_index": index, "item": item}
                yield from self._read_output_item(place, done=False)
                yield from self._read_output_item({**place, "type": _ITEM_DONE}, done=True)

    def _flush_events(self) -> Iterator[dict[str, Any]]:
        yield from self._ensure_created()
        if thought := self._thinking_text.flush_rest():
            yield _make_thinking_delta(_TEXT_THINKING_ID, thought)
        yield from self._emit_content(self._splitter.feed_piece(self._text.flush_rest()))
        yield from self._emit_content(self._splitter.flush_rest(called=bool(self._calls)))
        for call in self._calls.values():
            yield from self._flush_arguments(call)

    def _get_item_id(self, data: dict[str, Any], prefix: str = "msg") -> str:
        item = dict_or_empty(data.get("item"))
        given = data.get("item_id") or item.get("id") or item.get("call_id")
        if isinstance(given, str):
            return given
        index = data.get("output_index")
        return f"{prefix}_{index if isinstance(index, int) else 0}"

    def _make_response(self) -> dict[str, Any]:
        created = self._response.get("created_at")
        proper = {
            "tools": [],
            "tool_choice": "auto",
            "parallel_tool_calls": True,
            **{key: value for key, value in self._response.items() if value is not None},
            "object": "response",
            "output": self._output,
            "error": None,
        }
        proper["id"] = str(self._response.get("id") or "")
        proper["created_at"] = created if isinstance(created, (int, float)) else int(time.time())
        proper["model"] = str(self._response.get("model") or "")
        return proper

    def _add_number(self, event: dict[str, Any]) -> dict[str, Any]:
        self._next_number += 1
        return {**event, "sequence_number": self._next_number - 1}


_ITEM_DONE: Final = "response.output_item.done"


def _make_position(data: dict[str, Any], item: str) -> dict[str, Any]:
    index, content = data.get("output_index"), data.get("content_index")
    return {
        "item_id": item,
        "output_index": index if isinstance(index, int) else 0,
        "content_index": content if isinstance(content, int) else 0,
    }


def _get_id_prefix(item: dict[str, Any]) -> str:
    return {"function_call": "fc", "reasoning": "rs"}.get(str(item.get("type")), "msg")


def _make_thinking_delta(item: str, text: str) -> dict[str, Any]:
    kind = "response.reasoning_summary_text.delta"
    return {"type": kind, "item_id": item, "output_index": 0, "summary_index": 0, "delta": text}


def _make_arguments_delta(item: str, piece: str) -> dict[str, Any]:
    kind = "response.function_call_arguments.delta"
    return {"type": kind, "item_id": item, "output_index": 0, "delta": piece}


def _make_function_call(item: dict[str, Any], name: str) -> dict[str, Any]:
    call_id = item.get("call_id") or item.get("id")
    call_id = call_id if isinstance(call_id, str) and call_id else generate_call_id()
    return {**item, "id": name, "call_id": call_id, "arguments": ""}


def _make_reasoning(item: dict[str, Any], name: str) -> dict[str, Any]:
    summary = item.get("summary")
    return {**item, "id": name, "summary": summary if isinstance(summary, list) else []}
