"""Models of the requests for responses and conversations."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from clew.api.schemas import Flag, QueryParams, RequestBody, WholeNumber

#: As OpenAI limits it: at most 16 short texts.
Metadata = Annotated[
    dict[
        Annotated[str, Field(max_length=64)],
        Annotated[str, Field(max_length=512)],
    ],
    Field(max_length=16),
]


class InputPart(RequestBody):
    """A part of a message: text, or a file as a data URL."""

    type: str
    text: str | None = None
    image_url: str | None = None
    filename: str | None = None
    file_data: str | None = None


class InputItem(RequestBody):
    """An item of the input; only messages are supported."""

    type: str = "message"
    role: Literal["system", "developer", "user", "assistant"] | None = None
    content: str | list[InputPart] | None = None


class NamedConversation(RequestBody):
    """A conversation, by its id."""

    id: str


class TextFormat(RequestBody):
    """Only ``text`` is supported."""

    type: str


class TextOptions(RequestBody):
    """Options of the text."""

    format: TextFormat | None = None


class ResponseRequest(RequestBody):
    """
    A request for a response.

    The agent has its own settings and tools: fields that are not listed are accepted and
    have no effect.
    """

    model: str | None = None
    input: str | list[InputItem]
    instructions: str | None = None
    previous_response_id: str | None = None
    conversation: str | NamedConversation | None = None
    stream: bool | None = None
    background: bool | None = None
    store: bool | None = None
    metadata: Metadata | None = None
    tools: list[dict[str, Any]] | None = None
    prompt: dict[str, Any] | None = None
    text: TextOptions | None = None


class ResponseQueryParams(QueryParams):
    """Query of a response: at once, or as a stream from an event on."""

    stream: Flag = Field(default="false", validate_default=True)
    starting_after: WholeNumber | None = None


class ItemsQueryParams(QueryParams):
    """One page of items, the newest first unless asked otherwise."""

    after: str | None = None
    limit: Annotated[WholeNumber, Field(ge=1, le=100)] = 20
    order: Literal["asc", "desc"] = "desc"


class ConversationRequest(RequestBody):
    """A new conversation, which may begin with messages."""

    items: list[InputItem] | None = Field(default=None, max_length=20)
    metadata: Metadata | None = None


class MetadataRequest(RequestBody):
    """The metadata that replaces the one before."""

    metadata: Metadata | None
