"""Error responses, in the same format everywhere."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING

from starlette.responses import JSONResponse

from clew import errors
from clew.errors import ClewError
from clew.record import Record
from clew.wire.errors import ErrorCode, RpcError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.responses import Response

INVALID_REQUEST = "invalid_request_error"
SERVER_ERROR = "server_error"
#: Seconds after which a request that stored nothing may be repeated.
RETRY_AFTER = 1


class Problem(Record):
    """An error response: ``message`` for people, ``code`` for programs."""

    status: int
    message: str
    code: str
    type: str = INVALID_REQUEST
    #: The invalid field of the request.
    param: str | None = None
    #: Repeating the same request is safe and may help.
    again: bool = False
    #: The request is stored already and will be processed: it need not be sent again.
    stored: bool = False

    @property
    def json_body(self) -> dict[str, object]:
        error = {"message": self.message, "type": self.type, "code": self.code}
        return {"error": error if self.param is None else {**error, "param": self.param}}

    @property
    def stored_fields(self) -> dict[str, object]:
        """Return the fields from which the problem can be rebuilt."""
        return {each.name: getattr(self, each.name) for each in fields(self)}

    @property
    def http_headers(self) -> dict[str, str]:
        if not self.again:
            # Clients retry 409 and 5xx on their own: here that would send messages twice.
            return {"x-should-retry": "false"}
        after = {} if self.stored else {"Retry-After": str(RETRY_AFTER)}
        return {"x-should-retry": "true", **after}

    def to_response(self, headers: Mapping[str, str] | None = None) -> Response:
        extra = {"WWW-Authenticate": "Bearer"} if self.status == 401 else {}
        every = {**self.http_headers, **extra, **(headers or {})}
        return JSONResponse(self.json_body, self.status, headers=every)


class ProblemError(ClewError):
    """Ends a request with an error response."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.message)
        self.problem = problem


def invalid_request(
    message: str, *, param: str | None = None, code: str = "invalid_value"
) -> ProblemError:
    """Return the error for a request that cannot be fulfilled."""
    return ProblemError(Problem(status=400, message=message, code=code, param=param))


#: HTTP status and code of each error.
ERROR_STATUSES: Mapping[int, tuple[int, str]] = {
    ErrorCode.METHOD_NOT_FOUND: (404, "unknown_path"),
    ErrorCode.INVALID_PARAMS: (400, "invalid_value"),
    ErrorCode.INVALID_VALUE: (400, "invalid_value"),
    ErrorCode.NOT_FOUND: (404, "not_found"),
    ErrorCode.CONFLICT: (409, "conflict"),
    ErrorCode.REJECTED: (409, "rejected"),
    ErrorCode.TITLE_TAKEN: (409, "title_taken"),
    ErrorCode.KEY_REUSED: (422, "idempotency_key_reused"),
    ErrorCode.SETTINGS: (500, "settings"),
    ErrorCode.UNAVAILABLE: (503, "store_unavailable"),
    ErrorCode.STORE_FULL: (507, "store_full"),
    ErrorCode.STORE_FAILED: (500, "store_failed"),
}
REJECTED_MESSAGE = "another turn is unfinished"


def problem_from_error(error: ClewError) -> Problem:
    """Return the problem that a client gets for an error of Clew."""
    if isinstance(error, ProblemError):
        return error.problem
    failure = RpcError.from_exception(error)
    if failure.code not in ERROR_STATUSES:
        return INTERNAL_ERROR
    status, code = ERROR_STATUSES[failure.code]
    # Retryable only if nothing was stored.
    again = isinstance(error, errors.StoreUnavailable) and not error.uncertain
    return Problem(
        status=status,
        message=REJECTED_MESSAGE if failure.code == ErrorCode.REJECTED else failure.message,
        code="store_damaged" if isinstance(error, errors.StoreDamaged) else code,
        type=SERVER_ERROR if status >= 500 else INVALID_REQUEST,
        param=failure.param,
        again=again,
    )


INTERNAL_ERROR = Problem(
    status=500,
    message="something went wrong inside Clew; its log says what",
    code="internal",
    type=SERVER_ERROR,
)
