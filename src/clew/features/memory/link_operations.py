"""The operations of linked accounts, for operators."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pydantic import BaseModel, Field

from clew.api.operation_scope import LOCAL_CLIENTS
from clew.api.operations import HttpBinding, make_operation
from clew.api.schemas import RequestBody
from clew.core.scope import Scope
from clew.errors import NotFound
from clew.features.memory import linking, links
from clew.wire.errors import ErrorCode
from clew.wire.methods import RpcMethod
from clew.wire.models import WireModel
from clew.wire.params import NoParams, Params
from clew.wire.serializers import format_timestamp

if TYPE_CHECKING:
    from clew.api.operation_call import OperationCall
    from clew.api.operations import AnyOperation

#: Links that are listed at most.
_LIMIT: Final = 1000


class LinkedAccount(WireModel):
    """An account of a person that shares what is remembered with their first one."""

    scope: str
    #: That of the first account.
    main: str
    linked_at: str


class LinkList(WireModel):
    items: list[LinkedAccount]


class PartedAccounts(WireModel):
    """The scopes that go on without the facts of the first account."""

    parted: list[str]


class _UnlinkFields(BaseModel):
    #: The account, by its scope; that of a first account parts all others from it.
    account: str = Field(min_length=1, max_length=300)


class UnlinkParams(_UnlinkFields, Params):
    """An account that is linked."""


class UnlinkRequest(_UnlinkFields, RequestBody):
    """An account that is linked."""


async def _list_links(call: OperationCall, given: NoParams) -> LinkList:
    found = await call.engine.feature_context.store.read(links.list_links, limit=_LIMIT)
    return LinkList(
        items=[
            LinkedAccount(
                scope=one.scope, main=one.main, linked_at=format_timestamp(one.linked_at) or ""
            )
            for one in found
        ]
    )


async def _unlink(call: OperationCall, given: UnlinkParams) -> PartedAccounts:
    parted = await linking.unlink_account(call.engine.feature_context, Scope(given.account))
    if not parted:
        raise NotFound("linked account", given.account)
    return PartedAccounts(parted=list(parted))


OPERATIONS: Final[dict[str, AnyOperation]] = {
    "person.links": make_operation(
        RpcMethod(
            name="person.links",
            params=NoParams,
            result=LinkList,
            summary="The accounts of people that share what is remembered.",
        ),
        _list_links,
        LOCAL_CLIENTS,
        HttpBinding(
            method="GET",
            path="/api/people/links",
            summary="The accounts that share what is remembered",
            answer="Each account with the first one of its person",
        ),
        is_ordered=False,
    ),
    "person.unlink": make_operation(
        RpcMethod(
            name="person.unlink",
            params=UnlinkParams,
            result=PartedAccounts,
            summary="Part an account from the others of its person.",
            errors=(ErrorCode.NOT_FOUND,),
        ),
        _unlink,
        LOCAL_CLIENTS,
        HttpBinding(
            method="POST",
            path="/api/people/unlink",
            summary="Part an account from the others of its person",
            answer="The accounts that go on without the facts of the first one",
            body=UnlinkRequest,
        ),
    ),
}
