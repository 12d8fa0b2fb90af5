"""Check of an operation's scope before its handler runs, the same for every transport."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from clew.api.operation_call import CallSubject, OperationCall
from clew.api.operation_scope import CallerKind, NamedKind, OperationScope
from clew.api.responses.ids import parse_response_id
from clew.core.ids import ApprovalId, GrantId, InboxId, looks_like_id
from clew.core.route import Route
from clew.core.scope import LOCAL
from clew.core.text import sanitize_text
from clew.errors import NotFound
from clew.wire.errors import CallFailed, ErrorCode

if TYPE_CHECKING:
    from collections.abc import Mapping

    from clew.api.operation_context import OperationContext
    from clew.core.ids import ConversationId
    from clew.engine.engine import Engine

C = TypeVar("C", bound=OperationCall)


async def authorize_call(scope: OperationScope, call: C, given: Mapping[str, object]) -> C:
    """
    Return the call with what the ``given`` fields name.

    :raises NotFound: if the caller may not see it
    :raises CallFailed: if the caller may not call this at all
    """
    _check_caller(scope.callers, call.context)
    subject = CallSubject()
    for field, kind in scope.names.items():
        if (name := given.get(field)) is not None:
            subject = await _find_subject(subject, kind, str(name), call.context, param=field)
    return replace(call, subject=subject)


def _check_caller(callers: CallerKind, context: OperationContext) -> None:
    if callers in (CallerKind.LOCAL, CallerKind.OWNER) and context.viewer != LOCAL:
        raise CallFailed.from_code(ErrorCode.METHOD_NOT_FOUND)
    if callers is CallerKind.OWNER and not context.may_configure:
        raise CallFailed.from_code(
            ErrorCode.INVALID_VALUE,
            "without api.token any program of this machine may connect, and so none may change "
            "settings: set api.token, or edit config.toml",
        )


async def _find_subject(
    subject: CallSubject, kind: NamedKind, name: str, context: OperationContext, *, param: str
) -> CallSubject:
    engine = context.engine
    match kind:
        case NamedKind.ROUTE:
            if looks_like_id(clean := sanitize_text(name)):
                message = f"{name!r} is an id: give a name that is to lead there"
                raise CallFailed.from_code(ErrorCode.INVALID_VALUE, message, param=param)
            return replace(subject, route=await context.resolve_target(clean))
        case NamedKind.TARGET:
            target = await context.resolve_target(name)
            found = None if isinstance(target, Route) else target
            return replace(subject, target=target, conversation=found)
        case NamedKind.DELETED:
            deleted = await engine.list_deleted(viewer=context.viewer)
            if all(each.id != name for each in deleted):
                raise NotFound("deleted conversation", name)
            return subject
        case NamedKind.GRANT:
            await engine.grants.get_grant(GrantId(name), viewer=context.viewer)
            return subject
        case NamedKind.RESPONSE | NamedKind.INPUT | NamedKind.APPROVAL:
            subject, name = await _find_owner(subject, kind, name, engine)
        case NamedKind.CONVERSATION:
            pass
    conversation = await context.resolve_name(name)
    return replace(subject, conversation=conversation, target=conversation)


async def _find_owner(
    subject: CallSubject, kind: NamedKind, name: str, engine: Engine
) -> tuple[CallSubject, ConversationId]:
    """Return the conversation of a part of it, and the subject with a response that is named."""
    match kind:
        case NamedKind.APPROVAL:
            return subject, (await engine.get_approval(ApprovalId(name))).conversation_id
        case NamedKind.RESPONSE:
            item = parse_response_id(name)
            subject = replace(subject, response=item)
        case _:
            item = InboxId(name)
    return subject, (await engine.get_input(item)).conversation_id
