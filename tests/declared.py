"""Errors that methods answered in a run, compared with those that the reference promises."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.api.builtin_operations import BUILTIN_OPERATIONS
from clew.api.rpc import dispatch
from clew.wire.errors import ErrorCode
from clew.wire.openrpc import COMMON_ERRORS as COMMON

if TYPE_CHECKING:
    from clew.wire.errors import RpcError
    from clew.wire.framing import RpcErrorResponse, RpcRequest

_undeclared: list[str] = []


def observe() -> None:
    """Note, in this process, each error that its method does not declare."""
    inner = dispatch._error_response  # pyright: ignore[reportPrivateUsage]

    def outer(request: RpcRequest, error: RpcError) -> RpcErrorResponse | None:
        method = BUILTIN_OPERATIONS.get(request.method)
        # To a caller outside its scope it is no method.
        always = {*COMMON, ErrorCode.METHOD_NOT_FOUND}
        if method is not None and error.code not in {*always, *method.definition.errors}:
            _undeclared.append(f"{request.method} answered {ErrorCode(error.code).name}")
        return inner(request, error)

    dispatch._error_response = outer  # pyright: ignore[reportPrivateUsage]


def check() -> None:
    """
    Compare what a test has met.

    :raises AssertionError: for an error that the method's reference does not list
    """
    found, _undeclared[:] = list(_undeclared), []
    assert not found, f"declare these errors in clew.wire.methods: {found}"
