"""Protocol errors: a code for programs, a sentence for people, and the next step."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, cast

from clew import errors
from clew.errors import ClewError
from clew.record import Record

if TYPE_CHECKING:
    from collections.abc import Mapping


class ErrorCode(enum.IntEnum):
    """Error codes: below -32099 those of JSON-RPC, the others our own."""

    PARSE = -32700
    INVALID_REQUEST = -32600
    METHOD_NOT_FOUND = -32601
    INVALID_PARAMS = -32602
    INTERNAL = -32603
    INVALID_VALUE = -32000
    NOT_FOUND = -32001
    CONFLICT = -32002
    REJECTED = -32003
    TITLE_TAKEN = -32004
    KEY_REUSED = -32005
    SETTINGS = -32006
    STOPPING = -32007
    UNAVAILABLE = -32008
    STORE_FULL = -32009
    STORE_FAILED = -32010
    BUSY = -32011
    DISCONNECTED = -32012


#: The meaning of each code, and the next step for the caller.
ERROR_TEXTS: Mapping[ErrorCode, tuple[str, str]] = {
    ErrorCode.PARSE: ("the message is not JSON", "send one JSON object in each message"),
    ErrorCode.INVALID_REQUEST: (
        "the message is not a request",
        'send {"jsonrpc": "2.0", "id": 1, "method": …, "params": {…}}',
    ),
    ErrorCode.METHOD_NOT_FOUND: ("there is no such method", "rpc.discover lists the methods"),
    ErrorCode.INVALID_PARAMS: (
        "the arguments do not match the method",
        "correct the argument that data.param names; rpc.discover describes them",
    ),
    ErrorCode.INTERNAL: (
        "something went wrong inside Clew; its log says what",
        "look in the log; the conversation shows whether anything was stored",
    ),
    ErrorCode.INVALID_VALUE: (
        "the request cannot be carried out; nothing was changed",
        "ask differently",
    ),
    ErrorCode.NOT_FOUND: (
        "there is nothing of that name; nothing was changed",
        "conversation.list shows the conversations",
    ),
    ErrorCode.CONFLICT: (
        "the state had changed first; nothing was changed",
        "read conversation.status, then decide",
    ),
    ErrorCode.REJECTED: (
        "the message was refused: a turn is unfinished and the rule is reject",
        "wait for turn_closed, or send it with another double_text",
    ),
    ErrorCode.TITLE_TAKEN: ("another conversation has this title", "choose another title"),
    ErrorCode.KEY_REUSED: ("the key stands for another message", "use a new key for a new message"),
    ErrorCode.SETTINGS: (
        "a setting cannot be used",
        "correct it: clew config check says where it is",
    ),
    ErrorCode.STOPPING: (
        "the server is stopping; stored work continues at the next start",
        "connect again, and subscribe after the last seq",
    ),
    ErrorCode.UNAVAILABLE: (
        "the store cannot be reached now; nothing was stored",
        "try again soon",
    ),
    ErrorCode.STORE_FULL: (
        "there is no space left; nothing was stored",
        "make space, then try again",
    ),
    ErrorCode.STORE_FAILED: ("the store failed", "run clew doctor on the server's machine"),
    ErrorCode.BUSY: (
        "too many requests of this client are unanswered",
        "wait for answers before sending more",
    ),
    ErrorCode.DISCONNECTED: (
        "the connection was lost before the answer (reported by clients, never sent)",
        "connect again; a message that was sent with a key can be sent again with it",
    ),
}
#: Repeating the request later may help, and executes nothing twice.
RETRYABLE_CODES = frozenset({ErrorCode.UNAVAILABLE, ErrorCode.BUSY, ErrorCode.STOPPING})

_ERROR_TYPES: tuple[tuple[type[ClewError], ErrorCode], ...] = (
    (errors.NotFound, ErrorCode.NOT_FOUND),
    (errors.KeyReused, ErrorCode.KEY_REUSED),
    (errors.TitleTaken, ErrorCode.TITLE_TAKEN),
    (errors.SettingsError, ErrorCode.SETTINGS),
    (errors.UsageError, ErrorCode.INVALID_VALUE),
    (errors.OperationRefused, ErrorCode.CONFLICT),
    (errors.StoreUnavailable, ErrorCode.UNAVAILABLE),
    (errors.StoreFull, ErrorCode.STORE_FULL),
    (errors.StoreError, ErrorCode.STORE_FAILED),
)


class RpcError(Record):
    """
    An error of a call.

    ``data`` has ``name`` (of the code), ``next`` (the next step), ``retry`` (True if
    repeating the request is safe and may help) and, if one argument is invalid, ``param``.
    """

    code: int
    message: str
    data: Mapping[str, object]

    @classmethod
    def from_code(
        cls,
        code: ErrorCode,
        message: str | None = None,
        *,
        param: str | None = None,
        hint: str = "",
    ) -> RpcError:
        meaning, todo = ERROR_TEXTS[code]
        data: dict[str, object] = {
            "name": code.name.lower(),
            "next": hint or todo,
            "retry": code in RETRYABLE_CODES,
        }
        if param is not None:
            data["param"] = param
        return cls(code=code.value, message=message or meaning, data=data)

    @classmethod
    def from_exception(cls, error: ClewError) -> RpcError:
        """Return the error that a client gets for an exception of Clew."""
        if isinstance(error, CallFailed):
            return error.error
        for kind, code in _ERROR_TYPES:
            if isinstance(error, kind):
                return cls.from_code(code, str(error))
        return cls.from_code(ErrorCode.INTERNAL)

    @classmethod
    def from_fields(cls, fields: Mapping[str, object]) -> RpcError:
        """Return a received error."""
        code, message, data = fields.get("code"), fields.get("message"), fields.get("data")
        return cls(
            code=code if isinstance(code, int) else ErrorCode.INTERNAL.value,
            message=message if isinstance(message, str) else ERROR_TEXTS[ErrorCode.INTERNAL][0],
            data=cast("Mapping[str, object]", data) if isinstance(data, dict) else {},
        )

    @property
    def fields(self) -> dict[str, object]:
        return {"code": self.code, "message": self.message, "data": dict(self.data)}

    @property
    def param(self) -> str | None:
        """Return the name of the invalid argument, if one is."""
        return None if (param := self.data.get("param")) is None else str(param)

    @property
    def next_step(self) -> str:
        """Return the next step for the caller."""
        return str(self.data.get("next", ""))


class CallFailed(ClewError):
    """A call failed."""

    def __init__(self, error: RpcError) -> None:
        super().__init__(error.message)
        self.error = error

    @property
    def code(self) -> int:
        return self.error.code

    @classmethod
    def from_code(
        cls, code: ErrorCode, message: str | None = None, *, param: str | None = None
    ) -> CallFailed:
        return cls(RpcError.from_code(code, message, param=param))
