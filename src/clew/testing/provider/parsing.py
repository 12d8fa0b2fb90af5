"""Request bodies of the three formats to neutral messages."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, cast

from clew.testing.provider.request import Format, Message, Role, SeenCall, SeenResult

Json = Mapping[str, Any]


def parse_messages(format_: Format, body: Json) -> tuple[Message, ...]:
    """The messages of a request, instructions first, in the order of the wire."""
    if format_ == "chat":
        return tuple(_chat_message(item) for item in _objects(body.get("messages")))
    if format_ == "responses":
        return tuple(_response_items(body))
    return tuple(_anthropic_messages(body))


def tool_names(body: Json) -> tuple[str, ...]:
    """The names of the tools on offer, built-in ones by their type."""
    return tuple(_tool_name(tool) for tool in _objects(body.get("tools")))


def _tool_name(tool: Json) -> str:
    inner = tool.get("function", tool)
    return str(inner.get("name", tool.get("type", "")))


def _objects(value: object) -> list[Json]:
    items = cast("Iterable[object]", value) if isinstance(value, list) else ()
    return [cast("Json", item) for item in items if isinstance(item, Mapping)]


def _texts(content: object) -> tuple[str, ...]:
    if isinstance(content, str):
        return (content,)
    return tuple(str(part["text"]) for part in _objects(content) if "text" in part)


def _role(name: object) -> Role:
    if name in {"system", "developer"}:
        return "system"
    return "assistant" if name == "assistant" else "tool" if name == "tool" else "user"


def _chat_message(item: Json) -> Message:
    role, texts = _role(item.get("role")), _texts(item.get("content"))
    if role == "tool":
        result = SeenResult(call_id=str(item.get("tool_call_id")), text="\n".join(texts))
        return Message(role=role, results=(result,))
    calls = tuple(_chat_call(call) for call in _objects(item.get("tool_calls")))
    return Message(role=role, texts=texts, calls=calls)


def _chat_call(call: Json) -> SeenCall:
    function: Json = call.get("function") or {}
    return SeenCall(
        id=str(call.get("id")),
        name=str(function.get("name")),
        arguments=str(function.get("arguments", "")),
    )


def _response_items(body: Json) -> Iterator[Message]:
    if instructions := body.get("instructions"):
        yield Message(role="system", texts=(str(instructions),))
    if isinstance(given := body.get("input"), str):
        yield Message(role="user", texts=(given,))
        return
    for item in _objects(given):
        yield _response_item(item)


def _response_item(item: Json) -> Message:
    kind = item.get("type", "message")
    if kind == "function_call":
        call = SeenCall(
            id=str(item.get("call_id")),
            name=str(item.get("name")),
            arguments=str(item.get("arguments", "")),
        )
        return Message(role="assistant", calls=(call,))
    if kind == "function_call_output":
        text = "\n".join(_texts(item.get("output")))
        result = SeenResult(call_id=str(item.get("call_id")), text=text)
        return Message(role="tool", results=(result,))
    if kind == "message":
        return Message(role=_role(item.get("role")), texts=_texts(item.get("content")))
    return Message(role="assistant")


def _anthropic_messages(body: Json) -> Iterator[Message]:
    if system := _texts(body.get("system")):
        yield Message(role="system", texts=system)
    for item in _objects(body.get("messages")):
        content = item.get("content")
        blocks = _objects(content)
        yield Message(
            role=_role(item.get("role")),
            texts=_texts(content),
            calls=tuple(_anthropic_call(b) for b in blocks if b.get("type") == "tool_use"),
            results=tuple(_anthropic_result(b) for b in blocks if b.get("type") == "tool_result"),
        )


def _anthropic_call(block: Json) -> SeenCall:
    return SeenCall(
        id=str(block.get("id")),
        name=str(block.get("name")),
        arguments=json.dumps(block.get("input"), ensure_ascii=False),
    )


def _anthropic_result(block: Json) -> SeenResult:
    text = "\n".join(_texts(block.get("content")))
    return SeenResult(call_id=str(block.get("tool_use_id")), text=text)
