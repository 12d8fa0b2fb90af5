"""Replies in the format of Anthropic Messages."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from clew.testing.provider.resolved_reply import (
    FinishReason,
    ResolvedCall,
    ResolvedReply,
    SseFrame,
    split_text,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

Block = dict[str, Any]
STOP_REASONS: dict[FinishReason | None, str | None] = {
    "stop": "end_turn",
    "length": "max_tokens",
    "tools": "tool_use",
    None: None,
}
SIGNATURE = "ZmFrZSBzaWduYXR1cmU="


def render_body(answer: ResolvedReply) -> dict[str, object]:
    """Render the whole reply as one object."""
    content = [whole for _, _, whole in _render_blocks(answer)]
    return _render_message(answer, content, STOP_REASONS[answer.finish], answer.usage.output)


def render_frames(answer: ResolvedReply, request: Mapping[str, Any]) -> Iterator[SseFrame]:
    """Render the reply as server-sent events."""
    del request
    message = _render_message(answer, [], None, 1)
    yield _event_frame({"type": "message_start", "message": message})
    yield _event_frame({"type": "ping"})
    for index, (empty, deltas, _) in enumerate(_render_blocks(answer)):
        opening = {"type": "content_block_start", "index": index, "content_block": empty}
        yield _event_frame(opening)
        for delta in deltas:
            chunk = {"type": "content_block_delta", "index": index, "delta": delta}
            yield _event_frame(chunk, content=delta["type"] != "signature_delta")
        yield _event_frame({"type": "content_block_stop", "index": index})
    stop = {"stop_reason": STOP_REASONS[answer.finish], "stop_sequence": None}
    usage = {"output_tokens": answer.usage.output}
    yield _event_frame({"type": "message_delta", "delta": stop, "usage": usage})
    yield _event_frame({"type": "message_stop"})


def render_error(error: Mapping[str, Any]) -> SseFrame:
    """Render an error in the middle of a stream."""
    return _event_frame({**error, "type": "error"})


def _event_frame(event: Block, *, content: bool = False) -> SseFrame:
    data = json.dumps(event, ensure_ascii=False)
    return SseFrame(f"event: {event['type']}\ndata: {data}\n\n", content)


def _render_blocks(answer: ResolvedReply) -> Iterator[tuple[Block, list[Block], Block]]:
    """Yield each block as its start, its deltas, and the complete block."""
    if answer.thinking is not None:
        yield _thinking_block(answer.thinking, answer.chunks)
    if answer.text or answer.empty_shape == "text":
        deltas = [_text_delta(piece) for piece in split_text(answer.text, answer.chunks)]
        yield {"type": "text", "text": ""}, deltas, {"type": "text", "text": answer.text}
    for call in answer.calls:
        yield _tool_use_block(call, answer.chunks)


def _text_delta(piece: str) -> Block:
    return {"type": "text_delta", "text": piece}


def _thinking_block(text: str, chunks: int) -> tuple[Block, list[Block], Block]:
    deltas = [{"type": "thinking_delta", "thinking": piece} for piece in split_text(text, chunks)]
    deltas.append({"type": "signature_delta", "signature": SIGNATURE})
    whole = {"type": "thinking", "thinking": text, "signature": SIGNATURE}
    return {**whole, "thinking": "", "signature": ""}, deltas, whole


def _tool_use_block(call: ResolvedCall, chunks: int) -> tuple[Block, list[Block], Block]:
    empty: Block = {"type": "tool_use", "id": call.id, "name": call.name, "input": {}}
    pieces = split_text(call.arguments, chunks)
    deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in pieces]
    return empty, deltas, {**empty, "input": _parse_arguments(call.arguments)}


def _parse_arguments(arguments: str) -> object:
    try:
        return json.loads(arguments)
    except ValueError:
        # A complete reply cannot contain invalid JSON: it is sent as a string.
        return arguments


def _render_message(
    answer: ResolvedReply, content: list[Block], stop: str | None, output: int
) -> dict[str, object]:
    usage = answer.usage
    return {
        "id": f"msg_{answer.number:06}",
        "type": "message",
        "role": "assistant",
        "model": answer.model,
        "content": content,
        "stop_reason": stop,
        "stop_sequence": None,
        "usage": {
            "input_tokens": usage.input - usage.cached,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": usage.cached,
            "output_tokens": output,
            "service_tier": "standard",
        },
    }
