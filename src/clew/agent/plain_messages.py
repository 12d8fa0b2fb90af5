"""
Messages of a context from plain values, without the model library.

An import makes thousands a second. ``load_message`` reads each as the message that the library
would have made.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from msgspec.json import Encoder

from clew.agent.messages import MESSAGE_FORMAT
from clew.clock import from_millis
from clew.core.entry import NewEntry, Role
from clew.record import Record

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clew.core.ids import EntryId

_encode: Final = Encoder().encode
_OUTCOMES: Final = {False: "success", True: "failed"}


class PlainCall(Record):
    """A tool call; ``arguments`` is JSON, or what the model wrote instead."""

    id: str
    tool: str
    arguments: str


class PlainResult(Record):
    """The result of a tool call."""

    call_id: str
    tool: str
    text: str
    is_error: bool


def draft_text(entry_id: EntryId, text: str, *, at: int) -> NewEntry:
    """Return a message of a person; ``at`` in milliseconds."""
    part = {"content": text, "timestamp": _format_time(at), "part_kind": "user-prompt"}
    return _make_draft(entry_id, Role.USER, text, {"parts": [part], "kind": "request"})


def draft_response(
    entry_id: EntryId,
    text: str,
    *,
    reasoning: str,
    calls: Sequence[PlainCall],
    model: str,
    at: int,
) -> NewEntry:
    """Return a message of the agent, which has text, reasoning or calls."""
    parts: list[dict[str, Any]] = []
    if reasoning:
        parts.append({"content": reasoning, "part_kind": "thinking"})
    if text:
        parts.append({"content": text, "part_kind": "text"})
    parts += [
        {
            "tool_name": call.tool,
            "args": call.arguments,
            "tool_call_id": call.id,
            "part_kind": "tool-call",
        }
        for call in calls
    ]
    message = {
        "parts": parts,
        "model_name": model or None,
        "timestamp": _format_time(at),
        "kind": "response",
        "finish_reason": "tool_call" if calls else "stop",
    }
    names = tuple(call.id for call in calls)
    return _make_draft(entry_id, Role.ASSISTANT, text, message, calls=names)


def draft_results(entry_id: EntryId, results: Sequence[PlainResult], *, at: int) -> NewEntry:
    """Return the results of the calls of one response."""
    time = _format_time(at)
    parts = [
        {
            "tool_name": result.tool,
            "content": result.text,
            "tool_call_id": result.call_id,
            "timestamp": time,
            "outcome": _OUTCOMES[result.is_error],
            "part_kind": "tool-return",
        }
        for result in results
    ]
    text = "\n".join(result.text for result in results if result.text)
    message = {"parts": parts, "kind": "request"}
    names = tuple(result.call_id for result in results)
    return _make_draft(entry_id, Role.TOOL, text, message, answers=names)


def _make_draft(
    entry_id: EntryId,
    role: Role,
    text: str,
    message: dict[str, Any],
    *,
    calls: tuple[str, ...] = (),
    answers: tuple[str, ...] = (),
) -> NewEntry:
    return NewEntry(
        id=entry_id,
        role=role,
        text=text,
        calls=calls,
        answers=answers,
        format=MESSAGE_FORMAT,
        message=_encode(message).decode(),
    )


def _format_time(at: int) -> str:
    return from_millis(at).isoformat()
