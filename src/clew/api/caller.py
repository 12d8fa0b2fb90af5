"""People who are logged in at a website: what their requests may see."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from clew.core.scope import LOCAL
from clew.record import Record

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from starlette.types import Scope as AsgiScope

    from clew.api.operation_context import OperationContext
    from clew.core.scope import Scope

#: Seconds between two looks at the login of a browser that is connected.
LOGIN_CHECK_SECONDS = 5.0
#: The key of a connection's caller in its ASGI scope.
_CALLER_KEY: Final = "clew.caller"


class WebCaller(Record):
    """A person who is logged in at a website, instead of sending the token."""

    #: The scope whose conversations are visible.
    viewer: Scope
    #: The caller to which idempotency keys belong: the same after the next login.
    name: str
    #: Returns whether the login still holds; long connections ask again and again.
    is_valid: Callable[[], Awaitable[bool]]


def set_caller(scope: AsgiScope, caller: WebCaller) -> None:
    """Note who has sent a request."""
    scope[_CALLER_KEY] = caller


def get_caller(scope: AsgiScope) -> WebCaller | None:
    """Return who has sent a request, if that person is logged in; ``None`` for the token."""
    found = scope.get(_CALLER_KEY)
    return found if isinstance(found, WebCaller) else None


async def wait_for_logout(caller: WebCaller) -> None:
    """Wait until a login was revoked, or has expired."""
    # Nothing announces it to this process: the login may have been revoked in another one.
    while await caller.is_valid():  # noqa: ASYNC110
        await asyncio.sleep(LOGIN_CHECK_SECONDS)


def limit_context(context: OperationContext, scope: AsgiScope) -> OperationContext:
    """Return the context for a request, with what its caller may see."""
    caller = get_caller(scope)
    if caller is None:
        return context
    # Who logged in with the token is its owner; who sees one scope changes nothing of all.
    owns = context.may_configure and caller.viewer == LOCAL
    return replace(context, viewer=caller.viewer, may_configure=owns)
