"""Errors as an editor gets them: a code of its protocol, and a sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from acp import RequestError
from pydantic import ValidationError

from clew.tui.transports import ConnectionRefused
from clew.wire.errors import CallFailed, ErrorCode

if TYPE_CHECKING:
    from collections.abc import Mapping

METHOD_NOT_FOUND: Final = -32601
INVALID_PARAMS: Final = -32602
INTERNAL: Final = -32603
#: In this protocol -32000 asks a person to sign in, and -32002 means "not found".
RESOURCE_NOT_FOUND: Final = -32002

_CODES: Mapping[int, int] = {
    ErrorCode.NOT_FOUND: RESOURCE_NOT_FOUND,
    ErrorCode.INVALID_PARAMS: INVALID_PARAMS,
    ErrorCode.INVALID_VALUE: INVALID_PARAMS,
    ErrorCode.CONFLICT: INVALID_PARAMS,
    ErrorCode.REJECTED: INVALID_PARAMS,
    ErrorCode.TITLE_TAKEN: INVALID_PARAMS,
    ErrorCode.KEY_REUSED: INVALID_PARAMS,
    ErrorCode.SETTINGS: INVALID_PARAMS,
}
#: What the methods of this module translate.
KNOWN_FAILURES: Final = (CallFailed, ConnectionRefused, ValidationError, RequestError)


def invalid(message: str) -> RequestError:
    """Return the error for a request that cannot be carried out as it is."""
    return RequestError(INVALID_PARAMS, message)


def translate_failure(error: Exception, *, method: str) -> RequestError:
    """Return the error of a request."""
    match error:
        case CallFailed():
            code = _CODES.get(error.code, INTERNAL)
            return RequestError(code, str(error), dict(error.error.data))
        case ValidationError():
            return invalid(_describe_first(error))
        case RequestError() if error.code == METHOD_NOT_FOUND:
            return RequestError(METHOD_NOT_FOUND, f"there is no method {method[:100]!r}")
        case RequestError():
            return error
        case _:
            return RequestError(INTERNAL, str(error))


def _describe_first(error: ValidationError) -> str:
    """Name the first wrong argument; what the editor sent is not repeated."""
    first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    place = ".".join(str(step) for step in first["loc"])[:200]
    return f"{place}: {first['msg']}" if place else str(first["msg"])
