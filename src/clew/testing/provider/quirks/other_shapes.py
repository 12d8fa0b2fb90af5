"""Quirks of OpenAI's Responses format and of Anthropic's Messages format."""

# JSON of any shape is what this table is made of.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false

from __future__ import annotations

import copy
import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from clew.testing.provider.answers import Invocation
from clew.testing.provider.quirks.quirk import CALL, TEXT, TWO_CALLS, Event, Quirk

if TYPE_CHECKING:
    from collections.abc import Callable

    from clew.testing.provider.quirks.quirk import Streamed, Whole

Item = dict[str, Any]


def each(form: str, change: Callable[[Item], object]) -> dict[Any, Streamed]:
    """Change each event of a stream in place; one that becomes ``False`` is left out."""

    def made(events: list[Event]) -> list[Event]:
        out: list[Event] = []
        for event in events:
            data = copy.deepcopy(event.data)
            out += [] if change(data) is False else [Event(event.name, data)]
        return out

    return {form: made}


def without(form: str, *kinds: str) -> dict[Any, Streamed]:
    """A stream without the events of these types."""
    return {form: lambda events: [e for e in events if e.name not in kinds]}


def whole(form: str, change: Callable[[Item], object]) -> dict[Any, Whole]:
    """Change a whole reply in place."""

    def made(body: Item) -> Item:
        change(body)
        return body

    return {form: made}


def _drop(*names: str) -> Callable[[Item], object]:
    def change(data: Item) -> None:
        for name in names:
            data.pop(name, None)

    return change


def _done(events: list[Event]) -> list[Event]:
    return [*events[:-1], Event(None, "[DONE]")]


# Responses


def _items(change: Callable[[Item], object]) -> Callable[[Item], object]:
    def of(data: Item) -> None:
        response = data.get("response", data)
        for item in [data.get("item"), *(response.get("output") or ())]:
            if isinstance(item, dict):
                change(item)

    return of


def _no_item_ids(data: Item) -> None:
    data.pop("item_id", None)
    _items(_drop("id"))(data)


def _object_arguments(item: Item) -> None:
    if item.get("arguments"):
        item["arguments"] = json.loads(item["arguments"])


def _no_output(data: Item) -> None:
    if "response" in data:
        data["response"]["output"] = None


def _only_ids(data: Item) -> None:
    if "response" in data and data["type"] != "response.completed":
        data["response"] = None


def _one_item_id(data: Item) -> None:
    if "item_id" in data:
        data["item_id"] = "fc_0"
    _items(lambda item: item.update(id="fc_0"))(data)


def _bare(body: Item) -> None:
    kept = {key: body[key] for key in ("status", "output", "usage")}
    body.clear()
    body |= kept


RESPONSES: tuple[Quirk, ...] = (
    Quirk(
        id="no-created",
        sends="no `response.created`",
        stream=without("responses", "response.created", "response.in_progress"),
    ),
    Quirk(
        id="response-null",
        sends="`response: null` before the end",
        stream=each("responses", _only_ids),
    ),
    Quirk(
        id="done-for-completed",
        sends="`[DONE]` instead of `response.completed`",
        stream={"responses": _done},
        usage=(0, 0),
    ),
    Quirk(
        id="completed-only",
        sends="nothing but `response.completed`",
        stream={"responses": lambda events: events[-1:]},
    ),
    Quirk(
        id="completed-only-calls",
        sends="calls in `response.completed` only",
        answer=TWO_CALLS,
        stream={"responses": lambda events: events[-1:]},
    ),
    Quirk(
        id="no-deltas",
        sends="no deltas, only the texts as they are done",
        stream=without("responses", "response.output_text.delta"),
    ),
    Quirk(
        id="items-only",
        sends="items as they are done, and nothing of them before",
        answer=TWO_CALLS,
        stream={
            "responses": lambda events: [
                e
                for e in events
                if e.name in ("response.created", "response.output_item.done", "response.completed")
            ]
        },
    ),
    Quirk(
        id="item-done-missing",
        sends="no `response.output_item.done`",
        answer=TWO_CALLS,
        stream=without(
            "responses", "response.output_item.done", "response.function_call_arguments.done"
        ),
    ),
    Quirk(
        id="item-ids-missing",
        sends="items without ids",
        stream=each("responses", _no_item_ids),
        whole=whole("responses", _items(_drop("id"))),
    ),
    Quirk(
        id="item-ids-missing-calls",
        sends="calls without ids of their items",
        answer=TWO_CALLS,
        stream=each("responses", _no_item_ids),
        whole=whole("responses", _items(_drop("id"))),
    ),
    Quirk(
        id="call-id-missing",
        sends="calls without `call_id`",
        answer=TWO_CALLS,
        stream=each("responses", _items(_drop("call_id"))),
        whole=whole("responses", _items(_drop("call_id"))),
    ),
    Quirk(
        id="one-item-id",
        sends="two calls whose items have one id",
        answer=TWO_CALLS,
        stream=each("responses", _one_item_id),
    ),
    Quirk(
        id="item-arguments-object",
        sends="the arguments of an item as an object",
        answer=CALL,
        stream=each("responses", _items(_object_arguments)),
        whole=whole("responses", _items(_object_arguments)),
    ),
    Quirk(
        id="numbers-missing",
        sends="events without numbers and places",
        stream=each("responses", _drop("sequence_number", "output_index", "content_index")),
    ),
    Quirk(
        id="output-null", sends="`output: null` at the end", stream=each("responses", _no_output)
    ),
    Quirk(
        id="response-bare",
        sends="a response with nothing but status, output and usage",
        whole=whole("responses", _bare),
    ),
    Quirk(
        id="item-unknown-content",
        sends="a message whose content is a string",
        whole=whole("responses", _items(lambda item: item.update(content=TEXT.text))),
    ),
    Quirk(
        id="delta-null-text",
        sends="`delta: null` among the texts",
        stream={
            "responses": lambda events: [
                e
                for one in events
                for e in (
                    [one, Event(one.name, {**one.data, "delta": None})]
                    if one.name == "response.output_text.delta"
                    else [one]
                )
            ]
        },
    ),
)


# Messages


def _one_index(data: Item) -> None:
    if "index" in data:
        data["index"] = 0


def _input_at_once(events: list[Event]) -> list[Event]:
    """The input of a call with its beginning, without deltas."""
    out: list[Event] = []
    inputs = iter(json.loads(call.arguments) for call in TWO_CALLS.calls)
    for event in copy.deepcopy(events):
        if event.name == "content_block_start":
            event.data["content_block"]["input"] = next(inputs)
        if (event.data.get("delta") or {}).get("type") != "input_json_delta":
            out.append(event)
    return out


def _input_twice(events: list[Event]) -> list[Event]:
    out = copy.deepcopy(events)
    inputs = iter(json.loads(call.arguments) for call in TWO_CALLS.calls)
    for event in out:
        if event.name == "content_block_start":
            event.data["content_block"]["input"] = next(inputs)
    return out


def _blocks(change: Callable[[Item], object]) -> Callable[[Item], object]:
    def of(data: Item) -> None:
        for block in [data.get("content_block"), *(data.get("content") or ())]:
            if isinstance(block, dict):
                change(block)

    return of


def _no_delta_types(data: Item) -> None:
    if data["type"] == "content_block_delta":
        data["delta"].pop("type")


def _no_reason(data: Item) -> None:
    if data["type"] == "message_delta":
        data["delta"] = {}


def _early(events: list[Event]) -> list[Event]:
    """A message whose usage is reported in two events at the end."""
    ends = [e for e in events if e.name == "message_delta"]
    return [*events[:-1], *ends, events[-1]]


def _unknown_block(events: list[Event]) -> list[Event]:
    block = {"type": "content_block_start", "index": 0, "content_block": {"type": "hologram"}}
    delta = {"type": "content_block_delta", "index": 0, "delta": {"type": "beam", "beam": "AA"}}
    stop = {"type": "content_block_stop", "index": 0}
    odd = [Event(str(data["type"]), data) for data in (block, delta, stop)]
    return [*events[:2], *odd, *events[2:]]


_NOW = replace(CALL, calls=(Invocation(id="toolu_a", name="now", arguments="{}"),))

MESSAGES: tuple[Quirk, ...] = (
    Quirk(
        id="no-message-start",
        sends="no `message_start`",
        stream=without("messages", "message_start"),
        usage=(0, 7),
    ),
    Quirk(
        id="message-null",
        sends="`message: null` at the start",
        stream=each("messages", lambda d: d.update(message=None) if "message" in d else None),
        usage=(0, 7),
    ),
    Quirk(
        id="no-block-start",
        sends="no `content_block_start` for the text",
        stream=without("messages", "content_block_start"),
    ),
    Quirk(
        id="no-block-stop",
        sends="no `content_block_stop`",
        answer=TWO_CALLS,
        stream=without("messages", "content_block_stop"),
    ),
    Quirk(
        id="one-block-index",
        sends="one index for all blocks",
        answer=TWO_CALLS,
        stream=each("messages", _one_index),
    ),
    Quirk(
        id="block-index-missing",
        sends="blocks without an index",
        answer=TWO_CALLS,
        stream=each("messages", _drop("index")),
    ),
    Quirk(
        id="delta-types-missing",
        sends="deltas without a type",
        stream=each("messages", _no_delta_types),
    ),
    Quirk(
        id="types-missing",
        sends="events whose type is in `event:` only",
        stream=each("messages", _drop("type")),
    ),
    Quirk(
        id="input-at-once",
        sends="the input of a call with its beginning",
        answer=TWO_CALLS,
        stream={"messages": _input_at_once},
    ),
    Quirk(
        id="input-twice",
        sends="the input of a call with its beginning, and in pieces",
        answer=TWO_CALLS,
        stream={"messages": _input_twice},
    ),
    Quirk(
        id="input-text",
        sends="the input of a call as JSON text",
        answer=CALL,
        whole=whole("messages", _blocks(lambda b: b.update(input=json.dumps(b["input"])))),
    ),
    Quirk(
        id="input-missing",
        sends="no input for a tool that takes none",
        answer=_NOW,
        stream=each("messages", _blocks(_drop("input"))),
        whole=whole("messages", _blocks(_drop("input"))),
        calls=(("now", {}),),
    ),
    Quirk(
        id="block-ids-missing",
        sends="calls without ids",
        answer=TWO_CALLS,
        stream=each("messages", _blocks(_drop("id"))),
        whole=whole("messages", _blocks(_drop("id"))),
    ),
    Quirk(
        id="reason-missing",
        sends="no reason of the end, but `message_stop`",
        stream=each("messages", _no_reason),
    ),
    Quirk(
        id="no-message-stop",
        sends="no `message_stop` after the reason of the end",
        stream=without("messages", "message_stop"),
    ),
    Quirk(
        id="message-done", sends="`[DONE]` instead of `message_stop`", stream={"messages": _done}
    ),
    Quirk(id="message-delta-twice", sends="`message_delta` twice", stream={"messages": _early}),
    Quirk(
        id="block-unknown",
        sends="a block of an unknown type",
        stream={"messages": _unknown_block},
        whole=whole("messages", lambda b: b["content"].insert(0, {"type": "hologram"})),
    ),
    Quirk(
        id="content-string",
        sends="content as a string",
        whole=whole("messages", lambda b: b.update(content=TEXT.text)),
    ),
    Quirk(
        id="message-bare",
        sends="a message with nothing but content, reason and usage",
        whole=whole("messages", lambda b: [b.pop(k) for k in ("id", "type", "role", "model")]),
    ),
    Quirk(
        id="no-start-usage",
        sends="no usage at the start of the message",
        stream=each("messages", lambda d: d["message"].pop("usage") if "message" in d else None),
        usage=(0, 7),
    ),
)
