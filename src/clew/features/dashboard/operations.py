"""The operations of logins, for HTTP and JSON-RPC."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pydantic import Field

from clew.api.operation_scope import LOCAL_CLIENTS
from clew.api.operations import HttpBinding, make_operation
from clew.clock import from_millis
from clew.features.dashboard import logins
from clew.wire.errors import ErrorCode
from clew.wire.methods import RpcMethod
from clew.wire.models import WireModel
from clew.wire.params import NoParams, Params
from clew.wire.serializers import format_timestamp

if TYPE_CHECKING:
    from collections.abc import Mapping

    from clew.api.operation_call import OperationCall
    from clew.api.operations import AnyOperation
    from clew.features.dashboard.logins import BrowserLogin
    from clew.store.contract import Tx


class LoginShape(WireModel):
    """A browser that has logged in; ``label`` is what it says of itself."""

    id: str
    scope: str
    label: str
    created_at: str
    used_at: str
    expires_at: str


class LoginList(WireModel):
    items: list[LoginShape]


class CodeShape(WireModel):
    """A code that lets one browser log in, as ``#login=CODE`` behind the dashboard's address."""

    code: str
    expires_at: str


class LoginParams(Params):
    """A login, by its id."""

    login: str = Field(min_length=1, max_length=100)


def describe_login(login: BrowserLogin) -> dict[str, Any]:
    """Return a login as programs get it."""
    return {
        "id": login.id,
        "scope": login.scope,
        "label": login.label,
        "created_at": _format(login.created_at),
        "used_at": _format(login.used_at),
        "expires_at": _format(login.expires_at),
    }


def describe_all(t: Tx) -> list[dict[str, Any]]:
    """Return all logins, as programs get them."""
    return [describe_login(one) for one in logins.list_logins(t)]


def _format(millis: int) -> str:
    return format_timestamp(from_millis(millis)) or ""


async def _list_logins(call: OperationCall, given: NoParams) -> LoginList:
    found = await call.engine.feature_context.store.read(describe_all)
    return LoginList.model_validate({"items": found})


async def _revoke_login(call: OperationCall, given: LoginParams) -> LoginShape:
    store = call.engine.feature_context.store
    revoked = await store.write(logins.revoke_login, given.login)
    return LoginShape.model_validate(describe_login(revoked))


async def _make_code(call: OperationCall, given: NoParams) -> CodeShape:
    code = logins.make_secret()
    store = call.engine.feature_context.store
    expires_at = await store.write(logins.add_code, code, scope=call.context.viewer)
    return CodeShape(code=code, expires_at=_format(expires_at))


OPERATIONS: Final[Mapping[str, AnyOperation]] = {
    "login.list": make_operation(
        RpcMethod(
            name="login.list",
            params=NoParams,
            result=LoginList,
            summary="The browsers that have logged in at the dashboard.",
        ),
        _list_logins,
        LOCAL_CLIENTS,
        HttpBinding(
            method="GET",
            path="/api/logins",
            summary="The browsers that have logged in",
            answer="All of them, the one used last first",
        ),
        is_ordered=False,
    ),
    "login.revoke": make_operation(
        RpcMethod(
            name="login.revoke",
            params=LoginParams,
            result=LoginShape,
            summary="Log a browser out.",
            errors=(ErrorCode.NOT_FOUND,),
        ),
        _revoke_login,
        LOCAL_CLIENTS,
        HttpBinding(
            method="DELETE",
            path="/api/logins/{login}",
            summary="Log a browser out",
            answer="The login, which is worth nothing any more",
            subject="login",
        ),
    ),
    "login.code": make_operation(
        RpcMethod(
            name="login.code",
            params=NoParams,
            result=CodeShape,
            summary="Make a code that lets one more browser log in, once and soon.",
        ),
        _make_code,
        LOCAL_CLIENTS,
        HttpBinding(
            method="POST",
            path="/api/login-codes",
            summary="Make a code that lets one browser log in",
            answer="The code",
        ),
    ),
}
