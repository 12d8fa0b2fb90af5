"""Replies in OpenAI's Chat format, made proper."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, cast

from clew.agent.tolerant.calls import CallReader
from clew.agent.tolerant.errors import find_error
from clew.agent.tolerant.finish import chat_reason
from clew.agent.tolerant.parts import dict_of, said_in, text_in
from clew.agent.tolerant.text import Mender
from clew.agent.tolerant.thinking import CLOSE, OPEN, Said, ThinkingSplitter, lone_close
from clew.agent.tolerant.usage import LastUsage

if TYPE_CHECKING:
    from collections.abc import Iterator

    from clew.agent.tolerant.notes import Note
    from clew.agent.tolerant.reply import Habits

__all__ = ["ChatReader"]

_THOUGHTS = ("reasoning_content", "reasoning", "thinking", "reasoning_text")
_READ = frozenset({"content", "tool_calls", "function_call", "role", "refusal", *_THOUGHTS})
_CHOICE = frozenset({"index", "delta", "message", "text", "finish_reason"})
_CHUNK = frozenset({"choices", "usage", "error", "object", "id", "created", "model"})


class ChatReader:
    """Reads one reply, streamed or whole, as the chunks of a proper stream."""

    def __init__(self, note: Note, habits: Habits) -> None:
        self._note, self._habits = note, habits
        self._head: dict[str, Any] = {}
        self._finish: str | None = None
        self._usage = LastUsage(chat=True)
        self._text, self._thought = Mender(), Mender()
        self._splitter = ThinkingSplitter(thinks_first=habits.thinks_first)
        self._calls = CallReader()
        self._spoken = ""
        self._opened = False
        #: Between the tags that are told.
        self._thinking = False

    @property
    def finished(self) -> bool:
        """Whether the reply said why it ended."""
        return self._finish is not None

    def passes(self, data: dict[str, Any]) -> bool:
        """Return whether a chunk may go on as it is; then it counts as read."""
        if not self._opened or self._thinking or data.get("usage") or "error" in data:
            return False
        match data.get("choices"):
            case [{"index": 0, "delta": {"content": str() as text, **rest}, **about}]:
                proper = not any(rest.values()) and not about.get("finish_reason")
                if not proper or "message" in about:
                    return False
            case _:
                return False
        if not self._text.passes(text) or not self._splitter.passes(text):
            return False
        self._spoken += text
        self._finish = None
        return True

    def event(self, data: dict[str, Any], name: str | None = None) -> Iterator[dict[str, Any]]:
        """
        Yield the chunks that a chunk of the server leads to.

        :raises ReplyError: if it tells an error
        """
        del name
        if (error := find_error(data)) is not None:
            raise error
        self._remember(data)
        self._usage.take(data.get("usage"))
        extra = {key: value for key, value in data.items() if key not in _CHUNK}
        choice = self._choice(data)
        if choice is None:
            if not self._opened or any(extra.values()):
                yield self._chunk({"role": "assistant"}, extra)
            return
        yield from self._read_choice(choice, extra)

    def end(self, *, done: bool) -> Iterator[dict[str, Any]]:
        """Yield the end of the stream, if the reply has ended (``done``: the server said so)."""
        if self._finish is None and not done:
            return
        for delta in self._rest():
            yield self._chunk(delta, {})
        reason = self._finish or ("tool_calls" if self._calls.calls else "stop")
        yield self._chunk({}, {}, finish=reason)
        if self._usage.value is not None:
            yield {**self._head, "choices": [], "usage": self._usage.value}
        self._learn()

    def whole(self, data: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """Yield the chunks of a reply that came as one object."""
        yield from self.event(data)
        yield from self.end(done=True)

    def _read_choice(
        self, choice: dict[str, Any], extra: dict[str, Any]
    ) -> Iterator[dict[str, Any]]:
        delta = dict_of(choice.get("delta")) or dict_of(choice.get("message"))
        if choice.get("delta") is None and self._spoken:
            whole = text_in(dict_of(choice.get("message")).get("content"), self._note)
            # The whole message once more, after its pieces.
            delta = {} if whole == self._spoken else delta
        if not delta and choice.get("text"):
            delta = {"content": choice["text"]}
        about = {key: value for key, value in choice.items() if key not in _CHOICE}
        reason = chat_reason(choice.get("finish_reason"), self._note)
        deltas = list(self._deltas(delta))
        if not self._opened and not deltas:
            deltas = [{"role": "assistant"}]
        if deltas and any(one for one in deltas if one.keys() - {"role"}):
            # What went on had not ended.
            self._finish = None
        for one in deltas:
            yield self._chunk(one, extra, about)
            extra, about = {}, {}
        if any(about.values()) or any(extra.values()):
            yield self._chunk({}, extra, about)
        self._finish = reason or self._finish

    def _deltas(self, delta: dict[str, Any]) -> Iterator[dict[str, Any]]:
        rest = {key: value for key, value in delta.items() if key not in _READ}
        if isinstance(refusal := delta.get("refusal"), str) and refusal:
            rest["refusal"] = refusal
        said: list[Said] = []
        for field in _THOUGHTS:
            if words := text_in(delta.get(field), self._note):
                said.append(Said("thinking", words))
                break
        said += said_in(delta.get("content"), self._note)
        for one in said:
            yield from self._say(one)
        given = delta.get("tool_calls")
        if not given and delta.get("function_call"):
            given = [{"index": 0, "function": delta["function_call"]}]
        for call in self._calls.read(given):
            yield {"tool_calls": [call]}
        if any(value for value in rest.values()):
            yield rest

    def _say(self, said: Said) -> Iterator[dict[str, Any]]:
        if said.kind == "thinking":
            if words := self._thought.feed(said.text):
                yield {"reasoning_content": words}
        else:
            yield from self._tell(self._splitter.feed(self._text.feed(said.text)))

    def _rest(self) -> Iterator[dict[str, Any]]:
        if thought := self._thought.end():
            yield {"reasoning_content": thought}
        yield from self._tell(self._splitter.feed(self._text.end()))
        yield from self._tell(self._splitter.end(called=bool(self._calls.calls)))
        for call in self._calls.end():
            yield {"tool_calls": [call]}

    def _tell(self, said: list[Said]) -> Iterator[dict[str, Any]]:
        """Yield text and thinking as the library takes them: each tag is a delta of its own."""
        for one in said:
            if (one.kind == "thinking") is not self._thinking:
                self._thinking = not self._thinking
                yield {"content": OPEN if self._thinking else CLOSE}
            if one.kind == "text":
                self._spoken += one.text
            pieces = ("<", one.text[1:]) if one.text in (OPEN, CLOSE) else (one.text,)
            for piece in pieces:
                yield {"content": piece}

    def _learn(self) -> None:
        if lone_close(self._spoken) is not None:
            self._habits.thinks_first = True

    def _choice(self, data: dict[str, Any]) -> dict[str, Any] | None:
        given: object = data.get("choices")
        if given is None and ("message" in data or "delta" in data):
            given = data
        choices = cast("list[object]", given if isinstance(given, list) else [given])
        found = [cast("dict[str, Any]", one) for one in choices if isinstance(one, dict)]
        first = next((one for one in found if one.get("index") in (0, None)), None)
        return first or (found[0] if found else None)

    def _remember(self, data: dict[str, Any]) -> None:
        if self._head:
            return
        created = data.get("created")
        self._head = {
            "id": str(data.get("id") or ""),
            "object": "chat.completion.chunk",
            "created": int(created) if isinstance(created, (int, float)) else int(time.time()),
            "model": data["model"] if isinstance(data.get("model"), str) else "",
        }

    def _chunk(
        self,
        delta: dict[str, Any],
        extra: dict[str, Any],
        about: dict[str, Any] | None = None,
        *,
        finish: str | None = None,
    ) -> dict[str, Any]:
        self._opened = True
        choice = {**(about or {}), "index": 0, "delta": delta, "finish_reason": finish}
        return {**self._head, **extra, "choices": [choice]}
