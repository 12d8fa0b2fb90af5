"""Answers in the format of OpenAI Chat Completions."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from clew.testing.provider.answers import CREATED, Answer, Finish, Frame, Invocation, split

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

FINISH: dict[Finish | None, str | None] = {
    "stop": "stop",
    "length": "length",
    "tools": "tool_calls",
    None: None,
}
END = Frame("data: [DONE]\n\n")


def body(answer: Answer) -> dict[str, object]:
    """The whole answer as one object."""
    choice = {
        "index": 0,
        "message": _message(answer),
        "logprobs": None,
        "finish_reason": FINISH[answer.finish],
    }
    return {
        **_head(answer, "chat.completion"),
        "choices": [] if answer.hollow == "choices" else [choice],
        "usage": _usage(answer),
    }


def frames(answer: Answer, request: Mapping[str, Any]) -> Iterator[Frame]:
    """The answer as server-sent events; usage only where the request asks for it."""
    if answer.hollow != "choices":
        yield _chunk(answer, {"role": "assistant", "content": _opening(answer), "refusal": None})
        yield from _deltas(answer)
        yield _chunk(answer, {}, FINISH[answer.finish])
    options: Mapping[str, Any] = request.get("stream_options") or {}
    if options.get("include_usage"):
        head = _head(answer, "chat.completion.chunk")
        yield _event({**head, "choices": [], "usage": _usage(answer)})
    yield END


def error_frame(error: Mapping[str, object]) -> Frame:
    """An error in the middle of a stream."""
    return _event(error)


def _deltas(answer: Answer) -> Iterator[Frame]:
    for piece in split(answer.thinking or "", answer.chunks):
        yield _chunk(answer, {"reasoning_content": piece}, content=True)
    for piece in split(answer.text, answer.chunks):
        yield _chunk(answer, {"content": piece}, content=True)
    for index, call in enumerate(answer.calls):
        function = {"name": call.name, "arguments": ""}
        opening = {"index": index, "id": call.id, "type": "function", "function": function}
        yield _chunk(answer, {"tool_calls": [opening]})
        for piece in split(call.arguments, answer.chunks):
            fragment = {"index": index, "function": {"arguments": piece}}
            yield _chunk(answer, {"tool_calls": [fragment]}, content=True)


def _chunk(
    answer: Answer, delta: Mapping[str, object], finish: str | None = None, *, content: bool = False
) -> Frame:
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
    chunk = {**_head(answer, "chat.completion.chunk"), "choices": [choice], "usage": None}
    return _event(chunk, content=content)


def _event(data: Mapping[str, object], *, content: bool = False) -> Frame:
    return Frame(f"data: {json.dumps(data, ensure_ascii=False)}\n\n", content)


def _head(answer: Answer, kind: str) -> dict[str, object]:
    return {
        "id": f"chatcmpl-{answer.number:06}",
        "object": kind,
        "created": CREATED,
        "model": answer.model,
        "service_tier": "default",
        "system_fingerprint": "fp_fake",
    }


def _opening(answer: Answer) -> object:
    if answer.text or answer.hollow == "text":
        return ""
    return [] if answer.hollow == "list" else None


def _message(answer: Answer) -> dict[str, object]:
    message: dict[str, object] = {
        "role": "assistant",
        "content": answer.text or _opening(answer),
        "refusal": None,
        "annotations": [],
    }
    if answer.thinking is not None:
        message["reasoning_content"] = answer.thinking
    if answer.calls:
        message["tool_calls"] = [_call(call) for call in answer.calls]
    return message


def _call(call: Invocation) -> dict[str, object]:
    function = {"name": call.name, "arguments": call.arguments}
    return {"id": call.id, "type": "function", "function": function}


def _usage(answer: Answer) -> dict[str, object]:
    usage = answer.usage
    return {
        "prompt_tokens": usage.input,
        "completion_tokens": usage.output,
        "total_tokens": usage.input + usage.output,
        "prompt_tokens_details": {"cached_tokens": usage.cached, "audio_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning, "audio_tokens": 0},
    }
