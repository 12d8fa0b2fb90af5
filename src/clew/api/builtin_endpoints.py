"""The built-in endpoints that have no method: streams, other formats, health."""

from __future__ import annotations

from clew.api import chat_completions, events, health_endpoints, metrics, schemas
from clew.api.endpoints import STREAM, Endpoint, ResponseSpec
from clew.api.handlers import exports, files
from clew.api.operation_endpoint import show_conversation
from clew.api.operation_scope import ONE_CONVERSATION, PUBLIC
from clew.wire import models

CONVERSATION_PATH = "/api/conversations/{id}"
KEY_HEADERS = {"Idempotency-Key": "The same key gives the first answer again, for 7 days."}


OPENAI_ENDPOINTS = (
    Endpoint(
        method="POST",
        path="/v1/chat/completions",
        handler=chat_completions.create_completion,
        summary="One turn of a conversation, as an OpenAI chat completion",
        body=schemas.ChatRequest,
        responses={
            200: ResponseSpec(
                description="The answer", model=schemas.ChatCompletion, media=(STREAM,)
            )
        },
        problems=(404, 409, 422, 502),
        headers={
            "X-Clew-Conversation": "NAME or id of the conversation that provides the context; "
            "without it, the "
            "messages of the request do.",
            "X-Clew-Double-Text": "What happens while a turn is unfinished: queue, steer, "
            "interrupt …",
            **KEY_HEADERS,
        },
    ),
    Endpoint(
        method="GET",
        path="/v1/models",
        handler=health_endpoints.list_models,
        summary="The model names of the agent",
        responses={200: ResponseSpec(description="The names", model=schemas.ModelList)},
    ),
    Endpoint(
        method="GET",
        path="/v1/models/{model}",
        handler=health_endpoints.show_model,
        summary="One model name",
        responses={200: ResponseSpec(description="The name", model=schemas.ModelShape)},
        problems=(404,),
    ),
)
SHOW_CONVERSATION = Endpoint(
    method="GET",
    path=CONVERSATION_PATH,
    handler=show_conversation,
    summary="One conversation",
    scope=ONE_CONVERSATION,
    responses={200: ResponseSpec(description="The conversation", model=models.ConversationShape)},
    problems=(404,),
)
STREAM_EVENTS = Endpoint(
    method="GET",
    path=f"{CONVERSATION_PATH}/events",
    handler=events.stream_events,
    summary="Its events: entries with their seq as id, and live text without an id",
    scope=ONE_CONVERSATION,
    query=schemas.EventsQueryParams,
    responses={200: ResponseSpec(description="A stream of events", media=(STREAM,))},
    problems=(400, 404),
    headers={"Last-Event-ID": "The seq of the last entry that the client has."},
)
SEND_EXPORT = Endpoint(
    method="GET",
    path=f"{CONVERSATION_PATH}/export",
    handler=exports.send_export,
    summary="It as a file: a page without scripts, Markdown, or lines that can be imported",
    scope=ONE_CONVERSATION,
    query=schemas.ExportQuery,
    responses={
        200: ResponseSpec(
            description="The file",
            media=("text/html", "text/markdown", "application/x-ndjson"),
        )
    },
    problems=(400, 404),
)
SEND_FILE = Endpoint(
    method="GET",
    path=f"{CONVERSATION_PATH}/files/{{file}}",
    handler=files.send_file,
    summary="A file of it, by the id that its messages name: an image, or a download",
    scope=ONE_CONVERSATION,
    responses={200: ResponseSpec(description="The content", media=("application/octet-stream",))},
    problems=(404,),
)
SYSTEM_ENDPOINTS = (
    Endpoint(
        method="GET",
        path="/healthz",
        handler=health_endpoints.check_liveness,
        summary="Whether the process answers",
        scope=PUBLIC,
        responses={200: ResponseSpec(description="It does", model=schemas.Health)},
    ),
    Endpoint(
        method="GET",
        path="/readyz",
        handler=health_endpoints.check_readiness,
        summary="Whether the store can be read and written, and how the channels are",
        scope=PUBLIC,
        responses={200: ResponseSpec(description="It can", model=schemas.Readiness)},
    ),
    Endpoint(
        method="GET",
        path="/metrics",
        handler=metrics.render_metrics,
        summary="Numbers for Prometheus",
        responses={200: ResponseSpec(description="The numbers", media=(metrics.CONTENT_TYPE,))},
    ),
    Endpoint(
        method="GET",
        path="/openapi.json",
        handler=health_endpoints.show_openapi,
        summary="This description",
        responses={200: ResponseSpec(description="The description")},
    ),
)
