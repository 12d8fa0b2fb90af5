"""Parsing of request bodies in the three formats to neutral messages."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, cast

from clew.testing.provider.request import (
    MessageRole,
    ProviderMessage,
    SeenCall,
    SeenResult,
    WireFormat,
)

Json = Mapping[str, Any]


def parse_messages(format_: WireFormat, body: Json) -> tuple[ProviderMessage, ...]:
    """Return the messages of a request, instructions first, in their original order."""
    if format_ == "chat":
        return tuple(_parse_chat_message(item) for item in _filter_objects(body.get("messages")))
    if format_ == "responses":
        return tuple(_parse_response_items(body))
    return tuple(_parse_anthropic_messages(body))


def tool_names(body: Json) -> tuple[str, ...]:
    """Return the names of the offered tools, built-in ones by their type."""
    return tuple(_tool_name(tool) for tool in _filter_objects(body.get("tools")))


def _tool_name(tool: Json) -> str:
    inner = tool.get("function", tool)
    return str(inner.get("name", tool.get("type", "")))


def _filter_objects(value: object) -> list[Json]:
    items = cast("Iterable[object]", value) if isinstance(value, list) else ()
    return [cast("Json", item) for item in items if isinstance(item, Mapping)]


def _extract_texts(content: object) -> tuple[str, ...]:
    if isinstance(content, str):
        return (content,)
    return tuple(str(part["text"]) for part in _filter_objects(content) if "text" in part)


def _parse_role(name: object) -> MessageRole:
    if name in {"system", "developer"}:
        return "system"
    return "assistant" if name == "assistant" else "tool" if name == "tool" else "user"


def _parse_chat_message(item: Json) -> ProviderMessage:
    role, texts = _parse_role(item.get("role")), _extract_texts(item.get("content"))
    if role == "tool":
        result = SeenResult(call_id=str(item.get("tool_call_id")), text="\n".join(texts))
        return ProviderMessage(role=role, results=(result,))
    calls = tuple(_parse_chat_call(call) for call in _filter_objects(item.get("tool_calls")))
    return ProviderMessage(role=role, texts=texts, calls=calls)


def _parse_chat_call(call: Json) -> SeenCall:
    function: Json = call.get("function") or {}
    return SeenCall(
        id=str(call.get("id")),
        name=str(function.get("name")),
        arguments=str(function.get("arguments", "")),
    )


def _parse_response_items(body: Json) -> Iterator[ProviderMessage]:
    if instructions := body.get("instructions"):
        yield ProviderMessage(role="system", texts=(str(instructions),))
    if isinstance(given := body.get("input"), str):
        yield ProviderMessage(role="user", texts=(given,))
        return
    for item in _filter_objects(given):
        yield _parse_response_item(item)


def _parse_response_item(item: Json) -> ProviderMessage:
    kind = item.get("type", "message")
    if kind == "function_call":
        call = SeenCall(
            id=str(item.get("call_id")),
            name=str(item.get("name")),
            arguments=str(item.get("arguments", "")),
        )
        return ProviderMessage(role="assistant", calls=(call,))
    if kind == "function_call_output":
        text = "\n".join(_extract_texts(item.get("output")))
        result = SeenResult(call_id=str(item.get("call_id")), text=text)
        return ProviderMessage(role="tool", results=(result,))
    if kind == "message":
        return ProviderMessage(
            role=_parse_role(item.get("role")), texts=_extract_texts(item.get("content"))
        )
    return ProviderMessage(role="assistant")


def _parse_anthropic_messages(body: Json) -> Iterator[ProviderMessage]:
    if system := _extract_texts(body.get("system")):
        yield ProviderMessage(role="system", texts=system)
    for item in _filter_objects(body.get("messages")):
        content = item.get("content")
        blocks = _filter_objects(content)
        yield ProviderMessage(
            role=_parse_role(item.get("role")),
            texts=_extract_texts(content),
            calls=tuple(_parse_anthropic_call(b) for b in blocks if b.get("type") == "tool_use"),
            results=tuple(
                _parse_anthropic_result(b) for b in blocks if b.get("type") == "tool_result"
            ),
        )


def _parse_anthropic_call(block: Json) -> SeenCall:
    return SeenCall(
        id=str(block.get("id")),
        name=str(block.get("name")),
        arguments=json.dumps(block.get("input"), ensure_ascii=False),
    )


def _parse_anthropic_result(block: Json) -> SeenResult:
    text = "\n".join(_extract_texts(block.get("content")))
    return SeenResult(call_id=str(block.get("tool_use_id")), text=text)
