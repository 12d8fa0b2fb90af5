"""Quirks of OpenAI's Responses format and of Anthropic's Messages format."""

# This table consists of JSON of any shape.
# pyright: reportUnknownLambdaType=false, reportUnknownArgumentType=false
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false

from __future__ import annotations

import copy
import json
from typing import TYPE_CHECKING, Any

from clew.record import replace
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

Item = dict[str, Any]


def change_events(form: str, change: Callable[[Item], object]) -> dict[Any, StreamChange]:
    """Change each event of a stream in place; drop it if the change returns ``False``."""

    def change_stream(events: list[ReplyEvent]) -> list[ReplyEvent]:
        out: list[ReplyEvent] = []
        for event in events:
            data = copy.deepcopy(event.data)
            out += [] if change(data) is False else [ReplyEvent(event.name, data)]
        return out

    return {form: change_stream}


def drop_events(form: str, *kinds: str) -> dict[Any, StreamChange]:
    """Return a stream without the events of these types."""
    return {form: lambda events: [e for e in events if e.name not in kinds]}


def change_body(form: str, change: Callable[[Item], object]) -> dict[Any, BodyChange]:
    """Change an unstreamed reply in place."""

    def change_reply(body: Item) -> Item:
        change(body)
        return body

    return {form: change_reply}


def _drop_keys(*names: str) -> Callable[[Item], object]:
    def drop_from(data: Item) -> None:
        for name in names:
            data.pop(name, None)

    return drop_from


def _end_with_done(events: list[ReplyEvent]) -> list[ReplyEvent]:
    return [*events[:-1], ReplyEvent(None, "[DONE]")]


# Responses


def _change_items(change: Callable[[Item], object]) -> Callable[[Item], object]:
    def change_all(data: Item) -> None:
        response = data.get("response", data)
        for item in [data.get("item"), *(response.get("output") or ())]:
            if isinstance(item, dict):
                change(item)

    return change_all


def _drop_item_ids(data: Item) -> None:
    data.pop("item_id", None)
    _change_items(_drop_keys("id"))(data)


def _decode_arguments(item: Item) -> None:
    if item.get("arguments"):
        item["arguments"] = json.loads(item["arguments"])


def _drop_output(data: Item) -> None:
    if "response" in data:
        data["response"]["output"] = None


def _drop_responses(data: Item) -> None:
    if "response" in data and data["type"] != "response.completed":
        data["response"] = None


def _share_item_id(data: Item) -> None:
    if "item_id" in data:
        data["item_id"] = "fc_0"
    _change_items(lambda item: item.update(id="fc_0"))(data)


def _strip_response(body: Item) -> None:
    kept = {key: body[key] for key in ("status", "output", "usage")}
    body.clear()
    body |= kept


RESPONSES_QUIRKS: tuple[Quirk, ...] = (
    Quirk(
        id="no-created",
        description="no `response.created`",
        stream=drop_events("responses", "response.created", "response.in_progress"),
    ),
    Quirk(
        id="response-null",
        description="`response: null` before the end",
        stream=change_events("responses", _drop_responses),
    ),
    Quirk(
        id="done-for-completed",
        description="`[DONE]` instead of `response.completed`",
        stream={"responses": _end_with_done},
        usage=(0, 0),
    ),
    Quirk(
        id="completed-only",
        description="nothing but `response.completed`",
        stream={"responses": lambda events: events[-1:]},
    ),
    Quirk(
        id="completed-only-calls",
        description="calls in `response.completed` only",
        reply=TWO_CALLS_REPLY,
        stream={"responses": lambda events: events[-1:]},
    ),
    Quirk(
        id="no-deltas",
        description="no deltas, only the texts as they are done",
        stream=drop_events("responses", "response.output_text.delta"),
    ),
    Quirk(
        id="items-only",
        description="items as they are done, and nothing of them before",
        reply=TWO_CALLS_REPLY,
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
        description="no `response.output_item.done`",
        reply=TWO_CALLS_REPLY,
        stream=drop_events(
            "responses", "response.output_item.done", "response.function_call_arguments.done"
        ),
    ),
    Quirk(
        id="item-ids-missing",
        description="items without ids",
        stream=change_events("responses", _drop_item_ids),
        whole=change_body("responses", _change_items(_drop_keys("id"))),
    ),
    Quirk(
        id="item-ids-missing-calls",
        description="calls without ids of their items",
        reply=TWO_CALLS_REPLY,
        stream=change_events("responses", _drop_item_ids),
        whole=change_body("responses", _change_items(_drop_keys("id"))),
    ),
    Quirk(
        id="call-id-missing",
        description="calls without `call_id`",
        reply=TWO_CALLS_REPLY,
        stream=change_events("responses", _change_items(_drop_keys("call_id"))),
        whole=change_body("responses", _change_items(_drop_keys("call_id"))),
    ),
    Quirk(
        id="one-item-id",
        description="two calls whose items have one id",
        reply=TWO_CALLS_REPLY,
        stream=change_events("responses", _share_item_id),
    ),
    Quirk(
        id="item-arguments-object",
        description="the arguments of an item as an object",
        reply=CALL_REPLY,
        stream=change_events("responses", _change_items(_decode_arguments)),
        whole=change_body("responses", _change_items(_decode_arguments)),
    ),
    Quirk(
        id="numbers-missing",
        description="events without numbers and places",
        stream=change_events(
            "responses", _drop_keys("sequence_number", "output_index", "content_index")
        ),
    ),
    Quirk(
        id="output-null",
        description="`output: null` at the end",
        stream=change_events("responses", _drop_output),
    ),
    Quirk(
        id="response-bare",
        description="a response with nothing but status, output and usage",
        whole=change_body("responses", _strip_response),
    ),
    Quirk(
        id="item-unknown-content",
        description="a message whose content is a string",
        whole=change_body(
            "responses", _change_items(lambda item: item.update(content=TEXT_REPLY.text))
        ),
    ),
    Quirk(
        id="delta-null-text",
        description="`delta: null` among the texts",
        stream={
            "responses": lambda events: [
                e
                for one in events
                for e in (
                    [one, ReplyEvent(one.name, {**one.data, "delta": None})]
                    if one.name == "response.output_text.delta"
                    else [one]
                )
            ]
        },
    ),
)


# Messages


def _share_index(data: Item) -> None:
    if "index" in data:
        data["index"] = 0


def _move_input(events: list[ReplyEvent]) -> list[ReplyEvent]:
    """Send the input of a call with its start, without deltas."""
    out: list[ReplyEvent] = []
    inputs = iter(json.loads(call.arguments) for call in TWO_CALLS_REPLY.calls)
    for event in copy.deepcopy(events):
        if event.name == "content_block_start":
            event.data["content_block"]["input"] = next(inputs)
        if (event.data.get("delta") or {}).get("type") != "input_json_delta":
            out.append(event)
    return out


def _repeat_input(events: list[ReplyEvent]) -> list[ReplyEvent]:
    out = copy.deepcopy(events)
    inputs = iter(json.loads(call.arguments) for call in TWO_CALLS_REPLY.calls)
    for event in out:
        if event.name == "content_block_start":
            event.data["content_block"]["input"] = next(inputs)
    return out


def _change_blocks(change: Callable[[Item], object]) -> Callable[[Item], object]:
    def change_all(data: Item) -> None:
        for block in [data.get("content_block"), *(data.get("content") or ())]:
            if isinstance(block, dict):
                change(block)

    return change_all


def _drop_delta_types(data: Item) -> None:
    if data["type"] == "content_block_delta":
        data["delta"].pop("type")


def _drop_reason(data: Item) -> None:
    if data["type"] == "message_delta":
        data["delta"] = {}


def _repeat_usage(events: list[ReplyEvent]) -> list[ReplyEvent]:
    """Report the usage of a message in two events at the end."""
    ends = [e for e in events if e.name == "message_delta"]
    return [*events[:-1], *ends, events[-1]]


def _insert_unknown_block(events: list[ReplyEvent]) -> list[ReplyEvent]:
    block = {"type": "content_block_start", "index": 0, "content_block": {"type": "hologram"}}
    delta = {"type": "content_block_delta", "index": 0, "delta": {"type": "beam", "beam": "AA"}}
    stop = {"type": "content_block_stop", "index": 0}
    odd = [ReplyEvent(str(data["type"]), data) for data in (block, delta, stop)]
    return [*events[:2], *odd, *events[2:]]


_NOW = replace(CALL_REPLY, calls=(ResolvedCall(id="toolu_a", name="now", arguments="{}"),))

MESSAGES_QUIRKS: tuple[Quirk, ...] = (
    Quirk(
        id="no-message-start",
        description="no `message_start`",
        stream=drop_events("messages", "message_start"),
        usage=(0, 7),
    ),
    Quirk(
        id="message-null",
        description="`message: null` at the start",
        stream=change_events(
            "messages", lambda d: d.update(message=None) if "message" in d else None
        ),
        usage=(0, 7),
    ),
    Quirk(
        id="no-block-start",
        description="no `content_block_start` for the text",
        stream=drop_events("messages", "content_block_start"),
    ),
    Quirk(
        id="no-block-stop",
        description="no `content_block_stop`",
        reply=TWO_CALLS_REPLY,
        stream=drop_events("messages", "content_block_stop"),
    ),
    Quirk(
        id="one-block-index",
        description="one index for all blocks",
        reply=TWO_CALLS_REPLY,
        stream=change_events("messages", _share_index),
    ),
    Quirk(
        id="block-index-missing",
        description="blocks without an index",
        reply=TWO_CALLS_REPLY,
        stream=change_events("messages", _drop_keys("index")),
    ),
    Quirk(
        id="delta-types-missing",
        description="deltas without a type",
        stream=change_events("messages", _drop_delta_types),
    ),
    Quirk(
        id="types-missing",
        description="events whose type is in `event:` only",
        stream=change_events("messages", _drop_keys("type")),
    ),
    Quirk(
        id="input-at-once",
        description="the input of a call with its beginning",
        reply=TWO_CALLS_REPLY,
        stream={"messages": _move_input},
    ),
    Quirk(
        id="input-twice",
        description="the input of a call with its beginning, and in pieces",
        reply=TWO_CALLS_REPLY,
        stream={"messages": _repeat_input},
    ),
    Quirk(
        id="input-text",
        description="the input of a call as JSON text",
        reply=CALL_REPLY,
        whole=change_body(
            "messages", _change_blocks(lambda b: b.update(input=json.dumps(b["input"])))
        ),
    ),
    Quirk(
        id="input-missing",
        description="no input for a tool that takes none",
        reply=_NOW,
        stream=change_events("messages", _change_blocks(_drop_keys("input"))),
        whole=change_body("messages", _change_blocks(_drop_keys("input"))),
        calls=(("now", {}),),
    ),
    Quirk(
        id="block-ids-missing",
        description="calls without ids",
        reply=TWO_CALLS_REPLY,
        stream=change_events("messages", _change_blocks(_drop_keys("id"))),
        whole=change_body("messages", _change_blocks(_drop_keys("id"))),
    ),
    Quirk(
        id="reason-missing",
        description="no reason of the end, but `message_stop`",
        stream=change_events("messages", _drop_reason),
    ),
    Quirk(
        id="no-message-stop",
        description="no `message_stop` after the reason of the end",
        stream=drop_events("messages", "message_stop"),
    ),
    Quirk(
        id="message-done",
        description="`[DONE]` instead of `message_stop`",
        stream={"messages": _end_with_done},
    ),
    Quirk(
        id="message-delta-twice",
        description="`message_delta` twice",
        stream={"messages": _repeat_usage},
    ),
    Quirk(
        id="block-unknown",
        description="a block of an unknown type",
        stream={"messages": _insert_unknown_block},
        whole=change_body("messages", lambda b: b["content"].insert(0, {"type": "hologram"})),
    ),
    Quirk(
        id="content-string",
        description="content as a string",
        whole=change_body("messages", lambda b: b.update(content=TEXT_REPLY.text)),
    ),
    Quirk(
        id="message-bare",
        description="a message with nothing but content, reason and usage",
        whole=change_body(
            "messages", lambda b: [b.pop(k) for k in ("id", "type", "role", "model")]
        ),
    ),
    Quirk(
        id="no-start-usage",
        description="no usage at the start of the message",
        stream=change_events(
            "messages", lambda d: d["message"].pop("usage") if "message" in d else None
        ),
        usage=(0, 7),
    ),
)
