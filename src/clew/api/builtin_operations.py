"""The built-in operations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar, cast

from pydantic import BaseModel

from clew.api import schemas
from clew.api.operations import HttpBinding, Operation, OperationRegistry
from clew.api.rpc import conversations, settings, turns
from clew.errors import SettingsError
from clew.plugin.declarations import OperationSource
from clew.wire import methods
from clew.wire.params import Params

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from clew.api.operations import AnyOperation, Operations
    from clew.plugin.registry import Features
    from clew.wire.methods import RpcMethod

P = TypeVar("P", bound=Params)
R = TypeVar("R", bound=BaseModel)

_CONVERSATION = "/api/conversations/{id}"


def _ordered(
    definition: RpcMethod[P, R],
    handler: Callable[[Any, P], Awaitable[R]],
    http: HttpBinding | None = None,
) -> AnyOperation:
    return Operation(definition=definition, handler=handler, is_ordered=True, http=http)


def _concurrent(
    definition: RpcMethod[P, R],
    handler: Callable[[Any, P], Awaitable[R]],
    http: HttpBinding | None = None,
) -> AnyOperation:
    return Operation(definition=definition, handler=handler, is_ordered=False, http=http)


_LIST = HttpBinding(
    method="GET",
    path="/api/conversations",
    summary="Conversations, the last used first",
    answer="A page of them",
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
    path=f"{_CONVERSATION}/entries",
    summary="Entries of its log, in order",
    answer="A page of them",
    query=schemas.EntriesQueryParams,
)
_BRANCH = HttpBinding(
    method="POST",
    path=f"{_CONVERSATION}/branch",
    summary="Copy its context into a new conversation",
    answer="The copy",
    body=schemas.BranchRequest,
)
_DELETE = HttpBinding(
    method="DELETE",
    path=_CONVERSATION,
    summary="Delete it: nobody can read or write it",
    answer="Until when it can be undeleted",
    result=schemas.Deleted,
)
_UNDELETE = HttpBinding(
    method="POST",
    path=f"{_CONVERSATION}/undelete",
    summary="Bring a deleted conversation back, by its id",
    answer="The conversation",
)

_CONVERSATIONS = (
    _ordered(methods.OPEN, conversations.open_conversation),
    _ordered(methods.NEW, conversations.new_conversation),
    _ordered(methods.RESUME, conversations.resume_conversation),
    _ordered(methods.CLOSE, conversations.close_conversation),
    _concurrent(methods.LIST, conversations.list_conversations, _LIST),
    _concurrent(methods.STATUS, conversations.get_status),
    _concurrent(methods.ENTRIES, conversations.list_entries, _ENTRIES),
    _concurrent(methods.SEARCH, conversations.search_messages, _SEARCH),
    _ordered(methods.RENAME, conversations.rename_conversation),
    _ordered(methods.BRANCH, conversations.branch_conversation, _BRANCH),
    _ordered(methods.REWIND, conversations.rewind_conversation),
    _ordered(methods.UNDO, conversations.undo_exchanges),
    _ordered(methods.RETRY, conversations.retry_exchange),
    _ordered(methods.DELETE, conversations.delete_conversation, _DELETE),
    _ordered(methods.UNDELETE, conversations.undelete_conversation, _UNDELETE),
    _ordered(methods.COMPACT, conversations.compact_session),
)
_TURNS = (
    _ordered(methods.SUBMIT, turns.submit_message),
    _concurrent(methods.INTERRUPT, turns.interrupt_turn),
    _concurrent(methods.APPROVALS, turns.list_approvals),
    _concurrent(methods.RESPOND, turns.answer_approval),
    _concurrent(methods.QUEUE, turns.list_queue),
    _ordered(methods.CANCEL, turns.cancel_input),
    _ordered(methods.EDIT, turns.edit_input),
    _ordered(methods.SUBSCRIBE, turns.subscribe_events),
    _ordered(methods.UNSUBSCRIBE, turns.unsubscribe_events),
)
_SETTINGS = (
    _concurrent(methods.COMMANDS, settings.list_commands),
    _ordered(methods.RUN, settings.run_command),
    _concurrent(methods.COMPLETE, settings.complete_text),
    _concurrent(methods.CONFIG_GET, settings.get_config),
    _ordered(methods.CONFIG_SET, settings.set_config),
    _concurrent(methods.MODELS, settings.list_models),
    _ordered(methods.SET_MODEL, settings.set_model),
    _concurrent(methods.DESCRIBE, settings.describe_agent),
    _concurrent(methods.DISCOVER, settings.discover_methods),
)


def create_registry() -> OperationRegistry:
    """Return a registry with the built-in operations, to which others can be added."""
    return OperationRegistry((*_CONVERSATIONS, *_TURNS, *_SETTINGS))


def build_operations(features: Features) -> Operations:
    """
    Return the operations of Clew and its features.

    :raises SettingsError: if one cannot be made, or its name is taken
    """
    registry = create_registry()
    for declared in features.get(OperationSource):
        try:
            registry.add(cast("AnyOperation", declared.value.make()))
        except Exception as error:
            raise SettingsError(
                f"the operation {declared.value.name!r} of the feature {declared.owner!r} cannot "
                f"be used: {error}"
            ) from error
    return registry.build()


#: What a server without features offers.
BUILTIN_OPERATIONS = create_registry().build()
