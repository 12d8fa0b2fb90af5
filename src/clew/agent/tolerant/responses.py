"""Replies in OpenAI's Responses format, made proper."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final, cast

from clew.agent.tolerant.calls import Arguments, arguments_text, made_up_id
from clew.agent.tolerant.errors import find_error
from clew.agent.tolerant.finish import responses_status
from clew.agent.tolerant.parts import dict_of, said_in, text_in
from clew.agent.tolerant.text import Mender
from clew.agent.tolerant.thinking import Said, ThinkingSplitter, lone_close
from clew.agent.tolerant.usage import LastUsage

if TYPE_CHECKING:
    from collections.abc import Iterator

    from clew.agent.tolerant.notes import Note
    from clew.agent.tolerant.reply import Habits

__all__ = ["ResponsesReader"]

#: The library keeps thinking that it found in text under this id, and sends it back as text.
_FOUND: Final = "content"
_ENDS: Final = frozenset(
    {"response.completed", "response.done", "response.incomplete", "response.cancelled"}
)
_THOUGHTS: Final = frozenset({"response.reasoning_summary_text.delta"})
_RAW_THOUGHTS: Final = frozenset({"response.reasoning_text.delta", "response.reasoning.delta"})
#: Read here, or of no interest where the deltas came.
_QUIET: Final = frozenset(
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
#: Events that go to the library as they are, by their beginnings.
_PASS: Final = (
    "response.output_text.annotation",
    "response.refusal",
    "response.web_search_call",
    "response.file_search_call",
    "response.code_interpreter_call",
    "response.image_generation_call",
    "response.mcp_",
)


class _Call:
    """A call as far as it came."""

    def __init__(self, item: str) -> None:
        self.item = item
        self.arguments = Arguments()
        self.done = False


class ResponsesReader:
    """Reads one reply, streamed or whole, as the events of a proper stream."""

    def __init__(self, note: Note, habits: Habits) -> None:
        self._note, self._habits = note, habits
        self._usage = LastUsage(chat=False)
        self._response: dict[str, Any] = {}
        self._started = False
        self._status: str | None = None
        self._splitter = ThinkingSplitter(thinks_first=habits.thinks_first)
        self._text, self._thought = Mender(), Mender()
        self._spoken = ""
        #: Items of text, thinking and other things whose content came.
        self._said: set[str] = set()
        #: The calls, by the id of their item as the server names it, the newest of each.
        self._calls: dict[str, _Call] = {}
        self._output: list[dict[str, Any]] = []
        self._failure: dict[str, Any] | None = None
        self._number = 0
        #: Where text is said.
        self._where: dict[str, Any] = _place({}, "msg")

    @property
    def finished(self) -> bool:
        """Whether the reply said why it ended."""
        return self._status is not None

    def passes(self, data: dict[str, Any]) -> bool:
        """Return whether an event may go on as it is; then it counts as read."""
        if data.get("type") != "response.output_text.delta" or "error" in data or "usage" in data:
            return False
        text = data.get("delta")
        if not isinstance(text, str) or any(data.get(k) != v for k, v in self._where.items()):
            return False
        if not self._text.passes(text) or not self._splitter.passes(text):
            return False
        self._spoken += text
        return True

    def event(self, data: dict[str, Any], name: str | None = None) -> Iterator[dict[str, Any]]:
        """
        Yield the events that an event of the server leads to.

        :raises ReplyError: if it tells an error
        """
        for event in self._event(data, str(data.get("type") or name or "")):
            yield self._numbered(event)

    def end(self, *, done: bool) -> Iterator[dict[str, Any]]:
        """Yield the end of the stream, if the reply has ended (``done``: the server said so)."""
        if self._status is None and not done:
            return
        for event in self._rest():
            yield self._numbered(event)
        status = self._status or "completed"
        response = {**self._base(), "status": status, "usage": self._usage.value}
        if status == "incomplete" and not response.get("incomplete_details"):
            response["incomplete_details"] = {"reason": "max_output_tokens"}
        kind = "incomplete" if status == "incomplete" else "completed"
        yield self._numbered({"type": f"response.{kind}", "response": response})
        if lone_close(self._spoken) is not None:
            self._habits.thinks_first = True

    def whole(self, data: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """Yield the events of a reply that came as one object."""
        if (error := find_error(data)) is not None:
            raise error
        kind = "response.completed" if data.get("status") is not None else "response.in_progress"
        yield from self.event({"type": kind, "response": data})
        yield from self.end(done=self._status not in (None, "in_progress", "queued"))

    def _event(self, data: dict[str, Any], kind: str) -> Iterator[dict[str, Any]]:
        if kind != "response.failed" and (error := find_error(data)) is not None:
            raise error
        self._usage.take(data.get("usage") or dict_of(data.get("response")).get("usage"))
        if kind.startswith("response.output_item."):
            yield from self._output_item(data, done=kind.endswith("done"))
        elif kind.startswith("response.function_call_arguments."):
            yield from self._arguments(data, done=kind.endswith("done"))
        elif kind.startswith("response.output_text.d"):
            yield from self._output_text(data, done=kind.endswith("done"))
        elif kind in _THOUGHTS | _RAW_THOUGHTS:
            yield from self._thinking(data, kind)
        elif kind.startswith(_PASS):
            yield self._where | data
        else:
            yield from self._status_event(data, kind)

    def _status_event(self, data: dict[str, Any], kind: str) -> Iterator[dict[str, Any]]:
        response = dict_of(data.get("response"))
        if kind == "response.failed":
            error = find_error(response) or find_error({"error": "the response failed"})
            assert error is not None
            raise error
        if kind == "response.created" or kind in _QUIET:
            self._response = {**self._response, **response}
            yield from self._created()
        elif kind in _ENDS:
            given = response.get("status") or kind.removeprefix("response.")
            self._status = responses_status(given, self._note)
            self._response = {**self._response, **response}
            yield from self._created()
            yield from self._missed(response.get("output"))
        elif kind:
            self._note("event", kind)

    def _created(self) -> Iterator[dict[str, Any]]:
        if not self._started:
            self._started = True
            begun: dict[str, Any] = {"status": "in_progress", "usage": None, "output": []}
            base = self._base() | begun
            yield {"type": "response.created", "response": base}

    def _output_text(self, data: dict[str, Any], *, done: bool) -> Iterator[dict[str, Any]]:
        where = _place(data, self._name_of(data))
        key = f"{where['item_id']}/{where['content_index']}"
        if not done:
            yield from self._speak(data.get("delta"), where)
        elif key not in self._said:
            yield from self._speak(data.get("text"), where)
        elif isinstance(data.get("text"), str):
            yield where | data

    def _speak(self, content: object, where: dict[str, Any]) -> Iterator[dict[str, Any]]:
        self._said |= {f"{where['item_id']}/{where['content_index']}", where["item_id"]}
        self._where = where
        yield from self._created()
        for said in said_in(content, self._note):
            if said.kind == "thinking":
                yield from self._tell([said])
            else:
                yield from self._tell(self._splitter.feed(self._text.feed(said.text)))

    def _tell(self, said: list[Said]) -> Iterator[dict[str, Any]]:
        for one in said:
            if one.kind == "text":
                self._spoken += one.text
                kind = "response.output_text.delta"
                yield {"type": kind, **self._where, "delta": one.text, "logprobs": []}
            else:
                yield _thought(_FOUND, one.text)

    def _thinking(self, data: dict[str, Any], kind: str) -> Iterator[dict[str, Any]]:
        yield from self._created()
        item = self._name_of(data, "rs")
        self._said.add(item)
        words = self._thought.feed(text_in(data.get("delta"), self._note))
        if words and kind in _RAW_THOUGHTS:
            place = {"output_index": 0, "content_index": 0, **data}
            kind = "response.reasoning_text.delta"
            yield {**place, "type": kind, "item_id": item, "delta": words}
        elif words:
            place = {"output_index": 0, "summary_index": 0, **data}
            yield {**place, "type": kind, "item_id": item, "delta": words}

    def _output_item(self, data: dict[str, Any], *, done: bool) -> Iterator[dict[str, Any]]:
        item = dict_of(data.get("item"))
        yield from self._created()
        match item.get("type"):
            case "function_call":
                yield from self._call(data, item, done=done)
            case "message":
                if done:
                    yield from self._message(item)
                elif item.get("phase") and item.get("id"):
                    yield data
            case "reasoning":
                item = _reasoning(item, self._name_of({**data, "item": item}, "rs"))
                yield {**data, "item": item, "output_index": data.get("output_index") or 0}
                self._said.add(item["id"])
                self._output += [item] if done else []
            case None:
                self._note("output_item", "?")
            case _:
                yield data
                self._said.add(str(item.get("id")))
                self._output += [item] if done else []

    def _message(self, item: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """Yield what a message says that did not come in pieces."""
        name = str(item.get("id") or self._where["item_id"])
        if name not in self._said and not self._spoken:
            yield from self._speak(item.get("content"), _place({}, name))
        self._output.append(item)

    def _call(
        self, data: dict[str, Any], item: dict[str, Any], *, done: bool
    ) -> Iterator[dict[str, Any]]:
        name = self._name_of({**data, "item": item}, "fc")
        call = self._calls.get(name)
        if call is None or (not done and (call.done or call.arguments.raw)):
            # Two calls of one name: the second gets one of its own.
            given_id = item.get("id")
            call = _Call(given_id if given_id and call is None else made_up_id())
            self._calls[name] = call
            proper = _function_call(item, call.item)
            where = {"output_index": data.get("output_index") or 0}
            yield {**where, "type": "response.output_item.added", "item": proper}
            self._output.append(proper)
        given = arguments_text(item.get("arguments"))
        if given and (done or given.strip() != "{}"):
            yield from self._fed(call, given)
        if done:
            call.done = True
            yield from self._fed_rest(call)

    def _arguments(self, data: dict[str, Any], *, done: bool) -> Iterator[dict[str, Any]]:
        call = self._calls.get(self._name_of(data, "fc"))
        if call is None and len(self._calls) == 1 and not data.get("item_id"):
            call = next(iter(self._calls.values()))
        if call is not None:
            given = data.get("arguments") if done else data.get("delta")
            yield from self._fed(call, arguments_text(given))

    def _fed(self, call: _Call, piece: str) -> Iterator[dict[str, Any]]:
        if piece := call.arguments.feed(piece):
            yield _arguments_delta(call.item, piece)

    def _fed_rest(self, call: _Call) -> Iterator[dict[str, Any]]:
        if rest := call.arguments.end():
            yield _arguments_delta(call.item, rest)

    def _missed(self, output: object) -> Iterator[dict[str, Any]]:
        """Yield what the last event holds and no other told."""
        items = cast("list[object]", output) if isinstance(output, list) else []
        called = any(call.arguments.raw for call in self._calls.values())
        for index, given in enumerate(items):
            item = dict_of(given)
            name = self._name_of({"item": item, "output_index": index}, _prefix(item))
            if item.get("type") == "message":
                if name not in self._said and not self._spoken:
                    yield from self._message(item)
            elif name not in self._calls and name not in self._said:
                if called and item.get("type") == "function_call" and not item.get("id"):
                    # It came before, under the number of its place.
                    continue
                place = {"type": "response.output_item.added", "output_index": index, "item": item}
                yield from self._output_item(place, done=False)
                yield from self._output_item({**place, "type": _DONE}, done=True)

    def _rest(self) -> Iterator[dict[str, Any]]:
        yield from self._created()
        if thought := self._thought.end():
            yield _thought(_FOUND, thought)
        yield from self._tell(self._splitter.feed(self._text.end()))
        yield from self._tell(self._splitter.end(called=bool(self._calls)))
        for call in self._calls.values():
            yield from self._fed_rest(call)

    def _name_of(self, data: dict[str, Any], prefix: str = "msg") -> str:
        item = dict_of(data.get("item"))
        given = data.get("item_id") or item.get("id") or item.get("call_id")
        if isinstance(given, str):
            return given
        index = data.get("output_index")
        return f"{prefix}_{index if isinstance(index, int) else 0}"

    def _base(self) -> dict[str, Any]:
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

    def _numbered(self, event: dict[str, Any]) -> dict[str, Any]:
        self._number += 1
        return {**event, "sequence_number": self._number - 1}


_DONE: Final = "response.output_item.done"


def _place(data: dict[str, Any], item: str) -> dict[str, Any]:
    index, content = data.get("output_index"), data.get("content_index")
    return {
        "item_id": item,
        "output_index": index if isinstance(index, int) else 0,
        "content_index": content if isinstance(content, int) else 0,
    }


def _prefix(item: dict[str, Any]) -> str:
    return {"function_call": "fc", "reasoning": "rs"}.get(str(item.get("type")), "msg")


def _thought(item: str, text: str) -> dict[str, Any]:
    kind = "response.reasoning_summary_text.delta"
    return {"type": kind, "item_id": item, "output_index": 0, "summary_index": 0, "delta": text}


def _arguments_delta(item: str, piece: str) -> dict[str, Any]:
    kind = "response.function_call_arguments.delta"
    return {"type": kind, "item_id": item, "output_index": 0, "delta": piece}


def _function_call(item: dict[str, Any], name: str) -> dict[str, Any]:
    call_id = item.get("call_id") or item.get("id")
    call_id = call_id if isinstance(call_id, str) and call_id else made_up_id()
    return {**item, "id": name, "call_id": call_id, "arguments": ""}


def _reasoning(item: dict[str, Any], name: str) -> dict[str, Any]:
    summary = item.get("summary")
    return {**item, "id": name, "summary": summary if isinstance(summary, list) else []}
