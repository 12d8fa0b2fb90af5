"""Problems: what a client is told when something cannot be done, in one shape everywhere."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

from starlette.responses import JSONResponse

from clew import errors
from clew.errors import ClewError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.responses import Response

INVALID = "invalid_request_error"
SERVER = "server_error"
#: Seconds before a request that stored nothing may be sent again.
RETRY_AFTER = 1


@dataclass(frozen=True, kw_only=True, slots=True)
class Problem:
    """What went wrong: ``message`` for people, ``code`` for programs."""

    status: int
    message: str
    code: str
    type: str = INVALID
    #: The field of the request that is wrong.
    param: str | None = None
    #: Whether sending the same request again is safe and may help.
    again: bool = False
    #: What was asked for is stored already, and goes on: nothing has to be sent again for it.
    stored: bool = False

    @property
    def body(self) -> dict[str, object]:
        error = {"message": self.message, "type": self.type, "code": self.code}
        return {"error": error if self.param is None else {**error, "param": self.param}}

    @property
    def kept(self) -> dict[str, object]:
        """Itself, as it can be made again."""
        return {each.name: getattr(self, each.name) for each in fields(self)}

    @property
    def headers(self) -> dict[str, str]:
        if not self.again:
            # Clients send 409 and 5xx again by themselves: here that would say things twice.
            return {"x-should-retry": "false"}
        after = {} if self.stored else {"Retry-After": str(RETRY_AFTER)}
        return {"x-should-retry": "true", **after}

    def response(self, headers: Mapping[str, str] | None = None) -> Response:
        extra = {"WWW-Authenticate": "Bearer"} if self.status == 401 else {}
        every = {**self.headers, **extra, **(headers or {})}
        return JSONResponse(self.body, self.status, headers=every)


class Declined(ClewError):
    """The request ends here, with this answer."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.message)
        self.problem = problem


def invalid(message: str, *, param: str | None = None, code: str = "invalid_value") -> Declined:
    """A request that asks for what cannot be."""
    return Declined(Problem(status=400, message=message, code=code, param=param))


_KINDS: tuple[tuple[type[ClewError], int, str, str], ...] = (
    (errors.NotFound, 404, "not_found", INVALID),
    (errors.KeyReused, 422, "idempotency_key_reused", INVALID),
    (errors.TitleTaken, 409, "title_taken", INVALID),
    (errors.SettingsError, 500, "settings", SERVER),
    (errors.UsageError, 400, "invalid_value", INVALID),
    (errors.OperationRefused, 409, "conflict", INVALID),
    (errors.StoreUnavailable, 503, "store_unavailable", SERVER),
    (errors.StoreFull, 507, "store_full", SERVER),
    (errors.StoreDamaged, 500, "store_damaged", SERVER),
    (errors.StoreError, 500, "store_failed", SERVER),
)


def problem_of(error: ClewError) -> Problem:
    """What a client is told of an error of ours."""
    if isinstance(error, Declined):
        return error.problem
    for kind, status, code, type_ in _KINDS:
        if isinstance(error, kind):
            # Sent again only where nothing was stored.
            again = isinstance(error, errors.StoreUnavailable) and not error.uncertain
            return Problem(status=status, message=str(error), code=code, type=type_, again=again)
    return INTERNAL


INTERNAL = Problem(
    status=500,
    message="something went wrong inside Clew; its log says what",
    code="internal",
    type=SERVER,
)
