"""Quirks of OpenAI's Chat format."""

# This table consists of JSON of any shape.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false

from __future__ import annotations

import copy
import json
from typing import TYPE_CHECKING, Any

from clew.record import replace
from clew.testing.provider.quirks.common import THINKING_TEXT
from clew.testing.provider.quirks.quirk import (
    CALL_REPLY,
    TEXT_REPLY,
    TWO_CALLS_REPLY,
    Quirk,
    ReplyEvent,
)
from clew.testing.provider.resolved_reply import ResolvedCall

if TYPE_CHECKING:
    from collections.abc import Callable

    from clew.testing.provider.quirks.quirk import BodyChange, StreamChange

Chunk = dict[str, Any]
LOOK_CALL = CALL_REPLY.calls[0]


def change_choices(change: Callable[[Chunk], object]) -> dict[Any, StreamChange]:
    """Change each choice of a stream in place; drop it if the change returns ``False``."""

    def change_events(events: list[ReplyEvent]) -> list[ReplyEvent]:
        out: list[ReplyEvent] = []
        for event in events:
            data = copy.deepcopy(event.data)
            kept = True
            if isinstance(data, dict) and data["choices"]:
                kept = change(data["choices"][0]) is not False
            out += [ReplyEvent(event.name, data)] if kept else []
        return out

    return {"chat": change_events}


def change_chunks(change: Callable[[Chunk], Chunk]) -> dict[Any, StreamChange]:
    """Change each chunk."""
    return {
        "chat": lambda events: [
            ReplyEvent(
                e.name, change(copy.deepcopy(e.data)) if isinstance(e.data, dict) else e.data
            )
            for e in events
        ]
    }


def change_body_choice(change: Callable[[Chunk], object]) -> dict[Any, BodyChange]:
    """Change the choice of an unstreamed reply in place."""

    def change_reply(body: Chunk) -> Chunk:
        change(body["choices"][0])
        return body

    return {"chat": change_reply}


def change_body(change: Callable[[Chunk], Chunk]) -> dict[Any, BodyChange]:
    """Change an unstreamed reply."""
    return {"chat": change}


def change_calls(change: Callable[[Chunk], object]) -> dict[str, Any]:
    """Change each call, or piece of one, streamed and unstreamed."""

    def change_choice(found: Chunk) -> None:
        said = found.get("delta") or found.get("message") or {}
        for call in said.get("tool_calls") or ():
            change(call)

    return {"stream": change_choices(change_choice), "whole": change_body_choice(change_choice)}


def stream_deltas(*given: object) -> dict[Any, StreamChange]:
    """Return a stream with exactly these deltas."""

    def build_events(events: list[ReplyEvent]) -> list[ReplyEvent]:
        head = {k: v for k, v in events[0].data.items() if k not in ("choices", "usage")}
        said = [
            {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
            for delta in given
        ]
        return [*(ReplyEvent(None, chunk) for chunk in said), *events[-3:]]

    return {"chat": build_events}


def call_delta(**fields: Any) -> Chunk:
    """Return a delta with one piece of a call; fields that are not given are missing."""
    function = {key: fields.pop(key) for key in ("name", "arguments") if key in fields}
    return {"tool_calls": [{**fields, "function": function}]}


def _drop_key(key: str) -> Callable[[Chunk], object]:
    return lambda found: found.pop(key, None)


def _set_key(key: str, value: object) -> Callable[[Chunk], object]:
    def set_value(found: Chunk) -> None:
        found[key] = value

    return set_value


def _change_last_choice(change: Callable[[Chunk], object]) -> dict[Any, StreamChange]:
    """Change the last choice, which has the finish reason."""
    return change_choices(lambda choice: change(choice) if choice["finish_reason"] else None)


def _drop_end(choice: Chunk) -> bool:
    return choice["finish_reason"] is None


def _always_stop(choice: Chunk) -> None:
    choice["finish_reason"] = "stop"


def _rename_delta(choice: Chunk) -> None:
    choice["message"] = choice.pop("delta")


def _use_legacy_text(choice: Chunk) -> None:
    said = choice.pop("delta", None) or choice.pop("message", {})
    choice["text"] = said.get("content") or ""


def _decode_arguments(found: Chunk) -> None:
    function = found.get("function", {})
    if function.get("arguments"):
        function["arguments"] = json.loads(function["arguments"])


def _flatten_call(found: Chunk) -> None:
    found |= found.pop("function")


def _use_legacy_call(choice: Chunk) -> None:
    said = choice.get("delta") or choice.get("message") or {}
    if made := said.pop("tool_calls", None):
        said["function_call"] = made[0]["function"]


def _unwrap_calls(choice: Chunk) -> None:
    said = choice.get("delta") or choice.get("message") or {}
    if made := said.get("tool_calls"):
        said["tool_calls"] = made[0]


def _rename_thinking(name: str, value: Callable[[str], object]) -> Callable[[Chunk], object]:
    def change_choice(choice: Chunk) -> None:
        said = choice.get("delta") or choice.get("message") or {}
        if words := said.pop("reasoning_content", None):
            said[name] = value(words)

    return change_choice


def _set_odd_head(chunk: Chunk) -> Chunk:
    return {**chunk, "id": None, "created": "yesterday", "model": None, "object": None}


def _drop_head(chunk: Chunk) -> Chunk:
    return {key: chunk[key] for key in ("choices", "usage") if key in chunk}


def _repeat_message(events: list[ReplyEvent]) -> list[ReplyEvent]:
    """Repeat the whole message with the finish reason."""
    whole = {"role": "assistant", "content": TEXT_REPLY.text}
    changed = copy.deepcopy(events)
    for event in changed:
        if isinstance(event.data, dict) and event.data["choices"]:
            choice = event.data["choices"][0]
            if choice["finish_reason"]:
                choice |= {"delta": None, "message": whole}
    return changed


_ARGS = LOOK_CALL.arguments
_EXPECTED_LOOK = ("look", {"at": "the map", "times": 2})
_EXPECTED_ADD = ("add", {"a": 1, "b": 2})
_THINKING = replace(TEXT_REPLY, thinking=THINKING_TEXT)
_ONE_PIECE = replace(CALL_REPLY, chunks=1)

CHAT_QUIRKS: tuple[Quirk, ...] = (
    Quirk(
        id="delta-null",
        description="`delta: null` with the reason of the end",
        stream=_change_last_choice(_set_key("delta", None)),
    ),
    Quirk(
        id="delta-missing",
        description="no `delta` with the reason of the end",
        stream=_change_last_choice(_drop_key("delta")),
    ),
    Quirk(
        id="end-missing",
        description="no reason of the end, but `[DONE]`",
        stream=change_choices(_drop_end),
        whole=change_body_choice(_drop_key("finish_reason")),
    ),
    Quirk(
        id="end-empty",
        description="an empty reason of the end in each chunk",
        stream=change_choices(_set_key("finish_reason", "")),
        whole=change_body_choice(_set_key("finish_reason", "")),
    ),
    Quirk(
        id="end-always",
        description="`stop` as the reason of the end in each chunk",
        stream=change_choices(_always_stop),
    ),
    Quirk(
        id="no-done",
        description="no `[DONE]` after the reason of the end",
        stream={"chat": lambda events: events[:-1]},
    ),
    Quirk(
        id="choices-null",
        description="`choices: null` in the chunk with the usage",
        stream=change_chunks(lambda c: c if c["choices"] else {**c, "choices": None}),
    ),
    Quirk(
        id="choices-missing",
        description="no `choices` in the chunk with the usage",
        stream=change_chunks(lambda c: c if c["choices"] else {"usage": c["usage"]}),
    ),
    Quirk(
        id="choices-object",
        description="one choice, not in a list",
        stream=change_chunks(lambda c: {**c, "choices": c["choices"][0] if c["choices"] else {}}),
        whole=change_body(lambda b: {**b, "choices": b["choices"][0]}),
    ),
    Quirk(
        id="choice-index-missing",
        description="choices without an index",
        stream=change_choices(_drop_key("index")),
        whole=change_body_choice(_drop_key("index")),
    ),
    Quirk(
        id="choices-empty-first",
        description="a chunk without choices first, as a content filter",
        stream={
            "chat": lambda events: [
                ReplyEvent(None, {**events[0].data, "choices": [], "prompt_filter_results": [{}]}),
                *events,
            ]
        },
    ),
    Quirk(
        id="role-each",
        description="the role in each chunk",
        stream=change_choices(lambda c: c["delta"].update(role="assistant")),
    ),
    Quirk(
        id="role-odd",
        description="a role that is none",
        stream=change_choices(lambda c: c["delta"].update(role="model")),
        whole=change_body_choice(lambda c: c["message"].update(role="")),
    ),
    Quirk(
        id="refusal-empty",
        description="an empty refusal in each chunk",
        stream=change_choices(lambda c: c["delta"].update(refusal="")),
        whole=change_body_choice(lambda c: c["message"].update(refusal="")),
    ),
    Quirk(
        id="content-null",
        description="`content: null` between the pieces",
        stream={
            "chat": lambda events: (
                [
                    e
                    for one in events[:-1]
                    for e in (
                        one,
                        ReplyEvent(
                            None,
                            {
                                **events[0].data,
                                "choices": [
                                    {
                                        "index": 0,
                                        "delta": {"content": None, "tool_calls": None},
                                        "finish_reason": None,
                                    }
                                ],
                            },
                        ),
                    )
                ]
                + events[-1:]
            )
        },
    ),
    Quirk(
        id="message-for-delta",
        description="`message` instead of `delta`",
        stream=change_choices(_rename_delta),
    ),
    Quirk(
        id="delta-for-message",
        description="`delta` instead of `message`",
        whole=change_body_choice(lambda c: c.update(delta=c.pop("message"))),
    ),
    Quirk(
        id="message-again",
        description="the whole message once more at the end",
        stream={"chat": _repeat_message},
    ),
    Quirk(
        id="legacy-text",
        description="`text` instead of a message, as completions had it",
        stream=change_choices(_use_legacy_text),
        whole=change_body_choice(_use_legacy_text),
    ),
    Quirk(
        id="head-odd",
        description="nulls and words for id, time, model and object",
        stream=change_chunks(_set_odd_head),
        whole=change_body(_set_odd_head),
    ),
    Quirk(
        id="head-missing",
        description="no id, time, model or object",
        stream=change_chunks(_drop_head),
        whole=change_body(_drop_head),
    ),
    Quirk(
        id="service-tier-odd",
        description="a service tier that nobody knows",
        stream=change_chunks(lambda c: {**c, "service_tier": "on_demand"}),
        whole=change_body(lambda b: {**b, "service_tier": "on_demand"}),
    ),
    Quirk(
        id="reasoning-field",
        description="thinking as `reasoning`",
        reply=_THINKING,
        stream=change_choices(_rename_thinking("reasoning", str)),
        whole=change_body_choice(_rename_thinking("reasoning", str)),
    ),
    Quirk(
        id="thinking-field",
        description="thinking as `thinking`",
        reply=_THINKING,
        stream=change_choices(_rename_thinking("thinking", str)),
        whole=change_body_choice(_rename_thinking("thinking", str)),
    ),
    Quirk(
        id="reasoning-list",
        description="thinking as a list of parts",
        reply=_THINKING,
        stream=change_choices(
            _rename_thinking("reasoning_content", lambda w: [{"type": "text", "text": w}])
        ),
        whole=change_body_choice(
            _rename_thinking("reasoning_content", lambda w: [{"type": "text", "text": w}])
        ),
    ),
    Quirk(
        id="thinking-parts",
        description="thinking as a part of the content, as Mistral does",
        stream=stream_deltas(
            {
                "role": "assistant",
                "content": [
                    {"type": "thinking", "thinking": [{"type": "text", "text": THINKING_TEXT}]}
                ],
            },
            {"content": "The answer is 42, I think."},
        ),
        whole=change_body_choice(
            lambda c: c["message"].update(
                content=[
                    {"type": "thinking", "thinking": [{"type": "text", "text": THINKING_TEXT}]},
                    {"type": "text", "text": TEXT_REPLY.text},
                ]
            )
        ),
        thinking=THINKING_TEXT,
    ),
    Quirk(
        id="arguments-object",
        description="arguments as an object, not as JSON text",
        reply=_ONE_PIECE,
        **change_calls(_decode_arguments),
    ),
    Quirk(
        id="arguments-null",
        description="`arguments: null` for a tool that takes none",
        reply=replace(CALL_REPLY, calls=(ResolvedCall(id="call_a", name="now", arguments=""),)),
        **change_calls(lambda c: c["function"].update(arguments=None)),
        calls=(("now", {}),),
    ),
    Quirk(
        id="call-type-missing",
        description="calls without a type",
        reply=TWO_CALLS_REPLY,
        **change_calls(_drop_key("type")),
    ),
    Quirk(
        id="call-ids-missing",
        description="calls without ids",
        reply=TWO_CALLS_REPLY,
        **change_calls(_drop_key("id")),
    ),
    Quirk(
        id="call-ids-empty",
        description="calls with empty ids",
        reply=TWO_CALLS_REPLY,
        **change_calls(_set_key("id", "")),
    ),
    Quirk(
        id="call-index-missing",
        description="calls without an index",
        reply=TWO_CALLS_REPLY,
        stream=change_calls(_drop_key("index"))["stream"],
    ),
    Quirk(
        id="call-flat",
        description="name and arguments beside the id, not in `function`",
        reply=TWO_CALLS_REPLY,
        **change_calls(_flatten_call),
    ),
    Quirk(
        id="call-legacy",
        description="`function_call`, as before there were tools",
        reply=CALL_REPLY,
        stream=change_choices(_use_legacy_call),
        whole=change_body_choice(_use_legacy_call),
    ),
    Quirk(
        id="calls-object",
        description="one call, not in a list",
        reply=CALL_REPLY,
        stream=change_choices(_unwrap_calls),
        whole=change_body_choice(_unwrap_calls),
    ),
    Quirk(
        id="name-each",
        description="the name of the tool with each piece of its arguments",
        reply=CALL_REPLY,
        stream=change_calls(lambda c: c["function"].update(name="look"))["stream"],
    ),
    Quirk(
        id="name-in-pieces",
        description="the name of the tool in two pieces",
        reply=CALL_REPLY,
        stream=stream_deltas(
            call_delta(index=0, id="call_a", type="function", name="lo", arguments=""),
            call_delta(index=0, name="ok", arguments=""),
            call_delta(index=0, arguments=_ARGS),
        ),
    ),
    Quirk(
        id="id-each",
        description="the id with each piece",
        reply=CALL_REPLY,
        stream=change_calls(_set_key("id", "call_a"))["stream"],
    ),
    Quirk(
        id="id-new-each",
        description="a new id with each piece of one call",
        reply=CALL_REPLY,
        stream=stream_deltas(
            call_delta(index=0, id="call_a", name="look", arguments=_ARGS[:8]),
            call_delta(index=0, id="call_b", name="look", arguments=_ARGS[8:]),
        ),
    ),
    Quirk(
        id="arguments-grow",
        description="the arguments from the beginning in each piece",
        reply=CALL_REPLY,
        stream=stream_deltas(
            call_delta(index=0, id="call_a", name="look", arguments=_ARGS[:5]),
            call_delta(index=0, id="call_a", name="look", arguments=_ARGS[:15]),
            call_delta(index=0, id="call_a", name="look", arguments=_ARGS),
        ),
    ),
    Quirk(
        id="arguments-again",
        description="the whole arguments once more at the end",
        reply=CALL_REPLY,
        stream=stream_deltas(
            call_delta(index=0, id="call_a", name="look", arguments=_ARGS[:9]),
            call_delta(index=0, arguments=_ARGS[9:]),
            call_delta(index=0, id="call_a", name="look", arguments=_ARGS),
        ),
    ),
    Quirk(
        id="one-index",
        description="two calls with one index, a chunk each, as Ollama does",
        reply=TWO_CALLS_REPLY,
        stream=stream_deltas(
            call_delta(index=0, id="call_a", type="function", name="look", arguments=_ARGS),
            call_delta(
                index=0,
                id="call_b",
                type="function",
                name="add",
                arguments=TWO_CALLS_REPLY.calls[1].arguments,
            ),
        ),
    ),
    Quirk(
        id="one-index-no-ids",
        description="two calls with one index and no ids",
        reply=TWO_CALLS_REPLY,
        stream=stream_deltas(
            call_delta(index=0, name="look", arguments=json.loads(_ARGS)),
            call_delta(index=0, name="add", arguments={"a": 1, "b": 2}),
        ),
    ),
    Quirk(
        id="one-index-one-tool",
        description="two calls of one tool with one index",
        reply=TWO_CALLS_REPLY,
        stream=stream_deltas(
            call_delta(index=0, id="call_a", name="look", arguments='{"at": "a"}'),
            call_delta(index=0, id="call_b", name="look", arguments='{"at": "b"}'),
        ),
        calls=(("look", {"at": "a"}), ("look", {"at": "b"})),
    ),
    Quirk(
        id="one-index-one-chunk",
        description="two calls with one index in one chunk",
        reply=TWO_CALLS_REPLY,
        stream=stream_deltas(
            {
                "tool_calls": [
                    {"index": 0, "id": "call_a", "function": {"name": "look", "arguments": _ARGS}},
                    {
                        "index": 0,
                        "id": "call_b",
                        "function": {"name": "add", "arguments": '{"a": 1, "b": 2}'},
                    },
                ]
            }
        ),
        calls=(_EXPECTED_LOOK, _EXPECTED_ADD),
    ),
    Quirk(
        id="calls-interleaved",
        description="the pieces of two calls in turns",
        reply=TWO_CALLS_REPLY,
        stream=stream_deltas(
            call_delta(index=0, id="call_a", name="look", arguments=_ARGS[:6]),
            call_delta(index=1, id="call_b", name="add", arguments='{"a": 1,'),
            call_delta(index=0, arguments=_ARGS[6:]),
            call_delta(index=1, arguments=' "b": 2}'),
        ),
    ),
    Quirk(
        id="native-message",
        description="`message` without choices, as Ollama's own format has it",
        whole=change_body(
            lambda b: {
                "model": b["model"],
                "message": b["choices"][0]["message"],
                "done": True,
                "done_reason": "stop",
                "usage": b["usage"],
            }
        ),
    ),
)
