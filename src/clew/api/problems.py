"""Error responses, in the same format everywhere."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

from starlette.responses import JSONResponse

from clew import errors
from clew.errors import ClewError
from clew.wire.errors import CallFailed, ErrorCode

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.responses import Response

INVALID_REQUEST = "invalid_request_error"
SERVER_ERROR = "server_error"
#: Seconds after which a request that stored nothing may be repeated.
RETRY_AFTER = 1


@dataclass(frozen=True, kw_only=True, slots=True)
class Problem:
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


_ERROR_TYPES: tuple[tuple[type[ClewError], int, str, str], ...] = (
    (errors.NotFound, 404, "not_found", INVALID_REQUEST),
    (errors.KeyReused, 422, "idempotency_key_reused", INVALID_REQUEST),
    (errors.TitleTaken, 409, "title_taken", INVALID_REQUEST),
    (errors.SettingsError, 500, "settings", SERVER_ERROR),
    (errors.UsageError, 400, "invalid_value", INVALID_REQUEST),
    (errors.OperationRefused, 409, "conflict", INVALID_REQUEST),
    (errors.StoreUnavailable, 503, "store_unavailable", SERVER_ERROR),
    (errors.StoreFull, 507, "store_full", SERVER_ERROR),
    (errors.StoreDamaged, 500, "store_damaged", SERVER_ERROR),
    (errors.StoreError, 500, "store_failed", SERVER_ERROR),
)


def problem_from_error(error: ClewError) -> Problem:
    """Return the problem that a client gets for an error of Clew."""
    if isinstance(error, ProblemError):
        return error.problem
    if isinstance(error, CallFailed) and error.code == ErrorCode.INVALID_VALUE:
        param = error.error.data.get("param")
        return invalid_request(str(error), param=None if param is None else str(param)).problem
    for kind, status, code, type_ in _ERROR_TYPES:
        if isinstance(error, kind):
            # Retryable only if nothing was stored.
            again = isinstance(error, errors.StoreUnavailable) and not error.uncertain
            return Problem(status=status, message=str(error), code=code, type=type_, again=again)
    return INTERNAL_ERROR


INTERNAL_ERROR = Problem(
    status=500,
    message="something went wrong inside Clew; its log says what",
    code="internal",
    type=SERVER_ERROR,
)
