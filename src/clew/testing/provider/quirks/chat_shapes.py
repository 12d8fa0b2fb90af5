"""Quirks of OpenAI's Chat format."""

# JSON of any shape is what this table is made of.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false

from __future__ import annotations

import copy
import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from clew.testing.provider.answers import Invocation
from clew.testing.provider.quirks.quirk import (
    CALL,
    TEXT,
    TWO_CALLS,
    Event,
    Quirk,
)
from clew.testing.provider.quirks.shapes import THOUGHT

if TYPE_CHECKING:
    from collections.abc import Callable

    from clew.testing.provider.quirks.quirk import Streamed, Whole

Chunk = dict[str, Any]
LOOK = CALL.calls[0]


def each(change: Callable[[Chunk], object]) -> dict[Any, Streamed]:
    """Change each choice of a stream in place; one that becomes ``False`` is left out."""

    def made(events: list[Event]) -> list[Event]:
        out: list[Event] = []
        for event in events:
            data = copy.deepcopy(event.data)
            kept = True
            if isinstance(data, dict) and data["choices"]:
                kept = change(data["choices"][0]) is not False
            out += [Event(event.name, data)] if kept else []
        return out

    return {"chat": made}


def each_chunk(change: Callable[[Chunk], Chunk]) -> dict[Any, Streamed]:
    """Change each chunk."""
    return {
        "chat": lambda events: [
            Event(e.name, change(copy.deepcopy(e.data)) if isinstance(e.data, dict) else e.data)
            for e in events
        ]
    }


def one(change: Callable[[Chunk], object]) -> dict[Any, Whole]:
    """Change the choice of a whole reply in place."""

    def made(body: Chunk) -> Chunk:
        change(body["choices"][0])
        return body

    return {"chat": made}


def body(change: Callable[[Chunk], Chunk]) -> dict[Any, Whole]:
    """Change a whole reply."""
    return {"chat": change}


def calls(change: Callable[[Chunk], object]) -> dict[str, Any]:
    """Change each call, or piece of one, streamed and whole."""

    def choice(found: Chunk) -> None:
        said = found.get("delta") or found.get("message") or {}
        for call in said.get("tool_calls") or ():
            change(call)

    return {"stream": each(choice), "whole": one(choice)}


def deltas(*given: object) -> dict[Any, Streamed]:
    """A stream with exactly these deltas."""

    def made(events: list[Event]) -> list[Event]:
        head = {k: v for k, v in events[0].data.items() if k not in ("choices", "usage")}
        said = [
            {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
            for delta in given
        ]
        return [*(Event(None, chunk) for chunk in said), *events[-3:]]

    return {"chat": made}


def call(**fields: Any) -> Chunk:
    """A delta with one piece of a call; what is not given is missing."""
    function = {key: fields.pop(key) for key in ("name", "arguments") if key in fields}
    return {"tool_calls": [{**fields, "function": function}]}


def _drop(key: str) -> Callable[[Chunk], object]:
    return lambda found: found.pop(key, None)


def _set(key: str, value: object) -> Callable[[Chunk], object]:
    def change(found: Chunk) -> None:
        found[key] = value

    return change


def _last(change: Callable[[Chunk], object]) -> dict[Any, Streamed]:
    """Change the last choice, which says why the reply ended."""
    return each(lambda choice: change(choice) if choice["finish_reason"] else None)


def _no_end(choice: Chunk) -> bool:
    return choice["finish_reason"] is None


def _always_stop(choice: Chunk) -> None:
    choice["finish_reason"] = "stop"


def _message(choice: Chunk) -> None:
    choice["message"] = choice.pop("delta")


def _legacy_text(choice: Chunk) -> None:
    said = choice.pop("delta", None) or choice.pop("message", {})
    choice["text"] = said.get("content") or ""


def _object_arguments(found: Chunk) -> None:
    function = found.get("function", {})
    if function.get("arguments"):
        function["arguments"] = json.loads(function["arguments"])


def _flat(found: Chunk) -> None:
    found |= found.pop("function")


def _legacy_call(choice: Chunk) -> None:
    said = choice.get("delta") or choice.get("message") or {}
    if made := said.pop("tool_calls", None):
        said["function_call"] = made[0]["function"]


def _calls_as_object(choice: Chunk) -> None:
    said = choice.get("delta") or choice.get("message") or {}
    if made := said.get("tool_calls"):
        said["tool_calls"] = made[0]


def _thoughts(name: str, value: Callable[[str], object]) -> Callable[[Chunk], object]:
    def change(choice: Chunk) -> None:
        said = choice.get("delta") or choice.get("message") or {}
        if words := said.pop("reasoning_content", None):
            said[name] = value(words)

    return change


def _odd_head(chunk: Chunk) -> Chunk:
    return {**chunk, "id": None, "created": "yesterday", "model": None, "object": None}


def _bare_head(chunk: Chunk) -> Chunk:
    return {key: chunk[key] for key in ("choices", "usage") if key in chunk}


def _again(events: list[Event]) -> list[Event]:
    """The whole message once more, with the end."""
    whole = {"role": "assistant", "content": TEXT.text}
    changed = copy.deepcopy(events)
    for event in changed:
        if isinstance(event.data, dict) and event.data["choices"]:
            choice = event.data["choices"][0]
            if choice["finish_reason"]:
                choice |= {"delta": None, "message": whole}
    return changed


_ARGS = LOOK.arguments
_SEEN_LOOK = ("look", {"at": "the map", "times": 2})
_SEEN_ADD = ("add", {"a": 1, "b": 2})
_THINKING = replace(TEXT, thinking=THOUGHT)
_ONE_PIECE = replace(CALL, chunks=1)

CHAT: tuple[Quirk, ...] = (
    Quirk(
        id="delta-null",
        sends="`delta: null` with the reason of the end",
        stream=_last(_set("delta", None)),
    ),
    Quirk(
        id="delta-missing",
        sends="no `delta` with the reason of the end",
        stream=_last(_drop("delta")),
    ),
    Quirk(
        id="end-missing",
        sends="no reason of the end, but `[DONE]`",
        stream=each(_no_end),
        whole=one(_drop("finish_reason")),
    ),
    Quirk(
        id="end-empty",
        sends="an empty reason of the end in each chunk",
        stream=each(_set("finish_reason", "")),
        whole=one(_set("finish_reason", "")),
    ),
    Quirk(
        id="end-always",
        sends="`stop` as the reason of the end in each chunk",
        stream=each(_always_stop),
    ),
    Quirk(
        id="no-done",
        sends="no `[DONE]` after the reason of the end",
        stream={"chat": lambda events: events[:-1]},
    ),
    Quirk(
        id="choices-null",
        sends="`choices: null` in the chunk with the usage",
        stream=each_chunk(lambda c: c if c["choices"] else {**c, "choices": None}),
    ),
    Quirk(
        id="choices-missing",
        sends="no `choices` in the chunk with the usage",
        stream=each_chunk(lambda c: c if c["choices"] else {"usage": c["usage"]}),
    ),
    Quirk(
        id="choices-object",
        sends="one choice, not in a list",
        stream=each_chunk(lambda c: {**c, "choices": c["choices"][0] if c["choices"] else {}}),
        whole=body(lambda b: {**b, "choices": b["choices"][0]}),
    ),
    Quirk(
        id="choice-index-missing",
        sends="choices without an index",
        stream=each(_drop("index")),
        whole=one(_drop("index")),
    ),
    Quirk(
        id="choices-empty-first",
        sends="a chunk without choices first, as a content filter",
        stream={
            "chat": lambda events: [
                Event(None, {**events[0].data, "choices": [], "prompt_filter_results": [{}]}),
                *events,
            ]
        },
    ),
    Quirk(
        id="role-each",
        sends="the role in each chunk",
        stream=each(lambda c: c["delta"].update(role="assistant")),
    ),
    Quirk(
        id="role-odd",
        sends="a role that is none",
        stream=each(lambda c: c["delta"].update(role="model")),
        whole=one(lambda c: c["message"].update(role="")),
    ),
    Quirk(
        id="refusal-empty",
        sends="an empty refusal in each chunk",
        stream=each(lambda c: c["delta"].update(refusal="")),
        whole=one(lambda c: c["message"].update(refusal="")),
    ),
    Quirk(
        id="content-null",
        sends="`content: null` between the pieces",
        stream={
            "chat": lambda events: (
                [
                    e
                    for one in events[:-1]
                    for e in (
                        one,
                        Event(
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
    Quirk(id="message-for-delta", sends="`message` instead of `delta`", stream=each(_message)),
    Quirk(
        id="delta-for-message",
        sends="`delta` instead of `message`",
        whole=one(lambda c: c.update(delta=c.pop("message"))),
    ),
    Quirk(
        id="message-again", sends="the whole message once more at the end", stream={"chat": _again}
    ),
    Quirk(
        id="legacy-text",
        sends="`text` instead of a message, as completions had it",
        stream=each(_legacy_text),
        whole=one(_legacy_text),
    ),
    Quirk(
        id="head-odd",
        sends="nulls and words for id, time, model and object",
        stream=each_chunk(_odd_head),
        whole=body(_odd_head),
    ),
    Quirk(
        id="head-missing",
        sends="no id, time, model or object",
        stream=each_chunk(_bare_head),
        whole=body(_bare_head),
    ),
    Quirk(
        id="service-tier-odd",
        sends="a service tier that nobody knows",
        stream=each_chunk(lambda c: {**c, "service_tier": "on_demand"}),
        whole=body(lambda b: {**b, "service_tier": "on_demand"}),
    ),
    Quirk(
        id="reasoning-field",
        sends="thinking as `reasoning`",
        answer=_THINKING,
        stream=each(_thoughts("reasoning", str)),
        whole=one(_thoughts("reasoning", str)),
    ),
    Quirk(
        id="thinking-field",
        sends="thinking as `thinking`",
        answer=_THINKING,
        stream=each(_thoughts("thinking", str)),
        whole=one(_thoughts("thinking", str)),
    ),
    Quirk(
        id="reasoning-list",
        sends="thinking as a list of parts",
        answer=_THINKING,
        stream=each(_thoughts("reasoning_content", lambda w: [{"type": "text", "text": w}])),
        whole=one(_thoughts("reasoning_content", lambda w: [{"type": "text", "text": w}])),
    ),
    Quirk(
        id="thinking-parts",
        sends="thinking as a part of the content, as Mistral does",
        stream=deltas(
            {
                "role": "assistant",
                "content": [{"type": "thinking", "thinking": [{"type": "text", "text": THOUGHT}]}],
            },
            {"content": "The answer is 42, I think."},
        ),
        whole=one(
            lambda c: c["message"].update(
                content=[
                    {"type": "thinking", "thinking": [{"type": "text", "text": THOUGHT}]},
                    {"type": "text", "text": TEXT.text},
                ]
            )
        ),
        thinking=THOUGHT,
    ),
    Quirk(
        id="arguments-object",
        sends="arguments as an object, not as JSON text",
        answer=_ONE_PIECE,
        **calls(_object_arguments),
    ),
    Quirk(
        id="arguments-null",
        sends="`arguments: null` for a tool that takes none",
        answer=replace(CALL, calls=(Invocation(id="call_a", name="now", arguments=""),)),
        **calls(lambda c: c["function"].update(arguments=None)),
        calls=(("now", {}),),
    ),
    Quirk(
        id="call-type-missing",
        sends="calls without a type",
        answer=TWO_CALLS,
        **calls(_drop("type")),
    ),
    Quirk(id="call-ids-missing", sends="calls without ids", answer=TWO_CALLS, **calls(_drop("id"))),
    Quirk(
        id="call-ids-empty", sends="calls with empty ids", answer=TWO_CALLS, **calls(_set("id", ""))
    ),
    Quirk(
        id="call-index-missing",
        sends="calls without an index",
        answer=TWO_CALLS,
        stream=calls(_drop("index"))["stream"],
    ),
    Quirk(
        id="call-flat",
        sends="name and arguments beside the id, not in `function`",
        answer=TWO_CALLS,
        **calls(_flat),
    ),
    Quirk(
        id="call-legacy",
        sends="`function_call`, as before there were tools",
        answer=CALL,
        stream=each(_legacy_call),
        whole=one(_legacy_call),
    ),
    Quirk(
        id="calls-object",
        sends="one call, not in a list",
        answer=CALL,
        stream=each(_calls_as_object),
        whole=one(_calls_as_object),
    ),
    Quirk(
        id="name-each",
        sends="the name of the tool with each piece of its arguments",
        answer=CALL,
        stream=calls(lambda c: c["function"].update(name="look"))["stream"],
    ),
    Quirk(
        id="name-in-pieces",
        sends="the name of the tool in two pieces",
        answer=CALL,
        stream=deltas(
            call(index=0, id="call_a", type="function", name="lo", arguments=""),
            call(index=0, name="ok", arguments=""),
            call(index=0, arguments=_ARGS),
        ),
    ),
    Quirk(
        id="id-each",
        sends="the id with each piece",
        answer=CALL,
        stream=calls(_set("id", "call_a"))["stream"],
    ),
    Quirk(
        id="id-new-each",
        sends="a new id with each piece of one call",
        answer=CALL,
        stream=deltas(
            call(index=0, id="call_a", name="look", arguments=_ARGS[:8]),
            call(index=0, id="call_b", name="look", arguments=_ARGS[8:]),
        ),
    ),
    Quirk(
        id="arguments-grow",
        sends="the arguments from the beginning in each piece",
        answer=CALL,
        stream=deltas(
            call(index=0, id="call_a", name="look", arguments=_ARGS[:5]),
            call(index=0, id="call_a", name="look", arguments=_ARGS[:15]),
            call(index=0, id="call_a", name="look", arguments=_ARGS),
        ),
    ),
    Quirk(
        id="arguments-again",
        sends="the whole arguments once more at the end",
        answer=CALL,
        stream=deltas(
            call(index=0, id="call_a", name="look", arguments=_ARGS[:9]),
            call(index=0, arguments=_ARGS[9:]),
            call(index=0, id="call_a", name="look", arguments=_ARGS),
        ),
    ),
    Quirk(
        id="one-index",
        sends="two calls with one index, a chunk each, as Ollama does",
        answer=TWO_CALLS,
        stream=deltas(
            call(index=0, id="call_a", type="function", name="look", arguments=_ARGS),
            call(
                index=0,
                id="call_b",
                type="function",
                name="add",
                arguments=TWO_CALLS.calls[1].arguments,
            ),
        ),
    ),
    Quirk(
        id="one-index-no-ids",
        sends="two calls with one index and no ids",
        answer=TWO_CALLS,
        stream=deltas(
            call(index=0, name="look", arguments=json.loads(_ARGS)),
            call(index=0, name="add", arguments={"a": 1, "b": 2}),
        ),
    ),
    Quirk(
        id="one-index-one-tool",
        sends="two calls of one tool with one index",
        answer=TWO_CALLS,
        stream=deltas(
            call(index=0, id="call_a", name="look", arguments='{"at": "a"}'),
            call(index=0, id="call_b", name="look", arguments='{"at": "b"}'),
        ),
        calls=(("look", {"at": "a"}), ("look", {"at": "b"})),
    ),
    Quirk(
        id="one-index-one-chunk",
        sends="two calls with one index in one chunk",
        answer=TWO_CALLS,
        stream=deltas(
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
        calls=(_SEEN_LOOK, _SEEN_ADD),
    ),
    Quirk(
        id="calls-interleaved",
        sends="the pieces of two calls in turns",
        answer=TWO_CALLS,
        stream=deltas(
            call(index=0, id="call_a", name="look", arguments=_ARGS[:6]),
            call(index=1, id="call_b", name="add", arguments='{"a": 1,'),
            call(index=0, arguments=_ARGS[6:]),
            call(index=1, arguments=' "b": 2}'),
        ),
    ),
    Quirk(
        id="native-message",
        sends="`message` without choices, as Ollama's own format has it",
        whole=body(
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
