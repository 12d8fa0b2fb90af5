"""
A strict checker of what is sent: the body of a request as it was captured, in all three formats.

Stricter than any one provider: results come right after their calls, once, in the order of the
calls; ids are used once; nothing is blank; a person or a tool has the last word.
"""

from __future__ import annotations

import itertools
import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from clew.testing import CapturedRequest
    from clew.testing.provider.request import WireFormat

_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_ROLES = {
    "chat": {"system", "developer", "user", "assistant", "tool"},
    "responses": {"system", "developer", "user", "assistant", "tool"},
    "messages": {"user", "assistant"},
}


@dataclass(frozen=True, slots=True)
class Sent:
    """The smallest thing that is sent: a text, a call or a result, and who says it."""

    role: str
    kind: str
    #: The id of the call; the text is its arguments, or its result.
    id: str = ""
    text: str = ""
    name: str = ""


def sent(body: Mapping[str, Any], form: WireFormat) -> list[Sent]:
    """Everything that the conversation of a request says, in order; without instructions."""
    return list(_FORMATS[form](body))


def complaints(captured: CapturedRequest) -> list[str]:
    """Everything that is wrong with a captured request."""
    assert captured.json is not None
    assert captured.format is not None
    said = sent(captured.json, captured.format)
    wrong = [*_roles(said, captured.format), *_pairs(said), *_words(said)]
    if captured.outcome == "refused":
        wrong.append("the provider refused it")
    if captured.format == "messages":
        wrong += _turns(captured.json["messages"])
    return wrong


def _roles(said: Sequence[Sent], form: WireFormat) -> Iterator[str]:
    begun = False
    for one in said:
        if one.role not in _ROLES[form]:
            yield f"there is no role {one.role!r}"
        if one.role in ("system", "developer"):
            if begun:
                yield "instructions in mid conversation"
            continue
        if not begun and one.role != "user":
            yield f"it begins with {one.role} {one.kind}"
        begun = True
        speaks = {"call": {"assistant"}, "result": {"tool", "user"}}.get(one.kind)
        if speaks is not None and one.role not in speaks:
            yield f"a {one.kind} of role {one.role}"
    if not said or (said[-1].role == "assistant"):
        yield "the model has the last word"


def _pairs(said: Sequence[Sent]) -> Iterator[str]:
    """Each call has one result, in call order, before anything else; no id is used twice."""
    due: list[str] = []
    seen: set[str] = set()
    answering = False
    for one in said:
        if one.kind == "call":
            if one.id in seen:
                yield f"the id {one.id} twice"
            if answering:
                yield f"the call {one.id} before the results of {due}"
            seen.add(one.id)
            due.append(one.id)
        elif one.kind == "result":
            if one.id not in due:
                yield f"a result of {one.id}, which was not called or has one"
            elif due.pop(0) != one.id:
                yield f"the result of {one.id} out of turn"
            answering = bool(due)
        elif due:
            yield f"{one.role} {one.text[:40]!r} before the results of {due}"
    if due:
        yield f"no results of {due}"


def _words(said: Sequence[Sent]) -> Iterator[str]:
    for one in said:
        if one.kind == "call":
            yield from _call(one)
        elif not one.text.strip():
            yield f"a blank {one.kind} of {one.role}"


def _call(one: Sent) -> Iterator[str]:
    if not _NAME.fullmatch(one.name):
        yield f"no name of a tool: {one.name!r}"
    try:
        arguments: object = json.loads(one.text)
    except ValueError:
        arguments = None
    if not isinstance(arguments, dict):
        yield f"arguments that are no JSON object: {one.text!r}"


def _turns(messages: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """The people of this format take turns, and results come first in theirs."""
    for before, after in itertools.pairwise(messages):
        if before["role"] == after["role"]:
            yield f"two messages of {after['role']} in a row"
    for message in messages:
        kinds = [block["type"] for block in _blocks(message["content"])]
        results = kinds.count("tool_result")
        if "tool_result" in kinds[results:]:
            yield f"results after other content: {kinds}"


# Formats


def _chat(body: Mapping[str, Any]) -> Iterator[Sent]:
    for message in body["messages"]:
        role = message["role"]
        if role == "tool":
            yield Sent(role, "result", message["tool_call_id"], _text(message["content"]))
            continue
        calls: list[dict[str, Any]] = message.get("tool_calls") or []
        if message.get("content") is not None or not calls:
            yield Sent(role, "text", text=_text(message.get("content")))
        for call in calls:
            made = call["function"]
            yield Sent(role, "call", call["id"], made["arguments"], made["name"])


def _responses(body: Mapping[str, Any]) -> Iterator[Sent]:
    for item in body["input"]:
        match item.get("type", "message"):
            case "function_call":
                yield Sent("assistant", "call", item["call_id"], item["arguments"], item["name"])
            case "function_call_output":
                yield Sent("tool", "result", item["call_id"], _text(item["output"]))
            case "message":
                yield Sent(item["role"], "text", text=_text(item["content"]))
            case kind:
                yield Sent(f"item {kind}", "text", text="?")


def _messages(body: Mapping[str, Any]) -> Iterator[Sent]:
    for message in body["messages"]:
        for block in _blocks(message["content"]):
            role = message["role"]
            match block["type"]:
                case "tool_use":
                    arguments = json.dumps(block["input"])
                    yield Sent(role, "call", block["id"], arguments, block["name"])
                case "tool_result":
                    yield Sent(role, "result", block["tool_use_id"], _text(block["content"]))
                case _:
                    yield Sent(role, "text", text=_text([block]))


def _blocks(content: object) -> Iterable[Mapping[str, Any]]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else content  # pyright: ignore[reportReturnType]  (JSON)


def _text(content: object) -> str:
    if content is None or isinstance(content, str):
        return content or ""
    return "\n".join(str(block.get("text", "?")) for block in _blocks(content))


_FORMATS = {"chat": _chat, "responses": _responses, "messages": _messages}
