"""Replies in the format of OpenAI Responses."""

from __future__ import annotations

import itertools
import json
from typing import TYPE_CHECKING, Any

from clew.testing.provider.resolved_reply import (
    CREATED_AT,
    ResolvedCall,
    ResolvedReply,
    SseFrame,
    split_text,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

Item = dict[str, Any]


def render_body(answer: ResolvedReply) -> dict[str, object]:
    """Render the whole reply as one object."""
    status = {"length": "incomplete", None: "in_progress"}.get(answer.finish, "completed")
    return _render_response(answer, status, _render_items(answer))


def render_frames(answer: ResolvedReply, request: Mapping[str, Any]) -> Iterator[SseFrame]:
    """Render the reply as numbered server-sent events."""
    del request
    numbers = itertools.count()
    for event, content in _iter_events(answer):
        numbered = {**event, "sequence_number": next(numbers)}
        yield SseFrame(_encode_event(numbered), content)


def render_error(error: Mapping[str, Any]) -> SseFrame:
    """Render an error in the middle of a stream; its sequence number is arbitrary."""
    inner: Mapping[str, Any] = error["error"]
    fields = {name: inner.get(name) for name in ("code", "message", "param")}
    return SseFrame(_encode_event({"type": "error", **fields, "sequence_number": 1000}))


def _encode_event(event: Item) -> str:
    return f"event: {event['type']}\ndata: {json.dumps(event, ensure_ascii=False)}\n\n"


def _iter_events(answer: ResolvedReply) -> Iterator[tuple[Item, bool]]:
    for kind in ("response.created", "response.in_progress"):
        yield {"type": kind, "response": _render_response(answer, "in_progress", [])}, False
    for index, item in enumerate(_render_items(answer)):
        place = {"output_index": index, "item_id": item["id"]}
        added = {"type": "response.output_item.added", "output_index": index}
        yield {**added, "item": _started_item(item)}, False
        for event, content in _iter_item_events(item, answer.chunks):
            yield {**place, **event}, content
        yield {"type": "response.output_item.done", "output_index": index, "item": item}, False
    end = "response.incomplete" if answer.finish == "length" else "response.completed"
    yield {"type": end, "response": render_body(answer)}, False


def _started_item(item: Item) -> Item:
    """Return an item before its first chunk."""
    empty = {"message": "content", "reasoning": "summary", "function_call": "arguments"}
    key = empty[item["type"]]
    return {**item, "status": "in_progress", key: "" if key == "arguments" else []}


def _iter_item_events(item: Item, chunks: int) -> Iterator[tuple[Item, bool]]:
    if item["type"] == "function_call":
        kind = "response.function_call_arguments"
        for piece in split_text(item["arguments"], chunks):
            yield {"type": f"{kind}.delta", "delta": piece}, True
        done = {"type": f"{kind}.done", "name": item["name"], "arguments": item["arguments"]}
        yield done, False
    elif item["type"] == "message":
        for part in item["content"]:
            names = ("content_index", "response.content_part", "response.output_text")
            yield from _iter_part_events(part, names, chunks)
    else:
        names = ("summary_index", "response.reasoning_summary_part")
        yield from _iter_part_events(
            item["summary"][0], (*names, "response.reasoning_summary_text"), chunks
        )


def _iter_part_events(
    part: Item, names: tuple[str, str, str], chunks: int
) -> Iterator[tuple[Item, bool]]:
    index, part_kind, text_kind = names
    logprobs: Item = {"logprobs": []} if part["type"] == "output_text" else {}
    yield {"type": f"{part_kind}.added", index: 0, "part": {**part, "text": ""}}, False
    for piece in split_text(part["text"], chunks):
        yield {"type": f"{text_kind}.delta", index: 0, "delta": piece, **logprobs}, True
    yield {"type": f"{text_kind}.done", index: 0, "text": part["text"], **logprobs}, False
    yield {"type": f"{part_kind}.done", index: 0, "part": part}, False


def _render_items(answer: ResolvedReply) -> list[Item]:
    items: list[Item] = []
    if answer.thinking is not None:
        summary = {"type": "summary_text", "text": answer.thinking}
        items.append({"id": f"rs_{answer.number:06}", "type": "reasoning", "summary": [summary]})
    if answer.text or answer.empty_shape in {"list", "text"}:
        items.append(_render_message(answer))
    items.extend(_render_call(call) for call in answer.calls)
    return items


def _render_message(answer: ResolvedReply) -> Item:
    part: Item = {"type": "output_text", "text": answer.text, "annotations": [], "logprobs": []}
    return {
        "id": f"msg_{answer.number:06}",
        "type": "message",
        "role": "assistant",
        "status": "incomplete" if answer.finish == "length" else "completed",
        "content": [] if answer.empty_shape == "list" else [part],
    }


def _render_call(call: ResolvedCall) -> Item:
    return {
        "id": f"fc_{call.id}",
        "type": "function_call",
        "status": "completed",
        "call_id": call.id,
        "name": call.name,
        "arguments": call.arguments,
    }


def _render_response(answer: ResolvedReply, status: str, output: list[Item]) -> dict[str, object]:
    cut = {"reason": "max_output_tokens"} if status == "incomplete" else None
    return {
        "id": f"resp_{answer.number:06}",
        "object": "response",
        "created_at": CREATED_AT,
        "status": status,
        "background": False,
        "error": None,
        "incomplete_details": cut,
        "instructions": None,
        "max_output_tokens": None,
        "model": answer.model,
        "output": output,
        "parallel_tool_calls": True,
        "previous_response_id": None,
        "reasoning": {"effort": None, "summary": None},
        "store": False,
        "temperature": 1.0,
        "text": {"format": {"type": "text"}},
        "tool_choice": "auto",
        "tools": [],
        "top_p": 1.0,
        "truncation": "disabled",
        "usage": None if status == "in_progress" else _render_usage(answer),
        "user": None,
        "metadata": {},
    }


def _render_usage(answer: ResolvedReply) -> dict[str, object]:
    usage = answer.usage
    return {
        "input_tokens": usage.input,
        "input_tokens_details": {"cached_tokens": usage.cached, "cache_write_tokens": 0},
        "output_tokens": usage.output,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning},
        "total_tokens": usage.input + usage.output,
    }
