"""Errors of the protocol: a code for programs, a sentence for people, and what to do next."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from clew import errors
from clew.errors import ClewError

if TYPE_CHECKING:
    from collections.abc import Mapping


class Code(enum.IntEnum):
    """What went wrong: below -32099 as JSON-RPC has it, the rest is ours."""

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


#: What each code means, and what whoever gets it does next.
MEANINGS: Mapping[Code, tuple[str, str]] = {
    Code.PARSE: ("the message is no JSON", "send one JSON object in each message"),
    Code.INVALID_REQUEST: (
        "the message is no request",
        'send {"jsonrpc": "2.0", "id": 1, "method": …, "params": {…}}',
    ),
    Code.METHOD_NOT_FOUND: ("there is no such method", "rpc.discover lists the methods"),
    Code.INVALID_PARAMS: (
        "the arguments are not those of the method",
        "correct the argument that data.param names; rpc.discover describes them",
    ),
    Code.INTERNAL: (
        "something went wrong inside Clew; its log says what",
        "look into the log; whether anything was stored is to be seen in the conversation",
    ),
    Code.INVALID_VALUE: ("what was asked for cannot be; nothing was changed", "ask differently"),
    Code.NOT_FOUND: (
        "there is nothing of that name; nothing was changed",
        "conversation.list shows what there is",
    ),
    Code.CONFLICT: (
        "the state of things changed first; nothing was changed",
        "look again with conversation.status, then decide",
    ),
    Code.REJECTED: (
        "the message was refused: a turn is unfinished and the rule is reject",
        "wait for turn_closed, or send it with another double_text",
    ),
    Code.TITLE_TAKEN: ("another conversation has this title", "choose another title"),
    Code.KEY_REUSED: ("the key stands for another message", "use a new key for a new message"),
    Code.SETTINGS: ("a setting cannot be used", "correct it: clew config check says where it is"),
    Code.STOPPING: (
        "the server stops; what was stored goes on with the next start",
        "connect again, and subscribe after the last seq",
    ),
    Code.UNAVAILABLE: ("the store cannot be reached now; nothing was stored", "try again soon"),
    Code.STORE_FULL: ("there is no space left; nothing was stored", "make space, then try again"),
    Code.STORE_FAILED: ("the store failed", "run clew doctor on the server's machine"),
    Code.BUSY: (
        "too many requests of this client are unanswered",
        "wait for answers before sending more",
    ),
    Code.DISCONNECTED: (
        "the connection was lost before the answer (told by clients, never sent)",
        "connect again; a message that was sent with a key can be sent again with it",
    ),
}
#: Sending the same again later may help, and does nothing twice.
PASSING = frozenset({Code.UNAVAILABLE, Code.BUSY, Code.STOPPING})

_KINDS: tuple[tuple[type[ClewError], Code], ...] = (
    (errors.NotFound, Code.NOT_FOUND),
    (errors.KeyReused, Code.KEY_REUSED),
    (errors.TitleTaken, Code.TITLE_TAKEN),
    (errors.SettingsError, Code.SETTINGS),
    (errors.UsageError, Code.INVALID_VALUE),
    (errors.OperationRefused, Code.CONFLICT),
    (errors.StoreUnavailable, Code.UNAVAILABLE),
    (errors.StoreFull, Code.STORE_FULL),
    (errors.StoreError, Code.STORE_FAILED),
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Error:
    """
    Why a call has come to nothing.

    ``data`` holds ``name`` (of the code), ``next`` (what to do), ``retry`` (whether sending the
    same again is safe and may help) and, where one argument is wrong, ``param``.
    """

    code: int
    message: str
    data: Mapping[str, object]

    @classmethod
    def of(
        cls, code: Code, message: str | None = None, *, param: str | None = None, hint: str = ""
    ) -> Error:
        meaning, todo = MEANINGS[code]
        data: dict[str, object] = {
            "name": code.name.lower(),
            "next": hint or todo,
            "retry": code in PASSING,
        }
        if param is not None:
            data["param"] = param
        return cls(code=code.value, message=message or meaning, data=data)

    @classmethod
    def of_error(cls, error: ClewError) -> Error:
        """What a client is told of an error of ours."""
        if isinstance(error, CallFailed):
            return error.error
        for kind, code in _KINDS:
            if isinstance(error, kind):
                return cls.of(code, str(error))
        return cls.of(Code.INTERNAL)

    @classmethod
    def read(cls, fields: Mapping[str, object]) -> Error:
        """An error as it was received."""
        code, message, data = fields.get("code"), fields.get("message"), fields.get("data")
        return cls(
            code=code if isinstance(code, int) else Code.INTERNAL.value,
            message=message if isinstance(message, str) else MEANINGS[Code.INTERNAL][0],
            data=cast("Mapping[str, object]", data) if isinstance(data, dict) else {},
        )

    @property
    def fields(self) -> dict[str, object]:
        return {"code": self.code, "message": self.message, "data": dict(self.data)}

    @property
    def next(self) -> str:
        """What to do."""
        return str(self.data.get("next", ""))


class CallFailed(ClewError):
    """A call has come to nothing."""

    def __init__(self, error: Error) -> None:
        super().__init__(error.message)
        self.error = error

    @property
    def code(self) -> int:
        return self.error.code

    @classmethod
    def of(cls, code: Code, message: str | None = None, *, param: str | None = None) -> CallFailed:
        return cls(Error.of(code, message, param=param))
