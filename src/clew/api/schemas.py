"""Models of requests and responses, for validation and OpenAPI."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from clew.core.text import sanitize_text
from clew.wire.models import WireModel
from clew.wire.params import Attachment, DoubleTextName  # noqa: TC001  (the models read them)
from clew.wire.results import DeletedShape


class RequestBody(BaseModel):
    """Base of JSON request bodies: strict types, unknown fields ignored."""

    model_config = ConfigDict(strict=True, extra="ignore", frozen=True)


class QueryParams(BaseModel):
    """Base of query strings."""

    model_config = ConfigDict(strict=True, extra="ignore", frozen=True)


class EmptyInput(RequestBody):
    """No body, no query."""


def _parse_whole_number(value: object) -> object:
    """Parse a whole number from a URL."""
    if isinstance(value, str) and re.fullmatch(r"[0-9]{1,1000}", value):
        return int(value)
    return value


#: Large enough for every count, and within the range of every database.
WholeNumber = Annotated[int, BeforeValidator(_parse_whole_number), Field(ge=0, le=10**15 - 1)]
SearchText = Annotated[str, AfterValidator(sanitize_text)]
#: Without a cursor, or with an empty one, comes the first page.
Cursor = Annotated[str, AfterValidator(lambda text: text or None)]
Flag = Annotated[Literal["true", "false"], AfterValidator(lambda text: text == "true")]
#: Text that is not blank; the engine's error message is better than a pattern's.
NonBlankText = Annotated[str, Field(json_schema_extra={"pattern": r"\S"})]


# POST /v1/chat/completions


class Part(RequestBody):
    """A part of a message's content."""

    type: str
    text: str | None = None


class ChatMessage(RequestBody):
    """A message of the history; only its text is used."""

    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: str | list[Part] | None = None
    tool_calls: list[dict[str, Any]] | None = None


class StreamOptions(RequestBody):
    """Options of a stream."""

    include_usage: bool | None = None


class ResponseFormat(RequestBody):
    """Only ``text`` is supported."""

    type: str


class ChatRequest(RequestBody):
    """
    A request for a chat completion.

    The agent has its own sampling settings: fields that are not listed are accepted and
    have no effect.
    """

    model: str | None = None
    messages: list[ChatMessage] = Field(min_length=1)
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    n: int | None = None
    tools: list[dict[str, Any]] | None = None
    functions: list[dict[str, Any]] | None = None
    response_format: ResponseFormat | None = None


# /api/conversations


class ListQueryParams(QueryParams):
    """Filter and page of the list of conversations."""

    query: SearchText = Field(default="", description="A part of the title.")
    cursor: Cursor | None = None
    limit: WholeNumber = Field(default=50, ge=1, le=200)
    adhoc: Flag = Field(
        default="false", description="Also those of clients that resend all history."
    )


class EntriesQueryParams(QueryParams):
    """The range of entries."""

    after: WholeNumber = Field(default=0, ge=0)
    limit: WholeNumber = Field(default=200, ge=1, le=1000)


class EventsQueryParams(QueryParams):
    """The start of the stream; the header ``Last-Event-ID`` takes precedence."""

    after: WholeNumber = Field(default=0, ge=0)


class SearchQueryParams(QueryParams):
    """Words to search for in all messages."""

    query: SearchText = Field(min_length=1)
    cursor: Cursor | None = None
    limit: WholeNumber = Field(default=20, ge=1, le=100)


class MessageRequest(RequestBody):
    """A message for a conversation; its answer becomes an entry of the log."""

    text: NonBlankText
    attachments: list[Attachment] | None = Field(default=None, max_length=20)
    double_text: DoubleTextName | None = None


class RenameRequest(RequestBody):
    """The new title; ``null`` removes it."""

    title: Annotated[NonBlankText, Field(json_schema_extra={"maxLength": 200})] | None


class BranchRequest(RequestBody):
    """An independent copy of the conversation's context."""

    at: int | None = Field(
        default=None, ge=0, le=10**15 - 1, description="Only up to this entry of the log."
    )
    title: Annotated[NonBlankText, Field(json_schema_extra={"maxLength": 200})] | None = None
    name: str | None = Field(
        default=None,
        min_length=1,
        description="A NAME or a route, which leads to the copy from now on.",
    )


class RewindRequest(RequestBody):
    """The entry to rewind to; the log keeps everything."""

    to: int = Field(ge=0, le=10**15 - 1, description="Right after this entry; 0 is the beginning.")


class CompactRequest(RequestBody):
    """A manual compaction."""

    focus: str | None = Field(default=None, description="What the summary is to care for most.")
    dry_run: bool | None = Field(
        default=None, description="Only say what would be done; no model is asked."
    )


# Answers


class ErrorShape(WireModel):
    message: str
    type: str
    code: str
    param: str | None = None


class Problems(WireModel):
    """Every error response."""

    error: ErrorShape


class Place(WireModel):
    conversation: str
    session: str | None
    turn: str | None
    notices: list[str]


class Usage(WireModel):
    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    prompt_tokens_details: dict[str, int]


class Answered(WireModel):
    role: Literal["assistant"]
    content: str
    refusal: None


class Choice(WireModel):
    index: int
    message: Answered
    logprobs: None
    finish_reason: Literal["stop", "length"]


class ChatCompletion(WireModel):
    id: str
    object: Literal["chat.completion"]
    created: int
    model: str
    choices: list[Choice]
    usage: Usage
    clew: Place


class ModelShape(WireModel):
    id: str
    object: Literal["model"]
    created: int
    owned_by: str


class ModelList(WireModel):
    object: Literal["list"]
    data: list[ModelShape]


class Health(WireModel):
    status: Literal["ok"]


class DeliveriesShape(WireModel):
    #: Pending deliveries, and the age of the oldest in seconds.
    waiting: int
    oldest: float | None
    #: Failed attempts and abandoned messages since the process started.
    failed: int
    given_up: int
    #: A limit of the settings is exceeded.
    failing: bool


class ChannelShape(WireModel):
    state: Literal["connecting", "connected", "degraded", "standby", "refused"]
    #: Seconds since the last answer of the platform, and since its last event.
    heard: float | None
    event: float | None
    deliveries: DeliveriesShape


class Readiness(WireModel):
    #: ``degraded`` if a channel needs attention.
    status: Literal["ok", "degraded"]
    channels: dict[str, ChannelShape]


class AcceptedShape(WireModel):
    inbox_id: str
    conversation: str
    position: int


class Taken(WireModel):
    accepted: bool


class Deleted(DeletedShape):
    """A deletion; it can be undone until ``undo_until``, or never if that is null."""
