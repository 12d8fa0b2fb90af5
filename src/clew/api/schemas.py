"""Models of requests and responses, for validation and OpenAPI."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, create_model

from clew.core.text import sanitize_text
from clew.wire import params
from clew.wire.models import WireModel
from clew.wire.results import DeletedShape, Submitted

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

M = TypeVar("M", bound=BaseModel)


class RequestBody(BaseModel):
    """Base of JSON request bodies: strict types, unknown fields ignored."""

    model_config = ConfigDict(strict=True, extra="ignore", frozen=True, defer_build=True)


class QueryParams(BaseModel):
    """Base of query strings."""

    model_config = ConfigDict(strict=True, extra="ignore", frozen=True, defer_build=True)


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
Cursor = Annotated[str | None, AfterValidator(lambda text: text or None)]
Flag = Annotated[Literal["true", "false"], AfterValidator(lambda text: text == "true")]
#: A title that is not blank; the engine's error message is better than a pattern's.
Title = Annotated[str, Field(json_schema_extra={"pattern": r"\S", "maxLength": 200})] | None
#: Types of fields in a query, which is text.
_TEXT_FORMS: Mapping[Any, Any] = {int: WholeNumber, str: SearchText}


# POST /v1/chat/completions


class ImageUrl(RequestBody):
    """An image as a data URL."""

    url: str | None = None


class FileData(RequestBody):
    """A file as a data URL."""

    filename: str | None = None
    file_data: str | None = None


class Part(RequestBody):
    """A part of a message's content: ``text``, ``image_url`` or ``file``."""

    type: str
    text: str | None = None
    image_url: ImageUrl | None = None
    file: FileData | None = None


class ChatMessage(RequestBody):
    """A message of the history: its text, and the images and files of the user's."""

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


def derive_model(
    name: str,
    source: type[BaseModel],
    base: type[M],
    changed: Mapping[str, Any] | None = None,
    *,
    without: Collection[str] = (),
    doc: str | None = None,
) -> type[M]:
    """Return a model with the fields of another one, without some and with others changed."""
    fields: dict[str, Any] = {
        key: (info.annotation, info)
        for key, info in source.model_fields.items()
        if key not in without
    }
    return create_model(
        name, __base__=base, __doc__=doc or source.__doc__, **{**fields, **(changed or {})}
    )


def _derive_query(
    source: type[BaseModel], changed: Mapping[str, Any], *, without: Collection[str] = ()
) -> type[QueryParams]:
    """Return the query string of an input: its fields, parsed from text."""
    parsed = {
        key: (_TEXT_FORMS[info.annotation], info)
        for key, info in source.model_fields.items()
        if info.annotation in _TEXT_FORMS and key not in without
    }
    name = f"{source.__name__}InQuery"
    return derive_model(name, source, QueryParams, {**parsed, **changed}, without=without)


_AFTER = {"after": (WholeNumber, Field(default=0, ge=0))}
_CURSOR = {"cursor": (Cursor, None)}
_ADHOC = Field(
    default="false",
    description="Include the ad hoc conversations of clients that resend all history.",
)

ListQueryParams = _derive_query(params.ListParams, {**_CURSOR, "adhoc": (Flag, _ADHOC)})
EntriesQueryParams = _derive_query(params.EntriesParams, _AFTER, without={"conversation", "before"})
SearchQueryParams = _derive_query(params.SearchParams, _CURSOR)


class ExportQuery(QueryParams):
    """The form of an export."""

    format: Literal["html", "markdown", "json"] = Field(
        default="html",
        description="`json` is one record on each line, which can be verified and imported.",
    )


class EventsQueryParams(QueryParams):
    """The start of the stream; the header ``Last-Event-ID`` takes precedence."""

    after: WholeNumber = Field(default=0, ge=0)


MessageRequest = derive_model(
    "MessageRequest",
    params.SubmitParams,
    RequestBody,
    without={"session_id", "key"},
    doc="A message for a conversation; its answer becomes an entry of the log.",
)
RespondRequest = derive_model(
    "RespondRequest", params.RespondParams, RequestBody, without={"approval"}
)
RenameRequest = derive_model(
    "RenameRequest",
    params.RenameParams,
    RequestBody,
    {"title": (Title, ...)},
    without={"conversation"},
)
_BRANCH_NAME = Field(default=None, min_length=1, description="A name for the copy.")
BranchRequest = derive_model(
    "BranchRequest",
    params.BranchParams,
    RequestBody,
    {"title": (Title, None), "name": (str | None, _BRANCH_NAME)},
    without={"conversation"},
)
RewindRequest = derive_model(
    "RewindRequest", params.RewindParams, RequestBody, without={"conversation"}
)
_DRY_RUN = Field(
    default=None, description="Only report what would be done, without calling a model."
)
CompactRequest = derive_model(
    "CompactRequest",
    params.CompactParams,
    RequestBody,
    {"dry_run": (bool | None, _DRY_RUN)},
    without={"session_id", "undo"},
    doc="A manual compaction.",
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


class PartShape(WireModel):
    state: str
    #: Why it does not work; only for clients with the token.
    why: str | None


class Readiness(WireModel):
    #: ``degraded`` if a channel needs attention.
    status: Literal["ok", "degraded"]
    channels: dict[str, ChannelShape]
    #: What features depend on, such as ``mcp:NAME``.
    parts: dict[str, PartShape]


AcceptedShape = derive_model("AcceptedShape", Submitted, WireModel, without={"session"})


class Taken(WireModel):
    accepted: bool


class Deleted(DeletedShape):
    """A deletion; it can be undone until ``undo_until``, or never if that is null."""
