"""A strict checker: what a provider refuses, and what may not be in a log or on the wire."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pydantic_ai.messages import (
    BaseToolReturnPart,
    CompactionPart,
    TextPart,
    ToolCallPart,
    UserPromptPart,
)

from clew.agent import messages as codec
from clew.core.entry import EntryKind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pydantic_ai.messages import ModelMessage

    from clew.core.entry import Entry

#: Short form of a summary.
SUMMARY = "(summary)"


@dataclass(frozen=True, slots=True)
class Bit:
    """The smallest thing that is said: a text of a person, of the model, a call or a result."""

    kind: str
    name: str
    text: str = ""


def bits(messages: Sequence[ModelMessage]) -> list[Bit]:
    """Return the texts of messages, in order."""
    return [bit for message in messages for part in message.parts if (bit := _bit(part))]


def _bit(part: object) -> Bit | None:
    match part:
        case UserPromptPart(content=content):
            return Bit("user", str(content))
        case ToolCallPart():
            return Bit("call", part.tool_call_id, f"{part.tool_name} {part.args_as_json_str()}")
        case BaseToolReturnPart():
            return Bit("result", part.tool_call_id, part.model_response_str())
        case TextPart(content=text):
            return Bit("text", text)
        case _:
            return None


def complaints(said: Sequence[Bit]) -> list[str]:
    """Each call has one result, in call order, before anything else is said; no id comes twice."""
    found: list[str] = []
    due: list[str] = []
    seen: set[str] = set()
    asking = False
    for bit in said:
        if bit.kind == "call":
            found += [f"call {bit.name} twice"] * (bit.name in seen)
            found += [f"call {bit.name} before the results of {due}"] * bool(due and not asking)
            seen.add(bit.name)
            due.append(bit.name)
            asking = True
            continue
        asking = False
        if bit.kind == "result":
            if not due or due.pop(0) != bit.name:
                found.append(f"a result of {bit.name} where none was due")
        elif due:
            found.append(f"{bit.kind} {bit.name!r} before the results of {due}")
    return found + [f"no result of {call}" for call in due]


def log_bits(entries: Sequence[Entry]) -> list[Bit]:
    """Return the messages of a log for the model."""
    return bits([codec.load_message(e.message) for e in entries if e.kind is EntryKind.MESSAGE])


def is_within(sent: Sequence[Bit], log: Sequence[Bit]) -> bool:
    """Return whether the log has everything that was sent, in this order."""
    rest = iter(log)
    return all(bit in rest for bit in sent)


def shape(entries: Sequence[Entry]) -> list[str]:
    """A log in short: ``a`` (a person), ``look?``, ``look!`` (result), ``"text"``, ``[notice]``."""
    return [word for entry in entries for word in _words(entry)]


def _words(entry: Entry) -> list[str]:
    if entry.kind is not EntryKind.MESSAGE:
        return [f"[{entry.text}]"]
    return shape_of([codec.load_message(entry.message)])


def shape_of(messages: Sequence[ModelMessage]) -> list[str]:
    """Messages in short, as ``shape``."""
    return [word for message in messages for part in message.parts if (word := _word(part))]


def _word(part: object) -> str | None:
    match part:
        case CompactionPart():
            return SUMMARY
        case UserPromptPart(content=content):
            return str(content).partition(":")[0]
        case TextPart(content=text) if text.startswith("(no answer: "):
            # It stands for an answer that did not come.
            return None
        case TextPart(content=text):
            return f'"{text.strip()}"'
        case ToolCallPart(tool_name=name):
            return f"{name}?"
        case BaseToolReturnPart():
            text = str(part.content)
            return f"{part.tool_name}!{text if ': ' in text else ''}"
        case _:
            return None
