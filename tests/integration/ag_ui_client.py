"""
A client of AG-UI that keeps a copy of the conversation, as the specification describes one.

It checks each event with the models of the protocol's own package, and their order with the rules
that its official client enforces.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ag_ui.core import Event
from pydantic import TypeAdapter

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import httpx2

_EVENT: TypeAdapter[Any] = TypeAdapter(Event)
#: Events that open something, and those that close it, with the field that names it.
_OPENING = {
    "TEXT_MESSAGE_START": ("TEXT_MESSAGE", "messageId"),
    "TOOL_CALL_START": ("TOOL_CALL", "toolCallId"),
    "REASONING_START": ("REASONING", "messageId"),
    "REASONING_MESSAGE_START": ("REASONING_MESSAGE", "messageId"),
    "STEP_STARTED": ("STEP", "stepName"),
}
_CLOSING = {
    "TEXT_MESSAGE_END": ("TEXT_MESSAGE", "messageId"),
    "TOOL_CALL_END": ("TOOL_CALL", "toolCallId"),
    "REASONING_END": ("REASONING", "messageId"),
    "REASONING_MESSAGE_END": ("REASONING_MESSAGE", "messageId"),
    "STEP_FINISHED": ("STEP", "stepName"),
}
_WITHIN = {
    "TEXT_MESSAGE_CONTENT": ("TEXT_MESSAGE", "messageId"),
    "TOOL_CALL_ARGS": ("TOOL_CALL", "toolCallId"),
    "REASONING_MESSAGE_CONTENT": ("REASONING_MESSAGE", "messageId"),
}


def check_event(told: Mapping[str, Any]) -> None:
    """Check an event with the protocol's models, which keep what they do not know."""
    event = _EVENT.validate_python(told)
    assert not event.model_extra, told
    assert event.model_dump(by_alias=True, mode="json") == told


@dataclass
class Copy:
    """What a client holds of a thread."""

    messages: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    thinking: dict[str, str] = field(default_factory=dict[str, str])
    #: Of the run that is shown.
    events: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    opened: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])

    @property
    def kinds(self) -> list[str]:
        return [event["type"] for event in self.events]

    @property
    def end(self) -> dict[str, Any]:
        return self.events[-1]

    @property
    def texts(self) -> list[tuple[str, str]]:
        return [
            (one["role"], one["content"]) for one in self.messages if one.get("content") is not None
        ]

    def say(self, text: str, id: str) -> None:
        self.messages.append({"id": id, "role": "user", "content": text})

    def find(self, id: str) -> dict[str, Any]:
        return next(one for one in self.messages if one["id"] == id)

    def take(self, told: dict[str, Any]) -> None:
        """Check the next event of the run, and apply it."""
        check_event(told)
        kind = told["type"]
        assert self.events or kind == "RUN_STARTED", told
        assert not self.events or self.end["type"] not in ("RUN_FINISHED", "RUN_ERROR"), told
        self.events.append(told)
        self._check_order(kind, told)
        match kind:
            case "TEXT_MESSAGE_START":
                if not any(one["id"] == told["messageId"] for one in self.messages):
                    new = {"id": told["messageId"], "role": told["role"], "content": ""}
                    self.messages.append(new)
            case "TEXT_MESSAGE_CONTENT":
                one = self.find(told["messageId"])
                one["content"] = one.get("content", "") + told["delta"]
            case "TOOL_CALL_START":
                self._add_call(told)
            case "TOOL_CALL_ARGS":
                self._find_call(told["toolCallId"])["function"]["arguments"] += told["delta"]
            case "TOOL_CALL_RESULT":
                self.messages.append(
                    {
                        "id": told["messageId"],
                        "role": "tool",
                        "toolCallId": told["toolCallId"],
                        "content": told["content"],
                    }
                )
            case "REASONING_MESSAGE_CONTENT":
                id = told["messageId"]
                self.thinking[id] = self.thinking.get(id, "") + told["delta"]
            case "MESSAGES_SNAPSHOT":
                self._replace(told["messages"])
            case _:
                pass

    def _check_order(self, kind: str, told: Mapping[str, Any]) -> None:
        if kind in _OPENING:
            what, name = _OPENING[kind]
            assert (what, told[name]) not in self.opened, told
            self.opened.add((what, told[name]))
        if kind in _WITHIN:
            what, name = _WITHIN[kind]
            assert (what, told[name]) in self.opened, told
        if kind in _CLOSING:
            what, name = _CLOSING[kind]
            self.opened.remove((what, told[name]))
        if kind == "RUN_FINISHED":
            assert not self.opened, told

    def _add_call(self, told: Mapping[str, Any]) -> None:
        parent = told["parentMessageId"]
        if not any(one["id"] == parent for one in self.messages):
            self.messages.append({"id": parent, "role": "assistant"})
        calls = self.find(parent).setdefault("toolCalls", [])
        function = {"name": told["toolCallName"], "arguments": ""}
        calls.append({"id": told["toolCallId"], "type": "function", "function": function})

    def _find_call(self, id: str) -> dict[str, Any]:
        calls = (call for one in self.messages for call in one.get("toolCalls", ()))
        return next(call for call in calls if call["id"] == id)

    def _replace(self, stored: Iterable[dict[str, Any]]) -> None:
        """In place where the id is held; others come at the end; what is not there goes."""
        new = {one["id"]: dict(one) for one in stored}
        kept = [new.pop(one["id"]) for one in self.messages if one["id"] in new]
        self.messages = [*kept, *new.values()]


@dataclass
class AgUi:
    """The client of one thread."""

    http: httpx2.AsyncClient
    thread: str = "talk"
    copy: Copy = field(default_factory=Copy)
    runs: int = 0

    def input(self, run: str, **more: Any) -> dict[str, Any]:
        return {
            "threadId": self.thread,
            "runId": run,
            "messages": self.copy.messages,
            "tools": [],
            "context": [],
            "state": {},
            "forwardedProps": {},
            **more,
        }

    async def say(self, text: str, *, run: str | None = None, **more: Any) -> Copy:
        """Run with a new message."""
        self.runs += 1
        self.copy.say(text, f"mine-{self.runs}")
        return await self.run(run or f"run-{self.runs}", **more)

    async def run(self, run: str, *, until: str | None = None, **more: Any) -> Copy:
        """Run to the end, or until a text was received; then the connection is cut."""
        self.copy.events, self.copy.opened = [], set()
        request = self.http.stream("POST", "/ag-ui", json=self.input(run, **more))
        async with request as response:
            if response.status_code != 200:
                await response.aread()
            assert response.status_code == 200, response.text
            assert response.headers["content-type"].startswith("text/event-stream")
            async for line in response.aiter_lines():
                if line.startswith("data:"):
                    self.copy.take(json.loads(line.removeprefix("data:")))
                if until is not None and any(until in text for _, text in self.copy.texts):
                    return self.copy
        return self.copy
