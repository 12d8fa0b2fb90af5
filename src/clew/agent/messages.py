"""Conversion between Pydantic AI messages and entries."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any, Final

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
    ThinkingPart,
    ToolCallPart,
    UserPromptPart,
)

from clew.agent.attachments import make_attachment_line
from clew.agent.protocols import RequestInfo
from clew.core.attachments import describe_file
from clew.core.channel_events import make_file_part
from clew.core.entry import CAUSE_KEY, EntryKind, NewEntry, Role
from clew.core.sent_files import FILES_KEY
from clew.core.text import sanitize_text
from clew.record import Record

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from pydantic_ai.messages import UserContent

    from clew.core.channel_events import InlineFile
    from clew.core.client_history import HistoryMessage
    from clew.core.completion import Cause
    from clew.core.ids import EntryId
    from clew.core.sent_files import SentFile

MESSAGE_FORMAT = "pydantic-ai/2"

_MESSAGE_ADAPTER: TypeAdapter[ModelMessage] = TypeAdapter(ModelMessage)
#: Metadata of a text that a feature added to a person's message: the note's name.
NOTE_KEY: Final = "clew_note"
_NOTE_END: Final = "[end of the note]"
# The session has the instructions; the entry has the run and conversation.
_EXCLUDED_FIELDS = {"instructions", "run_id", "conversation_id"}
# In the metadata of a response, which is not sent to providers.
_REQUEST_KEY = "clew_asked"
_PLACEHOLDER_KEY = "clew_stand_in"


def make_user_draft(
    entry_id: EntryId,
    content: Sequence[str | InlineFile],
    *,
    said_at: datetime,
    note: str | None = None,
    preface: str | None = None,
) -> NewEntry:
    """
    Return a user message with its attachments as an entry.

    The model reads our ``note`` before it, only at the start of a conversation: later not
    every server accepts one. A ``preface`` is sent as the user's text; people do not see
    it.
    """
    said = UserPromptPart(_make_content(content), timestamp=said_at)
    parts = [said] if note is None else [SystemPromptPart(note, timestamp=said_at), said]
    draft = message_to_draft(entry_id, ModelRequest(parts=parts))
    if preface is None:
        return draft
    told = UserPromptPart(_make_content([preface, *content]), timestamp=said_at)
    return replace(draft, message=dump_message(ModelRequest(parts=[*parts[:-1], told])))


def make_completion_draft(
    entry_id: EntryId, text: str, told: str, *, cause: Cause, said_at: datetime
) -> NewEntry:
    """
    Return what has ended as an entry; ``told`` is the text as the model reads it.

    It is sent as a message of the user, since there is no other place for it: its metadata
    says that no person wrote it.
    """
    said = UserPromptPart(sanitize_text(told), timestamp=said_at)
    message = ModelRequest(parts=[said], metadata={CAUSE_KEY: [cause.kind, cause.id]})
    return replace(message_to_draft(entry_id, message), text=sanitize_text(text))


def add_notes(draft: NewEntry, notes: Sequence[tuple[str, str]]) -> NewEntry:
    """
    Return a user message with notes, each a name and a text, that the model reads after it.

    People do not see them: they are no part of the entry's text.
    """
    message = load_message(draft.message)
    assert isinstance(message, ModelRequest)
    said = message.parts[-1]
    assert isinstance(said, UserPromptPart)
    content = [said.content] if isinstance(said.content, str) else [*said.content]
    content += [_make_note(name, text) for name, text in notes]
    parts = [*message.parts[:-1], replace(said, content=content)]
    return replace(draft, message=dump_message(replace(message, parts=parts)))


def _make_note(name: str, text: str) -> TextContent:
    # Its end cannot be written inside of it.
    text = sanitize_text(text).strip().replace(_NOTE_END, "[end of the note ]")
    return TextContent(
        f"[note of {name}; not written by the person]\n{text}\n{_NOTE_END}",
        metadata={NOTE_KEY: name},
    )


def _make_content(content: Sequence[str | InlineFile]) -> str | list[UserContent]:
    if all(isinstance(item, str) for item in content):
        return sanitize_text("\n".join(item for item in content if isinstance(item, str)))
    return [
        sanitize_text(item) if isinstance(item, str) else make_attachment_line(item)
        for item in content
    ]


def make_history_message(said: HistoryMessage, *, at: datetime) -> ModelMessage:
    """Return one message of a history that a client sent."""
    text = sanitize_text(said.text)
    match said.speaker:
        case "assistant":
            return ModelResponse(parts=[TextPart(text)], timestamp=at)
        case "user":
            files = [make_file_part(describe_file(file)) for file in said.files]
            content = [text, *files] if text.strip() else files
            return ModelRequest(parts=[UserPromptPart(_make_content(content), timestamp=at)])
        case "system":
            return ModelRequest(parts=[SystemPromptPart(text, timestamp=at)])


def message_to_draft(
    entry_id: EntryId, message: ModelMessage, *, kind: EntryKind = EntryKind.MESSAGE
) -> NewEntry:
    """Return a message as an entry without a number yet."""
    return NewEntry(
        id=entry_id,
        kind=kind,
        role=get_role(message),
        text="" if is_placeholder(message) else sanitize_text(extract_text(message)),
        calls=extract_call_ids(message),
        answers=extract_answered_ids(message),
        format=MESSAGE_FORMAT,
        message=dump_message(message),
    )


def make_interrupted_response(text: str) -> ModelResponse:
    """Return the partial text of a stopped response, without incomplete calls."""
    return ModelResponse(parts=[TextPart(text)], finish_reason="stop", state="interrupted")


def replace_text(response: ModelResponse, text: str) -> ModelResponse:
    """
    Return a response with another text.

    Its thinking is left out: providers refuse it with a text that they have not written.
    """
    kept = [part for part in response.parts if not isinstance(part, (TextPart, ThinkingPart))]
    return replace(response, parts=[*kept, TextPart(sanitize_text(text))])


def make_missing_response(why: str) -> ModelResponse:
    """Return the placeholder for a missing answer, which keeps roles alternating."""
    response = ModelResponse(parts=[], finish_reason="stop")
    mark_as_placeholder(response, why)
    return response


def mark_as_placeholder(response: ModelResponse, why: str) -> None:
    """Add text for the model to an empty response, in place; people see the notice."""
    response.parts = [*response.parts, TextPart(f"(no answer: {why})")]
    response.metadata = {**(response.metadata or {}), _PLACEHOLDER_KEY: True}


def is_placeholder(message: ModelMessage) -> bool:
    """Return whether the text of a message is a placeholder for a missing answer."""
    return isinstance(message, ModelResponse) and _PLACEHOLDER_KEY in (message.metadata or {})


def with_request_info(response: ModelResponse, asked: RequestInfo | None) -> ModelResponse:
    """Return the response with the model and mode of its request."""
    if asked is None:
        return response
    told = {"model": asked.model, "stream": asked.stream}
    return replace(response, metadata={**(response.metadata or {}), _REQUEST_KEY: told})


def with_sent_files(message: ModelMessage, files: Sequence[SentFile]) -> ModelMessage:
    """Return a response that names the files sent with it; another message unchanged."""
    if not files or not isinstance(message, ModelResponse):
        return message
    told = [asdict(file) for file in files]
    return replace(message, metadata={**(message.metadata or {}), FILES_KEY: told})


def dump_attempt(asked: RequestInfo | None) -> str:
    """Return the content of a failed request's entry as JSON: its model and mode."""
    return json.dumps(None if asked is None else {"model": asked.model, "stream": asked.stream})


def parse_request_info(message: str) -> RequestInfo | None:
    """Return the model and mode of a stored response or attempt; ``None`` if not stored."""
    stored: dict[str, Any] = json.loads(message) or {}
    metadata: dict[str, Any] = stored.get("metadata") or {}
    told: dict[str, Any] = metadata.get(_REQUEST_KEY, {}) if "parts" in stored else stored
    return RequestInfo(model=told["model"], stream=told["stream"]) if told else None


def is_unrequested(message: str) -> bool:
    """Return whether a stored response is a placeholder for which no model was asked."""
    stored: dict[str, Any] = json.loads(message) or {}
    metadata: dict[str, Any] = stored.get("metadata") or {}
    return _PLACEHOLDER_KEY in metadata and _REQUEST_KEY not in metadata


def is_truncated(message: str) -> bool:
    """Return whether the model's output limit truncated a stored response."""
    return json.loads(message).get("finish_reason") == "length"


def dump_message(message: ModelMessage) -> str:
    """Return the message as JSON."""
    return _MESSAGE_ADAPTER.dump_json(message, exclude=_EXCLUDED_FIELDS).decode()


def load_message(message: str) -> ModelMessage:
    """Return the message that ``dump_message`` wrote."""
    return _MESSAGE_ADAPTER.validate_json(message)


def get_role(message: ModelMessage) -> Role:
    """Return the role: user only for user text, not for corrections by the library."""
    if isinstance(message, ModelResponse):
        return Role.ASSISTANT
    said = any(isinstance(part, UserPromptPart) for part in message.parts)
    return Role.USER if said else Role.TOOL


def extract_text(message: ModelMessage) -> str:
    """Return the text of a message that people read and search finds."""
    return "\n".join(filter(None, map(_extract_part_text, message.parts)))


def _extract_part_text(part: object) -> str:
    match part:
        case TextPart(content=content):
            return content
        case UserPromptPart(content=str() as content):
            return content
        case UserPromptPart(content=content):
            return "\n".join(filter(None, map(_extract_item_text, content)))
        case BaseToolReturnPart():
            return part.model_response_str()
        case RetryFeedbackPart():
            return str(part.content)
        case _:
            return ""


def _extract_item_text(item: UserContent) -> str:
    match item:
        case str():
            return item
        case TextContent(content=text):
            return text
        case _:
            return ""


def format_message(message: ModelMessage) -> str:
    """Return the text of a message and its tool calls, one per line."""
    calls = [part for part in message.parts if isinstance(part, ToolCallPart)]
    lines = [f"{call.tool_name}({call.args_as_json_str()})" for call in calls]
    return "\n".join([*filter(None, [extract_text(message)]), *lines])


class ToolCall(Record):
    """A tool call as a response requests it."""

    call_id: str
    tool: str
    #: JSON, unless the model wrote something else.
    args: str


def extract_tool_calls(message: ModelMessage) -> tuple[ToolCall, ...]:
    """Return the tool calls that a message requests."""
    return tuple(
        ToolCall(call_id=part.tool_call_id, tool=part.tool_name, args=part.args_as_json_str())
        for part in message.parts
        if isinstance(part, ToolCallPart)
    )


def extract_call_ids(message: ModelMessage) -> tuple[str, ...]:
    """Return the ids of the tool calls that a message requests."""
    return tuple(part.tool_call_id for part in message.parts if isinstance(part, ToolCallPart))


def extract_answered_ids(message: ModelMessage) -> tuple[str, ...]:
    """Return the ids of the tool calls that a message answers."""
    return tuple(
        part.tool_call_id for part in message.parts if isinstance(part, BaseToolReturnPart)
    )
