"""Conversations in the forms that other programs read: ChatML and ShareGPT, one per line."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, cast

from clew.core.export_format.schema import TEXT_KEY
from clew.core.export_format.sealed_lines import encode_json

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence

    from clew.engine.exports import ConversationExporter

PortableForm: TypeAlias = Literal["chatml", "sharegpt"]
_Message: TypeAlias = "dict[str, Any]"


async def iter_portable_lines(
    exports: ConversationExporter,
    chosen: Sequence[str] | None,
    form: PortableForm,
    *,
    on_conversation: Callable[[int], None],
) -> AsyncIterator[bytes]:
    """
    Yield a line for each conversation: all of its messages, with calls and results.

    What is no message (notices, failed attempts) and what a branch began with are left out.
    """
    encode = _ENCODERS[form]
    about: Mapping[str, Any] = {}
    messages: list[_Message] = []
    async for kind, line in exports.iter_records(chosen, on_conversation=on_conversation):
        match kind:
            case "conversation":
                about, messages = line, []
            case "entry" if line["kind"] == "message":
                messages += _read_entry(line)
            case "end":
                yield (encode_json(encode(about, messages)) + "\n").encode()
            case _:
                pass


def _read_entry(line: Mapping[str, Any]) -> Iterator[_Message]:
    """Yield an entry as messages of ChatML; results are one message each."""
    stored = line["message"]
    if TEXT_KEY in stored:
        stored = json.loads(stored[TEXT_KEY])
    parts = cast("list[dict[str, Any]]", stored.get("parts", []))
    at = line["created_at"]
    if line["role"] == "user":
        yield {"role": "user", "content": line["text"], "created_at": at}
    elif line["role"] == "assistant":
        yield {**_read_response(line["text"], parts), "created_at": at}
    else:
        yield from ({**_read_return(part), "created_at": at} for part in parts)


def _read_response(text: str, parts: Sequence[dict[str, Any]]) -> _Message:
    message: _Message = {"role": "assistant", "content": text}
    calls = [_encode_call(part) for part in parts if part["part_kind"] == "tool-call"]
    thoughts = [part["content"] for part in parts if part["part_kind"] == "thinking"]
    if any(thoughts):
        message["reasoning_content"] = "\n".join(filter(None, thoughts))
    if calls:
        message["tool_calls"] = calls
    return message


def _encode_call(part: Mapping[str, Any]) -> _Message:
    args = part["args"]
    text = args if isinstance(args, str) else encode_json(args or {})
    function = {"name": part["tool_name"], "arguments": text}
    return {"id": part["tool_call_id"], "type": "function", "function": function}


def _read_return(part: Mapping[str, Any]) -> _Message:
    content = part.get("content", "")
    return {
        "role": "tool",
        "tool_call_id": part.get("tool_call_id", ""),
        "name": part.get("tool_name", ""),
        "content": content if isinstance(content, str) else encode_json(content),
    }


def _encode_chatml(about: Mapping[str, Any], messages: Sequence[_Message]) -> _Message:
    said = {"id": about["id"], "title": about["title"], "created_at": about["created_at"]}
    return {**said, "messages": list(messages)}


def _encode_sharegpt(about: Mapping[str, Any], messages: Sequence[_Message]) -> _Message:
    turns = [turn for message in messages for turn in _iter_turns(message)]
    return {"id": about["id"], "conversations": turns}


def _iter_turns(message: _Message) -> Iterator[_Message]:
    calls = message.get("tool_calls")
    if message["content"] or not calls:
        yield {"from": _SPEAKERS[message["role"]], "value": message["content"]}
    if calls:
        functions = [call["function"] for call in calls]
        told = functions[0] if len(functions) == 1 else functions
        yield {"from": "function_call", "value": encode_json(told)}


_SPEAKERS: Final = {"user": "human", "assistant": "gpt", "tool": "observation"}
_ENCODERS: Final = {"chatml": _encode_chatml, "sharegpt": _encode_sharegpt}
