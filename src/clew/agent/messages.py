"""Pydantic AI messages as entries, and back."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from pydantic import TypeAdapter
from pydantic_ai.messages import (
    BaseToolReturnPart,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    RetryFeedbackPart,
    SystemPromptPart,
    TextContent,
    TextPart,
    ToolCallPart,
    UserPromptPart,
)

from clew.agent.files import line_of
from clew.agent.ports import Asked
from clew.core.entry import EntryKind, NewEntry, Role
from clew.core.text import sanitize_text

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from pydantic_ai.messages import UserContent

    from clew.core.chat import InlineFile
    from clew.core.history import HistoryMessage
    from clew.core.ids import EntryId

FORMAT = "pydantic-ai/2"

_ONE: TypeAdapter[ModelMessage] = TypeAdapter(ModelMessage)
# The session holds the instructions, the entry says where the message belongs.
_ELSEWHERE = {"instructions", "run_id", "conversation_id"}
# In the metadata of a response, which no provider is sent.
_ASKED = "clew_asked"
_STAND_IN = "clew_stand_in"


def user_draft(
    entry_id: EntryId,
    content: Sequence[str | InlineFile],
    *,
    said_at: datetime,
    note: str | None = None,
    preface: str | None = None,
) -> NewEntry:
    """
    What a person wrote and the files that came along, as an entry.

    The model reads a ``note`` of ours before it, at the begin of a conversation only: later not
    every server takes one. A ``preface`` is read as the person's; people do not see it.
    """
    said = UserPromptPart(_content(content), timestamp=said_at)
    parts = [said] if note is None else [SystemPromptPart(note, timestamp=said_at), said]
    draft = to_draft(entry_id, ModelRequest(parts=parts))
    if preface is None:
        return draft
    told = UserPromptPart(_content([preface, *content]), timestamp=said_at)
    return replace(draft, message=dump(ModelRequest(parts=[*parts[:-1], told])))


def _content(content: Sequence[str | InlineFile]) -> str | list[UserContent]:
    if all(isinstance(item, str) for item in content):
        return sanitize_text("\n".join(item for item in content if isinstance(item, str)))
    return [sanitize_text(item) if isinstance(item, str) else line_of(item) for item in content]


def from_history(said: HistoryMessage, *, at: datetime) -> ModelMessage:
    """One message of a history that a client sent along."""
    text = sanitize_text(said.text)
    match said.speaker:
        case "assistant":
            return ModelResponse(parts=[TextPart(text)], timestamp=at)
        case "user":
            return ModelRequest(parts=[UserPromptPart(text, timestamp=at)])
        case "system":
            return ModelRequest(parts=[SystemPromptPart(text, timestamp=at)])


def to_draft(
    entry_id: EntryId, message: ModelMessage, *, kind: EntryKind = EntryKind.MESSAGE
) -> NewEntry:
    """A message as an entry that is yet to be numbered."""
    return NewEntry(
        id=entry_id,
        kind=kind,
        role=role_of(message),
        text="" if is_stand_in(message) else sanitize_text(text_of(message)),
        calls=call_ids(message),
        answers=answered_ids(message),
        format=FORMAT,
        message=dump(message),
    )


def interrupted(text: str) -> ModelResponse:
    """What a response had said when it was stopped; calls that were not complete are left out."""
    return ModelResponse(parts=[TextPart(text)], finish_reason="stop", state="interrupted")


def unanswered(why: str) -> ModelResponse:
    """Return what stands for an answer that did not come: a conversation goes by turns."""
    response = ModelResponse(parts=[], finish_reason="stop")
    stand_in(response, why)
    return response


def stand_in(response: ModelResponse, why: str) -> None:
    """Give a response that says nothing words for the model, in place; people read the notice."""
    response.parts = [*response.parts, TextPart(f"(no answer: {why})")]
    response.metadata = {**(response.metadata or {}), _STAND_IN: True}


def is_stand_in(message: ModelMessage) -> bool:
    """Whether a message has words only to stand for an answer that did not come."""
    return isinstance(message, ModelResponse) and _STAND_IN in (message.metadata or {})


def with_asked(response: ModelResponse, asked: Asked | None) -> ModelResponse:
    """The response, which says from now on how its model was asked."""
    if asked is None:
        return response
    told = {"model": asked.model, "stream": asked.stream}
    return replace(response, metadata={**(response.metadata or {}), _ASKED: told})


def attempt(asked: Asked | None) -> str:
    """What the entry of a request that failed holds, as JSON: how its model was asked."""
    return json.dumps(None if asked is None else {"model": asked.model, "stream": asked.stream})


def asked_in(message: str) -> Asked | None:
    """How a model was asked, by a stored response or attempt; ``None`` where it does not say."""
    stored: dict[str, Any] = json.loads(message) or {}
    metadata: dict[str, Any] = stored.get("metadata") or {}
    told: dict[str, Any] = metadata.get(_ASKED, {}) if "parts" in stored else stored
    return Asked(model=told["model"], stream=told["stream"]) if told else None


def is_unasked(message: str) -> bool:
    """Whether a stored response only stands for an answer that did not come."""
    stored: dict[str, Any] = json.loads(message) or {}
    metadata: dict[str, Any] = stored.get("metadata") or {}
    return _STAND_IN in metadata and _ASKED not in metadata


def is_cut(message: str) -> bool:
    """Whether a stored response ends where the model had reached its limit of output."""
    return json.loads(message).get("finish_reason") == "length"


def dump(message: ModelMessage) -> str:
    """The message as JSON."""
    return _ONE.dump_json(message, exclude=_ELSEWHERE).decode()


def load(message: str) -> ModelMessage:
    """The message that ``dump`` wrote."""
    return _ONE.validate_json(message)


def role_of(message: ModelMessage) -> Role:
    """Who speaks: the person only where a person wrote, and not where the library corrects."""
    if isinstance(message, ModelResponse):
        return Role.ASSISTANT
    said = any(isinstance(part, UserPromptPart) for part in message.parts)
    return Role.USER if said else Role.TOOL


def text_of(message: ModelMessage) -> str:
    """What a person reads of it and search finds."""
    return "\n".join(filter(None, map(_part_text, message.parts)))


def _part_text(part: object) -> str:
    match part:
        case TextPart(content=content):
            return content
        case UserPromptPart(content=str() as content):
            return content
        case UserPromptPart(content=content):
            return "\n".join(filter(None, map(_item_text, content)))
        case BaseToolReturnPart():
            return part.model_response_str()
        case RetryFeedbackPart():
            return str(part.content)
        case _:
            return ""


def _item_text(item: UserContent) -> str:
    match item:
        case str():
            return item
        case TextContent(content=text):
            return text
        case _:
            return ""


def shown(message: ModelMessage) -> str:
    """Its text, and the tool calls that it asks for, one in a line."""
    calls = [part for part in message.parts if isinstance(part, ToolCallPart)]
    lines = [f"{call.tool_name}({call.args_as_json_str()})" for call in calls]
    return "\n".join([*filter(None, [text_of(message)]), *lines])


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolCall:
    """A tool call as a response asks for it."""

    call_id: str
    tool: str
    #: JSON, unless the model wrote something else.
    args: str


def calls_of(message: ModelMessage) -> tuple[ToolCall, ...]:
    """Return the tool calls that a message asks for."""
    return tuple(
        ToolCall(call_id=part.tool_call_id, tool=part.tool_name, args=part.args_as_json_str())
        for part in message.parts
        if isinstance(part, ToolCallPart)
    )


def call_ids(message: ModelMessage) -> tuple[str, ...]:
    """The tool calls that it asks for."""
    return tuple(part.tool_call_id for part in message.parts if isinstance(part, ToolCallPart))


def answered_ids(message: ModelMessage) -> tuple[str, ...]:
    """The tool calls that it answers."""
    return tuple(
        part.tool_call_id for part in message.parts if isinstance(part, BaseToolReturnPart)
    )
