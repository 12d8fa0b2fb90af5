"""The table of endpoints: everything that is served, in one place."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.api import schemas
from clew.api.endpoints import STREAM, Endpoint, Reply
from clew.api.metrics import MEDIA as METRICS
from clew.api.schemas import Nothing
from clew.wire import records

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clew.api.chat import Chat
    from clew.api.conversations import Conversations
    from clew.api.endpoints import AnyEndpoint
    from clew.api.events import Events
    from clew.api.hooks import Hooks
    from clew.api.metrics import Metrics
    from clew.api.system import System

_KEY = {"Idempotency-Key": "The same key gives the first answer again, for 7 days."}
_CHAT_HEADERS = {
    "X-Clew-Conversation": "NAME or id of the conversation whose context counts; without it the "
    "messages that are sent do.",
    "X-Clew-Double-Text": "What happens while a turn is unfinished: queue, steer, interrupt …",
    **_KEY,
}
_CONVERSATION = "/api/conversations/{id}"


def table(
    *,
    chat: Chat,
    conversations: Conversations,
    events: Events,
    hooks: Hooks,
    metrics: Metrics,
    system: System,
) -> Sequence[AnyEndpoint]:
    """Every endpoint."""
    return (
        *_openai(chat, system),
        *_reading(conversations, events),
        *_writing(conversations),
        *_operating(metrics, system),
        Endpoint(
            method="POST",
            path="/hooks/{name}",
            handler=hooks.hand_in,
            summary="Hand an event to a channel; its signature says from whom it is",
            query=Nothing,
            body=Nothing,
            replies={202: Reply(says="It is stored", shape=schemas.Taken)},
            problems=(400, 401, 404, 408, 413),
            open=True,
        ),
    )


def _openai(chat: Chat, system: System) -> Sequence[AnyEndpoint]:
    return (
        Endpoint(
            method="POST",
            path="/v1/chat/completions",
            handler=chat.complete,
            summary="One turn of a conversation, as an OpenAI chat completion",
            query=Nothing,
            body=schemas.ChatRequest,
            replies={200: Reply(says="The answer", shape=schemas.ChatCompletion, media=(STREAM,))},
            problems=(404, 409, 422, 502),
            headers=_CHAT_HEADERS,
        ),
        Endpoint(
            method="GET",
            path="/v1/models",
            handler=system.list_models,
            summary="The names under which the agent is on offer",
            query=Nothing,
            body=Nothing,
            replies={200: Reply(says="The names", shape=schemas.ModelList)},
        ),
        Endpoint(
            method="GET",
            path="/v1/models/{model}",
            handler=system.show_model,
            summary="One of these names",
            query=Nothing,
            body=Nothing,
            replies={200: Reply(says="The name", shape=schemas.ModelShape)},
            problems=(404,),
        ),
    )


def _reading(conversations: Conversations, events: Events) -> Sequence[AnyEndpoint]:
    return (
        Endpoint(
            method="GET",
            path="/api/conversations",
            handler=conversations.list,
            summary="Conversations, the last used first",
            query=schemas.ListQuery,
            body=Nothing,
            replies={200: Reply(says="A page of them", shape=records.ConversationList)},
            problems=(400,),
        ),
        Endpoint(
            method="GET",
            path="/api/search",
            handler=conversations.search,
            summary="Messages with these words, newest first",
            query=schemas.SearchQuery,
            body=Nothing,
            replies={200: Reply(says="A page of hits", shape=records.HitList)},
            problems=(400,),
        ),
        Endpoint(
            method="GET",
            path=_CONVERSATION,
            handler=conversations.show,
            summary="One conversation",
            query=Nothing,
            body=Nothing,
            replies={200: Reply(says="The conversation", shape=records.ConversationShape)},
            problems=(404,),
        ),
        Endpoint(
            method="GET",
            path=f"{_CONVERSATION}/entries",
            handler=conversations.entries,
            summary="Entries of its log, in order",
            query=schemas.EntriesQuery,
            body=Nothing,
            replies={200: Reply(says="A page of them", shape=records.EntryList)},
            problems=(400, 404),
        ),
        Endpoint(
            method="GET",
            path=f"{_CONVERSATION}/events",
            handler=events.follow,
            summary="What happens in it: entries with their seq as id, and live pieces without",
            query=schemas.EventsQuery,
            body=Nothing,
            replies={200: Reply(says="A stream of events", media=(STREAM,))},
            problems=(400, 404),
            headers={"Last-Event-ID": "The seq of the last entry that the client has."},
        ),
    )


def _writing(conversations: Conversations) -> Sequence[AnyEndpoint]:
    return (
        Endpoint(
            method="POST",
            path=f"{_CONVERSATION}/messages",
            handler=conversations.say,
            summary="Say something; the answer is an entry of the log",
            query=Nothing,
            body=schemas.MessageRequest,
            replies={202: Reply(says="It is stored", shape=schemas.AcceptedShape)},
            problems=(404, 409, 422),
            headers=_KEY,
        ),
        Endpoint(
            method="POST",
            path=f"{_CONVERSATION}/rename",
            handler=conversations.rename,
            summary="Give it a title, or take it away",
            query=Nothing,
            body=schemas.RenameRequest,
            replies={200: Reply(says="The conversation", shape=records.ConversationShape)},
            problems=(404, 409),
        ),
        *_rotating(conversations),
        Endpoint(
            method="POST",
            path=f"{_CONVERSATION}/close",
            handler=conversations.close,
            summary="End its session; the next message opens it again",
            query=Nothing,
            body=Nothing,
            replies={200: Reply(says="The conversation", shape=records.ConversationShape)},
            problems=(404, 409),
        ),
        Endpoint(
            method="DELETE",
            path=_CONVERSATION,
            handler=conversations.delete,
            summary="Delete it: nobody can read or write it",
            query=Nothing,
            body=Nothing,
            replies={200: Reply(says="Until when it can be undeleted", shape=schemas.Deleted)},
            problems=(404,),
        ),
        Endpoint(
            method="POST",
            path=f"{_CONVERSATION}/undelete",
            handler=conversations.undelete,
            summary="Bring a deleted conversation back, by its id",
            query=Nothing,
            body=Nothing,
            replies={200: Reply(says="The conversation", shape=records.ConversationShape)},
            problems=(404,),
        ),
    )


def _rotating(conversations: Conversations) -> Sequence[AnyEndpoint]:
    shown = {200: Reply(says="The conversation", shape=records.ConversationShape)}
    return (
        Endpoint(
            method="POST",
            path=f"{_CONVERSATION}/branch",
            handler=conversations.branch,
            summary="Copy its context into a new conversation",
            query=Nothing,
            body=schemas.BranchRequest,
            replies={200: Reply(says="The copy", shape=records.ConversationShape)},
            problems=(404, 409),
        ),
        Endpoint(
            method="POST",
            path=f"{_CONVERSATION}/rewind",
            handler=conversations.rewind,
            summary="Go back to an earlier entry; the log keeps all",
            query=Nothing,
            body=schemas.RewindRequest,
            replies=shown,
            problems=(404, 409),
        ),
        Endpoint(
            method="POST",
            path=f"{_CONVERSATION}/compact",
            handler=conversations.compact,
            summary="Replace what is old by a summary, or say what that would do",
            query=Nothing,
            body=schemas.CompactRequest,
            replies={200: Reply(says="What came of it", shape=records.CompactedShape)},
            problems=(404, 409),
        ),
        Endpoint(
            method="POST",
            path=f"{_CONVERSATION}/restore",
            handler=conversations.restore,
            summary="Undo the compaction that opened its session",
            query=Nothing,
            body=Nothing,
            replies=shown,
            problems=(404, 409),
        ),
    )


def _operating(metrics: Metrics, system: System) -> Sequence[AnyEndpoint]:
    return (
        Endpoint(
            method="GET",
            path="/healthz",
            handler=system.alive,
            summary="Whether the process answers",
            query=Nothing,
            body=Nothing,
            replies={200: Reply(says="It does", shape=schemas.Health)},
            open=True,
        ),
        Endpoint(
            method="GET",
            path="/readyz",
            handler=system.ready,
            summary="Whether the store can be read and written, and how the channels are",
            query=Nothing,
            body=Nothing,
            replies={200: Reply(says="It can", shape=schemas.Readiness)},
            open=True,
        ),
        Endpoint(
            method="GET",
            path="/metrics",
            handler=metrics.show,
            summary="Numbers for Prometheus",
            query=Nothing,
            body=Nothing,
            replies={200: Reply(says="The numbers", media=(METRICS,))},
        ),
        Endpoint(
            method="GET",
            path="/openapi.json",
            handler=system.describe,
            summary="This description",
            query=Nothing,
            body=Nothing,
            replies={200: Reply(says="The description")},
        ),
    )
