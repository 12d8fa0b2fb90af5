"""What clients send and get, as models: they check requests and describe both for OpenAPI."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from clew.wire.params import Attachment  # noqa: TC001  (the model reads it)
from clew.wire.records import WireModel


class Body(BaseModel):
    """What a client sends as JSON: types are taken as they are, unknown fields are left alone."""

    model_config = ConfigDict(strict=True, extra="ignore", frozen=True)


class Query(BaseModel):
    """What a client sends behind the question mark."""

    model_config = ConfigDict(strict=True, extra="ignore", frozen=True)


class Nothing(Body):
    """No body, no query."""


def _whole(value: object) -> object:
    """A whole number as it is written in a URL."""
    if isinstance(value, str) and re.fullmatch(r"[0-9]{1,1000}", value):
        return int(value)
    return value


#: Large enough for everything that is counted, and no more than every database holds.
Whole = Annotated[int, BeforeValidator(_whole), Field(ge=0, le=10**15 - 1)]
#: Text that says something; the engine tells what is wrong in better words than a pattern.
Said = Annotated[str, Field(json_schema_extra={"pattern": r"\S"})]
DoubleTextName = Literal["auto", "queue", "steer", "collect", "interrupt", "rollback", "reject"]


# POST /v1/chat/completions


class Part(Body):
    """A piece of a message's content."""

    type: str
    text: str | None = None


class ChatMessage(Body):
    """One message of the history; only its text counts."""

    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: str | list[Part] | None = None
    tool_calls: list[dict[str, Any]] | None = None


class StreamOptions(Body):
    """How a stream is sent."""

    include_usage: bool | None = None


class ResponseFormat(Body):
    """Only ``text`` is supported."""

    type: str


class ChatRequest(Body):
    """
    A request for a chat completion.

    Sampling settings are the agent's own: fields that are not listed are accepted and have no
    effect.
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


class ListQuery(Query):
    """Which conversations."""

    query: str = Field(default="", description="A part of the title.")
    cursor: str | None = None
    limit: Whole = Field(default=50, ge=1, le=200)
    adhoc: Literal["true", "false"] = Field(
        default="false", description="Also those of clients that resend all history."
    )


class EntriesQuery(Query):
    """Which entries of the log."""

    after: Whole = Field(default=0, ge=0)
    limit: Whole = Field(default=200, ge=1, le=1000)


class EventsQuery(Query):
    """Where the stream begins; the header ``Last-Event-ID`` goes before it."""

    after: Whole = Field(default=0, ge=0)


class SearchQuery(Query):
    """What is looked for in everything that was said."""

    query: str = Field(min_length=1)
    cursor: str | None = None
    limit: Whole = Field(default=20, ge=1, le=100)


class MessageRequest(Body):
    """A message for a conversation; its answer is an entry of the log."""

    text: Said
    attachments: list[Attachment] | None = Field(default=None, max_length=20)
    double_text: DoubleTextName | None = None


class RenameRequest(Body):
    """The new title; ``null`` takes it away."""

    title: Annotated[Said, Field(json_schema_extra={"maxLength": 200})] | None


class BranchRequest(Body):
    """A copy of the conversation's context that goes its own way."""

    at: int | None = Field(
        default=None, ge=0, le=10**15 - 1, description="Only up to this entry of the log."
    )
    title: Annotated[Said, Field(json_schema_extra={"maxLength": 200})] | None = None
    name: str | None = Field(
        default=None,
        min_length=1,
        description="A NAME or a route, which leads to the copy from now on.",
    )


class RewindRequest(Body):
    """Where the context goes back to; the log keeps everything."""

    to: int = Field(ge=0, le=10**15 - 1, description="Right after this entry; 0 is the beginning.")


class CompactRequest(Body):
    """A compaction on demand."""

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
    """Every error, everywhere."""

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
    #: What waits to be delivered, and the seconds for which the oldest of it does.
    waiting: int
    oldest: float | None
    #: Tries that failed and messages that were given up, since the process began.
    failed: int
    given_up: int
    #: A limit of the settings is exceeded.
    failing: bool


class ChannelShape(WireModel):
    state: Literal["connecting", "connected", "degraded", "standby", "refused"]
    #: Seconds since the platform last answered, and since something last happened there.
    heard: float | None
    event: float | None
    deliveries: DeliveriesShape


class Readiness(WireModel):
    #: ``degraded`` where somebody has to look after a channel.
    status: Literal["ok", "degraded"]
    channels: dict[str, ChannelShape]


class AcceptedShape(WireModel):
    inbox_id: str
    conversation: str
    position: int


class Taken(WireModel):
    accepted: bool


class Deleted(WireModel):
    """Until ``undo_until`` it can be brought back; null where it is gone for good."""

    deleted: str
    undo_until: str | None
