"""Declarations of all endpoints."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.api import schemas
from clew.api.builtin_operations import BUILTIN_OPERATIONS
from clew.api.endpoints import STREAM, Endpoint, ResponseSpec
from clew.api.metrics import CONTENT_TYPE as METRICS
from clew.api.operation_endpoint import bind_operation
from clew.api.schemas import EmptyInput
from clew.wire import methods, models

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from clew.api.chat_completions import ChatCompletionsEndpoint
    from clew.api.conversations import ConversationEndpoints
    from clew.api.endpoints import AnyEndpoint
    from clew.api.events import EventsEndpoint
    from clew.api.health_endpoints import SystemEndpoints
    from clew.api.metrics import MetricsEndpoint
    from clew.api.rpc.context import RpcContext
    from clew.api.webhooks import WebhookEndpoint

_KEY_HEADERS = {"Idempotency-Key": "The same key gives the first answer again, for 7 days."}
_CHAT_HEADERS = {
    "X-Clew-Conversation": "NAME or id of the conversation whose context counts; without it the "
    "messages that are sent do.",
    "X-Clew-Double-Text": "What happens while a turn is unfinished: queue, steer, interrupt …",
    **_KEY_HEADERS,
}
_CONVERSATION_PATH = "/api/conversations/{id}"


def build_endpoints(
    context: RpcContext,
    *,
    chat: ChatCompletionsEndpoint,
    conversations: ConversationEndpoints,
    events: EventsEndpoint,
    hooks: WebhookEndpoint,
    metrics: MetricsEndpoint,
    system: SystemEndpoints,
) -> Sequence[AnyEndpoint]:
    """Return every endpoint."""
    return (
        *_openai_endpoints(chat, system),
        *_read_endpoints(context, conversations, events),
        *_write_endpoints(context, conversations),
        *_operation_endpoints(metrics, system),
        Endpoint(
            method="POST",
            path="/hooks/{name}",
            handler=hooks.receive_webhook,
            summary="Hand an event to a channel; its signature says from whom it is",
            query=EmptyInput,
            body=EmptyInput,
            responses={202: ResponseSpec(description="It is stored", model=schemas.Taken)},
            problems=(400, 401, 404, 408, 413),
            is_public=True,
        ),
        *_added_endpoints(context),
    )


def _added_endpoints(context: RpcContext) -> Iterator[AnyEndpoint]:
    """Yield the endpoints that are not built in."""
    for operation in context.operations:
        if operation.http is not None and operation.name not in BUILTIN_OPERATIONS.names:
            yield bind_operation(operation.definition, context)
    yield from context.operations.endpoints


def _openai_endpoints(
    chat: ChatCompletionsEndpoint, system: SystemEndpoints
) -> Sequence[AnyEndpoint]:
    return (
        Endpoint(
            method="POST",
            path="/v1/chat/completions",
            handler=chat.create_completion,
            summary="One turn of a conversation, as an OpenAI chat completion",
            query=EmptyInput,
            body=schemas.ChatRequest,
            responses={
                200: ResponseSpec(
                    description="The answer", model=schemas.ChatCompletion, media=(STREAM,)
                )
            },
            problems=(404, 409, 422, 502),
            headers=_CHAT_HEADERS,
        ),
        Endpoint(
            method="GET",
            path="/v1/models",
            handler=system.list_models,
            summary="The names under which the agent is on offer",
            query=EmptyInput,
            body=EmptyInput,
            responses={200: ResponseSpec(description="The names", model=schemas.ModelList)},
        ),
        Endpoint(
            method="GET",
            path="/v1/models/{model}",
            handler=system.show_model,
            summary="One of these names",
            query=EmptyInput,
            body=EmptyInput,
            responses={200: ResponseSpec(description="The name", model=schemas.ModelShape)},
            problems=(404,),
        ),
    )


def _read_endpoints(
    context: RpcContext, conversations: ConversationEndpoints, events: EventsEndpoint
) -> Sequence[AnyEndpoint]:
    return (
        bind_operation(methods.LIST, context),
        bind_operation(methods.SEARCH, context),
        Endpoint(
            method="GET",
            path=_CONVERSATION_PATH,
            handler=conversations.show_conversation,
            summary="One conversation",
            query=EmptyInput,
            body=EmptyInput,
            responses={
                200: ResponseSpec(description="The conversation", model=models.ConversationShape)
            },
            problems=(404,),
        ),
        bind_operation(methods.ENTRIES, context),
        Endpoint(
            method="GET",
            path=f"{_CONVERSATION_PATH}/events",
            handler=events.stream_events,
            summary="What happens in it: entries with their seq as id, and live pieces without",
            query=schemas.EventsQueryParams,
            body=EmptyInput,
            responses={200: ResponseSpec(description="A stream of events", media=(STREAM,))},
            problems=(400, 404),
            headers={"Last-Event-ID": "The seq of the last entry that the client has."},
        ),
    )


def _write_endpoints(
    context: RpcContext, conversations: ConversationEndpoints
) -> Sequence[AnyEndpoint]:
    return (
        Endpoint(
            method="POST",
            path=f"{_CONVERSATION_PATH}/messages",
            handler=conversations.post_message,
            summary="Say something; the answer is an entry of the log",
            query=EmptyInput,
            body=schemas.MessageRequest,
            responses={202: ResponseSpec(description="It is stored", model=schemas.AcceptedShape)},
            problems=(404, 409, 422),
            headers=_KEY_HEADERS,
        ),
        Endpoint(
            method="POST",
            path=f"{_CONVERSATION_PATH}/rename",
            handler=conversations.rename_conversation,
            summary="Give it a title, or take it away",
            query=EmptyInput,
            body=schemas.RenameRequest,
            responses={
                200: ResponseSpec(description="The conversation", model=models.ConversationShape)
            },
            problems=(404, 409),
        ),
        *_rotation_endpoints(context, conversations),
        Endpoint(
            method="POST",
            path=f"{_CONVERSATION_PATH}/close",
            handler=conversations.close_conversation,
            summary="End its session; the next message opens it again",
            query=EmptyInput,
            body=EmptyInput,
            responses={
                200: ResponseSpec(description="The conversation", model=models.ConversationShape)
            },
            problems=(404, 409),
        ),
        bind_operation(methods.DELETE, context),
        bind_operation(methods.UNDELETE, context),
    )


def _rotation_endpoints(
    context: RpcContext, conversations: ConversationEndpoints
) -> Sequence[AnyEndpoint]:
    shown = {200: ResponseSpec(description="The conversation", model=models.ConversationShape)}
    return (
        bind_operation(methods.BRANCH, context),
        Endpoint(
            method="POST",
            path=f"{_CONVERSATION_PATH}/rewind",
            handler=conversations.rewind_conversation,
            summary="Go back to an earlier entry; the log keeps all",
            query=EmptyInput,
            body=schemas.RewindRequest,
            responses=shown,
            problems=(404, 409),
        ),
        Endpoint(
            method="POST",
            path=f"{_CONVERSATION_PATH}/compact",
            handler=conversations.compact_session,
            summary="Replace what is old by a summary, or say what that would do",
            query=EmptyInput,
            body=schemas.CompactRequest,
            responses={
                200: ResponseSpec(description="What came of it", model=models.CompactedShape)
            },
            problems=(404, 409),
        ),
        Endpoint(
            method="POST",
            path=f"{_CONVERSATION_PATH}/restore",
            handler=conversations.restore_session,
            summary="Undo the compaction that opened its session",
            query=EmptyInput,
            body=EmptyInput,
            responses=shown,
            problems=(404, 409),
        ),
    )


def _operation_endpoints(
    metrics: MetricsEndpoint, system: SystemEndpoints
) -> Sequence[AnyEndpoint]:
    return (
        Endpoint(
            method="GET",
            path="/healthz",
            handler=system.check_liveness,
            summary="Whether the process answers",
            query=EmptyInput,
            body=EmptyInput,
            responses={200: ResponseSpec(description="It does", model=schemas.Health)},
            is_public=True,
        ),
        Endpoint(
            method="GET",
            path="/readyz",
            handler=system.check_readiness,
            summary="Whether the store can be read and written, and how the channels are",
            query=EmptyInput,
            body=EmptyInput,
            responses={200: ResponseSpec(description="It can", model=schemas.Readiness)},
            is_public=True,
        ),
        Endpoint(
            method="GET",
            path="/metrics",
            handler=metrics.render_metrics,
            summary="Numbers for Prometheus",
            query=EmptyInput,
            body=EmptyInput,
            responses={200: ResponseSpec(description="The numbers", media=(METRICS,))},
        ),
        Endpoint(
            method="GET",
            path="/openapi.json",
            handler=system.show_openapi,
            summary="This description",
            query=EmptyInput,
            body=EmptyInput,
            responses={200: ResponseSpec(description="The description")},
        ),
    )
