"""Events of one run in AG-UI's format, in an order that its clients accept."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from clew.api.ag_ui.snapshots import build_messages
from clew.api.stream_reconciler import remaining_text
from clew.core.client_message import make_result_id
from clew.core.entry import Role

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from clew.core.client_message import ClientMessage, ClientToolCall

Event = dict[str, Any]

PROTOCOL_VERSION = "1.0"


class RunEventEncoder:
    """
    Events of one run: whatever it opens is closed before the next thing, and before its end.

    It holds the text that was sent of the response in progress, which the stored one completes.
    """

    def __init__(self, *, thread: str, run: str) -> None:
        self._run = {"threadId": thread, "runId": run}
        self._step: str | None = None
        #: The messages that are open: of the response, and of the thinking before it.
        self._text: str | None = None
        self._thinking: str | None = None
        self._thoughts = 0
        #: What was sent of the text in progress; white space at its start waits for a letter.
        self._sent: str = ""
        self._held: str = ""

    @property
    def has_partial_response(self) -> bool:
        """Return whether text was sent that is not stored yet."""
        return bool(self._sent)

    def start(self) -> Event:
        return {"type": "RUN_STARTED", **self._run, "protocolVersion": PROTOCOL_VERSION}

    def replace_all(self, stored: Iterable[ClientMessage]) -> list[Event]:
        """Return the events that make these the messages of the client; others are void."""
        closing = self._close_response()
        self._sent = self._held = ""
        return [*closing, {"type": "MESSAGES_SNAPSHOT", "messages": build_messages(stored)}]

    def add_text(self, id: str, step: str, piece: str) -> list[Event]:
        """Return the events for the next piece of a response's text."""
        piece = self._held + piece
        if not self._sent and not piece.strip():
            self._held = piece
            return []
        self._held, self._sent = "", self._sent + piece
        opening = [*self._open_step(step), *self._close_thinking()]
        if self._text is None:
            opening.append({"type": "TEXT_MESSAGE_START", "messageId": id, "role": "assistant"})
            self._text = id
        return [*opening, {"type": "TEXT_MESSAGE_CONTENT", "messageId": id, "delta": piece}]

    def add_partial_text(self, id: str, step: str, text: str) -> list[Event]:
        """Return the events for the text of a response so far."""
        missing, self._held = remaining_text(text, self._sent), ""
        return self.add_text(id, step, missing) if missing else []

    def add_thinking(self, id: str, step: str, piece: str) -> list[Event]:
        """Return the events for a piece of what the model thinks before a response."""
        opening: list[Event] = []
        if self._thinking is None:
            # Of a response that is asked for again, the thinking is another one.
            self._thoughts += 1
            self._thinking = f"{id}_thinking{self._thoughts}"
            opening = [
                *self._open_step(step),
                self._about_thinking("REASONING_START"),
                {**self._about_thinking("REASONING_MESSAGE_START"), "role": "reasoning"},
            ]
        return [*opening, {**self._about_thinking("REASONING_MESSAGE_CONTENT"), "delta": piece}]

    def end_thinking(self) -> list[Event]:
        """Return the events after which thinking is that of another request."""
        return self._close_thinking()

    def add_message(self, message: ClientMessage, step: str) -> list[Event] | None:
        """Return the events for a stored message; ``None`` if other text was sent of it."""
        match message.role:
            case Role.ASSISTANT:
                return self._add_response(message, step)
            case Role.TOOL:
                results = [_build_result(call, text) for call, text in message.results]
                return [*self._close_response(), *results, *self._close_step()]
            case Role.USER:
                return [*self._close_response(), *_build_text(message.id, "user", message.text)]

    def _add_response(self, message: ClientMessage, step: str) -> list[Event] | None:
        if remaining_text(message.text, self._sent) is None:
            return None
        text = self.add_partial_text(message.id, step, message.text)
        calls = [event for call in message.calls for event in _build_call(call, message.id)]
        opening = self._open_step(step) if calls else []
        closing = self._close_response()
        self._sent = self._held = ""
        return [*text, *closing, *opening, *calls]

    def add_answer(self, id: str, text: str) -> list[Event]:
        """Return the events for a text that is told instead of a response."""
        return [*self._close_response(), *_build_text(id, "assistant", text)]

    def finish(self, outcome: Event, usage: Event | None) -> list[Event]:
        """Return the last events of a run that did not fail."""
        counted = {} if usage is None else {"usage": [usage]}
        end = {"type": "RUN_FINISHED", **self._run, "outcome": outcome, **counted}
        return [*self._close_response(), *self._close_step(), end]

    def fail(self, *, code: str, message: str) -> list[Event]:
        """Return the last events of a run that failed."""
        end = {"type": "RUN_ERROR", "message": message, "code": code}
        return [*self._close_response(), *self._close_step(), end]

    def _open_step(self, name: str) -> list[Event]:
        if self._step == name:
            return []
        closing = self._close_step()
        self._step = name
        return [*closing, {"type": "STEP_STARTED", "stepName": name}]

    def _close_step(self) -> list[Event]:
        name, self._step = self._step, None
        return [] if name is None else [{"type": "STEP_FINISHED", "stepName": name}]

    def _close_response(self) -> list[Event]:
        closing = self._close_thinking()
        id, self._text = self._text, None
        return closing if id is None else [*closing, {"type": "TEXT_MESSAGE_END", "messageId": id}]

    def _close_thinking(self) -> list[Event]:
        if self._thinking is None:
            return []
        closing = [self._about_thinking(f"REASONING_{end}") for end in ("MESSAGE_END", "END")]
        self._thinking = None
        return closing

    def _about_thinking(self, kind: str) -> Event:
        return {"type": kind, "messageId": self._thinking}


def _build_text(id: str, role: str, text: str) -> Sequence[Event]:
    return (
        {"type": "TEXT_MESSAGE_START", "messageId": id, "role": role},
        {"type": "TEXT_MESSAGE_CONTENT", "messageId": id, "delta": text},
        {"type": "TEXT_MESSAGE_END", "messageId": id},
    )


def _build_call(call: ClientToolCall, parent: str) -> Sequence[Event]:
    start = {
        "type": "TOOL_CALL_START",
        "toolCallId": call.id,
        "toolCallName": call.tool,
        "parentMessageId": parent,
    }
    args = {"type": "TOOL_CALL_ARGS", "toolCallId": call.id, "delta": call.args}
    return start, args, {"type": "TOOL_CALL_END", "toolCallId": call.id}


def _build_result(call: str, text: str) -> Event:
    return {
        "type": "TOOL_CALL_RESULT",
        "messageId": make_result_id(call),
        "toolCallId": call,
        "content": text,
        "role": "tool",
    }
