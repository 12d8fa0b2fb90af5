"""Error objects in replies whose status says that all went well."""

from __future__ import annotations

import re
from typing import Any, cast

__all__ = ["ReplyError", "find_error"]


class ReplyError(Exception):
    """A server answered with an error object; its status is what it should have been."""

    def __init__(self, status: int, message: str, *, kind: str | None, code: str | None) -> None:
        super().__init__(message)
        self.status, self.message, self.kind, self.code = status, message, kind, code

    def body(self, *, messages: bool) -> dict[str, Any]:
        """Return the error as its format has it."""
        if messages:
            kind = self.kind if self.kind in _ANTHROPIC.values() else None
            kind = kind or _ANTHROPIC.get(self.status, "api_error")
            return {"type": "error", "error": {"type": kind, "message": self.message}}
        error = {"message": self.message, "type": self.kind, "param": None, "code": self.code}
        return {"error": error}


_ANTHROPIC = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    500: "api_error",
    504: "timeout_error",
    529: "overloaded_error",
}
#: What an error is called, or says, where it has no number.
_WORDS = tuple(
    (re.compile(words, re.IGNORECASE), status)
    for words, status in (
        (r"rate.?limit|too.?many.?requests|quota|throttl", 429),
        (r"billing|credit|payment", 402),
        (r"authenticat|unauthori[sz]ed|api.?key|invalid.?token", 401),
        (r"permission|forbidden", 403),
        (r"model.?not.?found|not.?found|does not exist|no such model", 404),
        (r"too.?large", 413),
        (r"context.?(length|window|size)|too long|invalid.?request|bad.?request|validation", 400),
        (r"overload|capacity|busy", 529),
        (r"unavailable|loading", 503),
        (r"time.?out|timed out", 504),
    )
)
_WORDLESS = "the server sent an error without words"
_ANSWERS = ("choices", "output", "content", "delta", "response", "message")


def find_error(reply: dict[str, Any]) -> ReplyError | None:
    """Return the error that a reply, or an event of a stream, tells instead of an answer."""
    error: object = reply.get("error")
    if not error and reply.get("object") != "error" and reply.get("type") != "error":
        error = _bare(reply)
        if error is None:
            return None
    outer = cast("dict[str, Any]", error) if isinstance(error, dict) else reply
    message = (
        _message(cast("object", error))
        or _message(reply)
        or "the server sent an error without words"
    )
    kind, code = outer.get("type"), outer.get("code", reply.get("code"))
    numbers = (code, outer.get("status"), outer.get("status_code"), reply.get("status_code"))
    words = " ".join(str(word) for word in (kind, code, outer.get("status"), message) if word)
    return ReplyError(
        _status(numbers, words),
        message,
        kind=kind if isinstance(kind, str) and kind != "error" else None,
        code=code if isinstance(code, str) else None,
    )


def _bare(reply: dict[str, Any]) -> object:
    """The words of a reply that is nothing but an error without saying so."""
    if any(key in reply for key in _ANSWERS[:-1]) or "type" in reply:
        return None
    words = reply.get("detail") or reply.get("message")
    return words if isinstance(words, str) else None


def _message(error: object) -> str:
    if isinstance(error, str):
        return error
    if not isinstance(error, dict):
        return ""
    fields = cast("dict[str, Any]", error)
    for name in ("message", "detail", "error", "msg"):
        if text := _message(fields.get(name)):
            return text
    return ""


def _status(numbers: tuple[object, ...], words: str) -> int:
    for number in numbers:
        text = str(number)
        if text.isdecimal() and 400 <= int(text) < 600:
            return int(text)
    return next((status for pattern, status in _WORDS if pattern.search(words)), 500)
