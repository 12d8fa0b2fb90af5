"""Replies in the format of OpenAI Chat Completions."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from clew.testing.provider.resolved_reply import (
    CREATED_AT,
    FinishReason,
    ResolvedCall,
    ResolvedReply,
    SseFrame,
    split_text,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

FINISH_REASONS: dict[FinishReason | None, str | None] = {
    "stop": "stop",
    "length": "length",
    "tools": "tool_calls",
    None: None,
}
DONE_FRAME = SseFrame("data: [DONE]\n\n")


def render_body(answer: ResolvedReply) -> dict[str, object]:
    """Render the whole reply as one object."""
    choice = {
        "index": 0,
        "message": _render_message(answer),
        "logprobs": None,
        "finish_reason": FINISH_REASONS[answer.finish],
    }
    return {
        **_common_fields(answer, "chat.completion"),
        "choices": [] if answer.empty_shape == "choices" else [choice],
        "usage": _render_usage(answer),
    }


def render_frames(answer: ResolvedReply, request: Mapping[str, Any]) -> Iterator[SseFrame]:
    """Render the reply as server-sent events; usage only if the request asks for it."""
    if answer.empty_shape != "choices":
        yield _chunk_frame(
            answer, {"role": "assistant", "content": _initial_content(answer), "refusal": None}
        )
        yield from _delta_frames(answer)
        yield _chunk_frame(answer, {}, FINISH_REASONS[answer.finish])
    options: Mapping[str, Any] = request.get("stream_options") or {}
    if options.get("include_usage"):
        head = _common_fields(answer, "chat.completion.chunk")
        yield _event_frame({**head, "choices": [], "usage": _render_usage(answer)})
    yield DONE_FRAME


def render_error(error: Mapping[str, object]) -> SseFrame:
    """Render an error in the middle of a stream."""
    return _event_frame(error)


def _delta_frames(answer: ResolvedReply) -> Iterator[SseFrame]:
    for piece in split_text(answer.thinking or "", answer.chunks):
        yield _chunk_frame(answer, {"reasoning_content": piece}, content=True)
    for piece in split_text(answer.text, answer.chunks):
        yield _chunk_frame(answer, {"content": piece}, content=True)
    for index, call in enumerate(answer.calls):
        function = {"name": call.name, "arguments": ""}
        opening = {"index": index, "id": call.id, "type": "function", "function": function}
        yield _chunk_frame(answer, {"tool_calls": [opening]})
        for piece in split_text(call.arguments, answer.chunks):
            fragment = {"index": index, "function": {"arguments": piece}}
            yield _chunk_frame(answer, {"tool_calls": [fragment]}, content=True)


def _chunk_frame(
    answer: ResolvedReply,
    delta: Mapping[str, object],
    finish: str | None = None,
    *,
    content: bool = False,
) -> SseFrame:
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
    chunk = {**_common_fields(answer, "chat.completion.chunk"), "choices": [choice], "usage": None}
    return _event_frame(chunk, content=content)


def _event_frame(data: Mapping[str, object], *, content: bool = False) -> SseFrame:
    return SseFrame(f"data: {json.dumps(data, ensure_ascii=False)}\n\n", content)


def _common_fields(answer: ResolvedReply, kind: str) -> dict[str, object]:
    return {
        "id": f"chatcmpl-{answer.number:06}",
        "object": kind,
        "created": CREATED_AT,
        "model": answer.model,
        "service_tier": "default",
        "system_fingerprint": "fp_fake",
    }


def _initial_content(answer: ResolvedReply) -> object:
    if answer.text or answer.empty_shape == "text":
        return ""
    return [] if answer.empty_shape == "list" else None


def _render_message(answer: ResolvedReply) -> dict[str, object]:
    message: dict[str, object] = {
        "role": "assistant",
        "content": answer.text or _initial_content(answer),
        "refusal": None,
        "annotations": [],
    }
    if answer.thinking is not None:
        message["reasoning_content"] = answer.thinking
    if answer.calls:
        message["tool_calls"] = [_render_call(call) for call in answer.calls]
    return message


def _render_call(call: ResolvedCall) -> dict[str, object]:
    function = {"name": call.name, "arguments": call.arguments}
    return {"id": call.id, "type": "function", "function": function}


def _render_usage(answer: ResolvedReply) -> dict[str, object]:
    usage = answer.usage
    return {
        "prompt_tokens": usage.input,
        "completion_tokens": usage.output,
        "total_tokens": usage.input + usage.output,
        "prompt_tokens_details": {"cached_tokens": usage.cached, "audio_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning, "audio_tokens": 0},
    }
