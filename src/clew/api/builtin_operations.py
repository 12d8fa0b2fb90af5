"""The built-in operations."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, TypeVar, cast

from pydantic import BaseModel

from clew.api import schemas
from clew.api.ag_ui.endpoints import AG_UI_ENDPOINTS
from clew.api.builtin_endpoints import (
    CONVERSATION_PATH,
    KEY_HEADERS,
    OPENAI_ENDPOINTS,
    SEND_EXPORT,
    SEND_FILE,
    SHOW_CONVERSATION,
    STREAM_EVENTS,
    SYSTEM_ENDPOINTS,
)
from clew.api.handlers import answers, conversations, exports, grants, settings, turns
from clew.api.operation_endpoint import answer_once, show_afterwards
from clew.api.operation_scope import (
    CLIENTS,
    LOCAL_CLIENTS,
    ONE_CONVERSATION,
    OWNER,
    NamedKind,
    OperationScope,
)
from clew.api.operations import HttpBinding, OperationRegistry, make_operation
from clew.api.responses.endpoints import RESPONSE_ENDPOINTS
from clew.errors import SettingsError
from clew.plugin.declarations import OperationSource
from clew.wire import methods, models
from clew.wire.params import Params

if TYPE_CHECKING:
    from clew.api.endpoints import Endpoint
    from clew.api.operations import AnyOperation, Operations
    from clew.plugin.registry import Features

P = TypeVar("P", bound=Params)
R = TypeVar("R", bound=BaseModel)


_ordered = make_operation
_concurrent = partial(_ordered, is_ordered=False)

_TARGET = OperationScope(names={"conversation": NamedKind.TARGET})
_INPUT = OperationScope(names={"inbox_id": NamedKind.INPUT})
_GRANT = OperationScope(names={"grant": NamedKind.GRANT})

_LIST = HttpBinding(
    method="GET",
    path="/api/conversations",
    summary="Conversations, most recently used first",
    answer="One page",
    query=schemas.ListQueryParams,
)
_SEARCH = HttpBinding(
    method="GET",
    path="/api/search",
    summary="Messages with these words, newest first",
    answer="A page of hits",
    query=schemas.SearchQueryParams,
)
_ENTRIES = HttpBinding(
    method="GET",
    path=f"{CONVERSATION_PATH}/entries",
    summary="Entries of its log, in order",
    answer="One page",
    query=schemas.EntriesQueryParams,
)
_SCOPES = HttpBinding(
    method="GET",
    path="/api/scopes",
    summary="The people and chats that have conversations",
    answer="All of them, last used first",
)
_CALL = HttpBinding(
    method="GET",
    path=f"{CONVERSATION_PATH}/turns/{{turn}}/calls/{{call}}",
    summary="The effect, the times and the reason of a tool call",
    answer="What is known of it",
)
_LINEAGE = HttpBinding(
    method="GET",
    path=f"{CONVERSATION_PATH}/lineage",
    summary="Its origin, its sessions with their summaries, and its branches",
    answer="The lineage",
)
_SUBMIT = HttpBinding(
    method="POST",
    path=f"{CONVERSATION_PATH}/messages",
    summary="Send a message; the answer becomes an entry of the log",
    answer="It is stored",
    subject="session_id",
    body=schemas.MessageRequest,
    headers=KEY_HEADERS,
    status=202,
    result=schemas.AcceptedShape,
    respond=answer_once,
)
_RENAME = HttpBinding(
    method="POST",
    path=f"{CONVERSATION_PATH}/rename",
    summary="Set or remove its title",
    answer="The conversation",
    # Nothing is created for a new NAME.
    scope=ONE_CONVERSATION,
    body=schemas.RenameRequest,
)
_BRANCH = HttpBinding(
    method="POST",
    path=f"{CONVERSATION_PATH}/branch",
    summary="Copy its context into a new conversation",
    answer="The copy",
    body=schemas.BranchRequest,
)
_END = HttpBinding(
    method="POST",
    path=f"{CONVERSATION_PATH}/close",
    summary="End its session; the next message opens it again",
    answer="The conversation",
)
_REWIND = HttpBinding(
    method="POST",
    path=f"{CONVERSATION_PATH}/rewind",
    summary="Rewind to an earlier entry; the log keeps everything",
    answer="The conversation",
    body=schemas.RewindRequest,
    result=models.ConversationShape,
    respond=show_afterwards,
)
_COMPACT = HttpBinding(
    method="POST",
    path=f"{CONVERSATION_PATH}/compact",
    summary="Replace older messages with a summary, or preview that",
    answer="The result",
    subject="session_id",
    body=schemas.CompactRequest,
    result=models.CompactedShape,
)
_RESTORE = HttpBinding(
    method="POST",
    path=f"{CONVERSATION_PATH}/restore",
    summary="Undo the compaction that opened its session",
    answer="The conversation",
    subject="session_id",
    fixed={"undo": True},
    result=models.ConversationShape,
    respond=show_afterwards,
)
_DELETE = HttpBinding(
    method="DELETE",
    path=CONVERSATION_PATH,
    summary="Delete it: nobody can read or write it",
    answer="Until when it can be undeleted",
    result=schemas.Deleted,
)
_UNDELETE = HttpBinding(
    method="POST",
    path=f"{CONVERSATION_PATH}/undelete",
    summary="Restore a deleted conversation, by its id",
    answer="The conversation",
)

_RESPOND = HttpBinding(
    method="POST",
    path="/api/approvals/{approval}",
    summary="Allow or refuse a tool call; the first answer counts",
    answer="The approval",
    subject="approval",
    body=schemas.RespondRequest,
)
_GRANTS = HttpBinding(
    method="GET",
    path="/api/grants",
    summary="What people have allowed for longer than one tool call",
    answer="All of them",
)
_REVOKE = HttpBinding(
    method="DELETE",
    path="/api/grants/{grant}",
    summary="Take a grant back: such calls ask again",
    answer="The grant, with the time when it was taken back",
    subject="grant",
)

_CONVERSATIONS = (
    _concurrent(methods.LIST, conversations.list_conversations, CLIENTS, _LIST),
    _concurrent(methods.SCOPES, conversations.list_scopes, CLIENTS, _SCOPES),
    _concurrent(methods.SEARCH, conversations.search_messages, CLIENTS, _SEARCH),
    SHOW_CONVERSATION,
    _concurrent(methods.ENTRIES, conversations.list_entries, ONE_CONVERSATION, _ENTRIES),
    _concurrent(methods.LINEAGE, conversations.show_lineage, ONE_CONVERSATION, _LINEAGE),
    _concurrent(methods.CALL, conversations.show_call, ONE_CONVERSATION, _CALL),
    _concurrent(methods.EXPORT, exports.export_conversation, ONE_CONVERSATION),
    SEND_EXPORT,
    SEND_FILE,
    STREAM_EVENTS,
    _ordered(
        methods.SUBMIT,
        turns.submit_message,
        OperationScope(names={"session_id": NamedKind.TARGET}),
        _SUBMIT,
    ),
    _ordered(methods.RENAME, conversations.rename_conversation, _TARGET, _RENAME),
    _ordered(
        methods.BRANCH,
        conversations.branch_conversation,
        OperationScope(names={"conversation": NamedKind.CONVERSATION, "name": NamedKind.ROUTE}),
        _BRANCH,
    ),
    _ordered(methods.REWIND, conversations.rewind_conversation, ONE_CONVERSATION, _REWIND),
    _ordered(
        methods.COMPACT,
        conversations.compact_session,
        OperationScope(names={"session_id": NamedKind.CONVERSATION}),
        _COMPACT,
        _RESTORE,
    ),
    _ordered(methods.END, conversations.end_session, ONE_CONVERSATION, _END),
    _ordered(methods.DELETE, conversations.delete_conversation, ONE_CONVERSATION, _DELETE),
    _ordered(
        methods.UNDELETE,
        conversations.undelete_conversation,
        OperationScope(names={"conversation": NamedKind.DELETED}),
        _UNDELETE,
    ),
    _ordered(methods.OPEN, conversations.open_conversation, _TARGET),
    _ordered(
        methods.NEW,
        conversations.new_conversation,
        OperationScope(names={"name": NamedKind.ROUTE}),
    ),
    _ordered(
        methods.RESUME,
        conversations.resume_conversation,
        OperationScope(names={"name": NamedKind.ROUTE, "conversation": NamedKind.CONVERSATION}),
    ),
    _ordered(methods.CLOSE, conversations.leave_conversation, ONE_CONVERSATION),
    _concurrent(methods.STATUS, conversations.get_status, ONE_CONVERSATION),
    _ordered(methods.UNDO, conversations.undo_exchanges, ONE_CONVERSATION),
    _ordered(methods.RETRY, conversations.retry_exchange, ONE_CONVERSATION),
)
_TURNS = (
    _concurrent(methods.RESULT, turns.await_result, _INPUT),
    _concurrent(methods.WAIT, answers.wait_for_answer, _INPUT),
    _concurrent(methods.INTERRUPT, turns.interrupt_turn, ONE_CONVERSATION),
    _concurrent(methods.APPROVALS, turns.list_approvals, ONE_CONVERSATION),
    _concurrent(
        methods.RESPOND,
        turns.answer_approval,
        OperationScope(names={"approval": NamedKind.APPROVAL}),
        _RESPOND,
    ),
    _concurrent(methods.GRANTS, grants.list_grants, CLIENTS, _GRANTS),
    _concurrent(methods.REVOKE, grants.revoke_grant, _GRANT, _REVOKE),
    _concurrent(methods.QUEUE, turns.list_queue, ONE_CONVERSATION),
    _ordered(methods.CANCEL, turns.cancel_input, _INPUT),
    _ordered(methods.EDIT, turns.edit_input, _INPUT),
    _ordered(methods.SUBSCRIBE, turns.subscribe_events, ONE_CONVERSATION),
    _ordered(methods.UNSUBSCRIBE, turns.unsubscribe_events, ONE_CONVERSATION),
)
_SETTINGS = (
    _concurrent(methods.COMMANDS, settings.list_commands, CLIENTS),
    _ordered(methods.RUN, settings.run_command, _TARGET),
    # Both show files or settings of this machine.
    _concurrent(methods.COMPLETE, settings.complete_text, LOCAL_CLIENTS),
    _concurrent(methods.CONFIG_GET, settings.get_config, LOCAL_CLIENTS),
    _ordered(methods.CONFIG_SET, settings.set_config, OWNER),
    _concurrent(methods.MODELS, settings.list_models, ONE_CONVERSATION),
    _ordered(methods.SET_MODEL, settings.set_model, ONE_CONVERSATION),
    _concurrent(methods.DESCRIBE, settings.describe_agent, CLIENTS),
    _concurrent(methods.DISCOVER, settings.discover_methods, CLIENTS),
)


def create_registry() -> OperationRegistry:
    """Return a registry with the built-in operations, to which others can be added."""
    return OperationRegistry(
        (
            *OPENAI_ENDPOINTS,
            *RESPONSE_ENDPOINTS,
            *AG_UI_ENDPOINTS,
            *_CONVERSATIONS,
            *SYSTEM_ENDPOINTS,
            *_TURNS,
            *_SETTINGS,
        )
    )


def build_operations(features: Features) -> Operations:
    """
    Return the operations of Clew and its features.

    :raises SettingsError: if one cannot be made, or its name is taken
    """
    registry = create_registry()
    for declared in features.get(OperationSource):
        try:
            registry.add(cast("AnyOperation | Endpoint", declared.value.make()))
        except Exception as error:
            raise SettingsError(
                f"the operation {declared.value.name!r} of the feature {declared.owner!r} cannot "
                f"be used: {error}"
            ) from error
    return registry.build()


#: The operations of a server without features.
BUILTIN_OPERATIONS = create_registry().build()
