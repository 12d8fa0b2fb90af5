"""Answers in the format of Anthropic Messages."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from clew.testing.provider.answers import Answer, Finish, Frame, Invocation, split

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

Block = dict[str, Any]
STOP: dict[Finish | None, str | None] = {
    "stop": "end_turn",
    "length": "max_tokens",
    "tools": "tool_use",
    None: None,
}
SIGNATURE = "ZmFrZSBzaWduYXR1cmU="


def body(answer: Answer) -> dict[str, object]:
    """The whole answer as one object."""
    content = [whole for _, _, whole in _blocks(answer)]
    return _message(answer, content, STOP[answer.finish], answer.usage.output)


def frames(answer: Answer, request: Mapping[str, Any]) -> Iterator[Frame]:
    """The answer as server-sent events."""
    del request
    message = _message(answer, [], None, 1)
    yield _event({"type": "message_start", "message": message})
    yield _event({"type": "ping"})
    for index, (empty, deltas, _) in enumerate(_blocks(answer)):
        opening = {"type": "content_block_start", "index": index, "content_block": empty}
        yield _event(opening)
        for delta in deltas:
            chunk = {"type": "content_block_delta", "index": index, "delta": delta}
            yield _event(chunk, content=delta["type"] != "signature_delta")
        yield _event({"type": "content_block_stop", "index": index})
    stop = {"stop_reason": STOP[answer.finish], "stop_sequence": None}
    usage = {"output_tokens": answer.usage.output}
    yield _event({"type": "message_delta", "delta": stop, "usage": usage})
    yield _event({"type": "message_stop"})


def error_frame(error: Mapping[str, Any]) -> Frame:
    """An error in the middle of a stream."""
    return _event({**error, "type": "error"})


def _event(event: Block, *, content: bool = False) -> Frame:
    data = json.dumps(event, ensure_ascii=False)
    return Frame(f"event: {event['type']}\ndata: {data}\n\n", content)


def _blocks(answer: Answer) -> Iterator[tuple[Block, list[Block], Block]]:
    """Each block: as it begins, its deltas, and whole."""
    if answer.thinking is not None:
        yield _thinking(answer.thinking, answer.chunks)
    if answer.text or answer.hollow == "text":
        deltas = [_text_delta(piece) for piece in split(answer.text, answer.chunks)]
        yield {"type": "text", "text": ""}, deltas, {"type": "text", "text": answer.text}
    for call in answer.calls:
        yield _tool_use(call, answer.chunks)


def _text_delta(piece: str) -> Block:
    return {"type": "text_delta", "text": piece}


def _thinking(text: str, chunks: int) -> tuple[Block, list[Block], Block]:
    deltas = [{"type": "thinking_delta", "thinking": piece} for piece in split(text, chunks)]
    deltas.append({"type": "signature_delta", "signature": SIGNATURE})
    whole = {"type": "thinking", "thinking": text, "signature": SIGNATURE}
    return {**whole, "thinking": "", "signature": ""}, deltas, whole


def _tool_use(call: Invocation, chunks: int) -> tuple[Block, list[Block], Block]:
    empty: Block = {"type": "tool_use", "id": call.id, "name": call.name, "input": {}}
    pieces = split(call.arguments, chunks)
    deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in pieces]
    return empty, deltas, {**empty, "input": _value(call.arguments)}


def _value(arguments: str) -> object:
    try:
        return json.loads(arguments)
    except ValueError:
        # There is no place for broken JSON in a whole answer: it arrives as a string.
        return arguments


def _message(
    answer: Answer, content: list[Block], stop: str | None, output: int
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
