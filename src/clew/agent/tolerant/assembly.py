"""Assembly of whole replies from the events of a valid stream."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, cast

from clew.agent.tolerant.content import dict_or_empty, extract_all_text
from clew.agent.tolerant.unknowns import ignore_unknown

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["assemble_chat_reply", "assemble_messages_reply", "assemble_responses_reply"]

_DELTA_FIELDS = frozenset({"role", "content", "reasoning_content", "refusal", "tool_calls"})


def assemble_chat_reply(chunks: Iterable[dict[str, Any]], given: dict[str, Any]) -> dict[str, Any]:
    """Return a chat completion; ``given`` is the server's whole reply, if it sent one."""
    words: dict[str, list[str]] = {"content": [], "reasoning_content": [], "refusal": []}
    calls: dict[int, dict[str, Any]] = {}
    head: dict[str, Any] = {}
    choice: dict[str, Any] = {"index": 0, "finish_reason": None, "logprobs": None}
    message: dict[str, Any] = {"role": "assistant", "content": None}
    for chunk in chunks:
        head |= {key: value for key, value in chunk.items() if value is not None}
        for part in chunk["choices"]:
            delta = part["delta"]
            choice |= {k: v for k, v in part.items() if k != "delta" and v is not None}
            message |= {key: value for key, value in delta.items() if key not in _DELTA_FIELDS}
            for name, pieces in words.items():
                pieces.append(delta.get(name) or "")
            for call in delta.get("tool_calls") or ():
                _add_call(calls, call)
    message |= {name: text for name, pieces in words.items() if (text := "".join(pieces))}
    if calls:
        message["tool_calls"] = [_drop_index(call) for call in calls.values()]
    if not dict_or_empty(given).get("choices") and not calls and not message["content"]:
        # It had no choice, which differs from an empty choice.
        choices = [] if given else [{**choice, "message": message}]
    else:
        choices = [{**choice, "message": message}]
    return {"created": 0, **head, "object": "chat.completion", "choices": choices}


def _add_call(calls: dict[int, dict[str, Any]], delta: dict[str, Any]) -> None:
    call = calls.setdefault(delta["index"], delta)
    if call is not delta:
        call["function"]["arguments"] += delta["function"]["arguments"]


def _drop_index(call: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in call.items() if key != "index"}


def assemble_messages_reply(events: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """Return a message."""
    message: dict[str, Any] = {}
    blocks: dict[int, dict[str, Any]] = {}
    inputs: dict[int, str] = {}
    for event in events:
        match event["type"]:
            case "message_start":
                message = event["message"]
            case "content_block_start":
                blocks[event["index"]] = dict(event["content_block"])
            case "content_block_delta":
                _add_delta(blocks[event["index"]], event["index"], event["delta"], inputs)
            case "message_delta":
                message |= {key: value for key, value in event.items() if key != "type"}
                message |= message.pop("delta")
            case _:
                pass
    for index, text in inputs.items():
        blocks[index]["input"] = _parse_input(text)
    usage = {"input_tokens": 0, **dict_or_empty(message.get("usage"))}
    content = [block for _, block in sorted(blocks.items()) if block != _EMPTY_BLOCK]
    return {**message, "content": content, "usage": usage}


_EMPTY_BLOCK = {"type": "text", "text": ""}


def _add_delta(
    block: dict[str, Any], index: int, delta: dict[str, Any], inputs: dict[int, str]
) -> None:
    match delta["type"]:
        case "text_delta":
            block["text"] += delta["text"]
        case "thinking_delta":
            block["thinking"] += delta["thinking"]
        case "signature_delta":
            block["signature"] = delta.get("signature")
        case "input_json_delta":
            inputs[index] = inputs.get(index, "") + delta["partial_json"]
        case "citations_delta":
            block["citations"] = [*(block.get("citations") or []), delta.get("citation")]
        case _:
            pass


def _parse_input(text: str) -> object:
    try:
        return json.loads(text)
    except ValueError:
        # Broken JSON stays a string.
        return text


def assemble_responses_reply(events: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """Return a response."""
    texts: list[str] = []
    found: list[str] = []
    arguments: dict[str, str] = {}
    response: dict[str, Any] = {}
    for event in events:
        match event["type"]:
            case "response.output_text.delta":
                texts.append(event["delta"])
            case "response.reasoning_summary_text.delta" if event["item_id"] == "content":
                found.append(event["delta"])
            case "response.function_call_arguments.delta":
                item = event["item_id"]
                arguments[item] = arguments.get(item, "") + event["delta"]
            case "response.completed" | "response.incomplete":
                response = event["response"]
            case _:
                pass
    output = _make_output(response.get("output") or [], "".join(texts), arguments)
    if found:
        summary = [{"type": "summary_text", "text": "".join(found)}]
        output.insert(0, {"type": "reasoning", "id": "content", "summary": summary})
    return {**response, "output": output}


def _make_output(items: list[Any], text: str, arguments: dict[str, str]) -> list[Any]:
    output: list[Any] = []
    said = False
    for item in items:
        match item.get("type"):
            case "function_call":
                output.append({**item, "arguments": arguments.get(item["id"], "")})
            case "message" if not said:
                said = True
                if text or isinstance(item.get("content"), list):
                    output.append(_make_message(item, text))
            case "message":
                pass
            case _:
                output.append(item)
    if text and not said:
        output.append(_make_message({}, text))
    return output


def _make_message(item: dict[str, Any], text: str) -> dict[str, Any]:
    content: object = item.get("content")
    listed = cast("list[object]", content) if isinstance(content, list) else []
    parts = [dict_or_empty(part) for part in listed]
    proper = all(part.get("type") == "refusal" or _is_text_part(part) for part in parts)
    if proper and extract_all_text(item.get("content"), ignore_unknown) == text and parts:
        return item
    if any(part.get("type") == "refusal" for part in parts):
        return item
    part: dict[str, Any] = {"type": "output_text", "text": text, "annotations": []}
    said: list[dict[str, Any]] = [{**part, "logprobs": []}] if text else []
    about = {"id": "msg", "status": "completed", **item}
    return {**about, "type": "message", "role": "assistant", "content": said}


def _is_text_part(part: dict[str, Any]) -> bool:
    return part.get("type") == "output_text" and isinstance(part.get("text"), str)
