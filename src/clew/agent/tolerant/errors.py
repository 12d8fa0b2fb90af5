"""Detection of error objects in replies with a success status."""

from __future__ import annotations

import re
from typing import Any, cast

__all__ = ["ReplyError", "find_error"]


class ReplyError(Exception):
    """Error object as a reply; ``status`` is the one that it should have had."""

    def __init__(self, status: int, message: str, *, kind: str | None, code: str | None) -> None:
        super().__init__(message)
        self.status, self.message, self.kind, self.code = status, message, kind, code

    def make_body(self, *, messages: bool) -> dict[str, Any]:
        """Return the error in its format."""
        if messages:
            kind = self.kind if self.kind in _ANTHROPIC_TYPES.values() else None
            kind = kind or _ANTHROPIC_TYPES.get(self.status, "api_error")
            return {"type": "error", "error": {"type": kind, "message": self.message}}
        error = {"message": self.message, "type": self.kind, "param": None, "code": self.code}
        return {"error": error}


_ANTHROPIC_TYPES = {
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
#: Status by the type or text of an error without a number.
_STATUS_PATTERNS = tuple(
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
_NO_MESSAGE = "the server sent an error without a message"
_ANSWER_FIELDS = ("choices", "output", "content", "delta", "response", "message")


def find_error(reply: dict[str, Any]) -> ReplyError | None:
    """Return the error that a reply or an event contains instead of an answer."""
    error: object = reply.get("error")
    if not error and reply.get("object") != "error" and reply.get("type") != "error":
        error = _find_bare_error(reply)
        if error is None:
            return None
    outer = cast("dict[str, Any]", error) if isinstance(error, dict) else reply
    message = (
        _extract_message(cast("object", error))
        or _extract_message(reply)
        or "the server sent an error without a message"
    )
    kind, code = outer.get("type"), outer.get("code", reply.get("code"))
    numbers = (code, outer.get("status"), outer.get("status_code"), reply.get("status_code"))
    words = " ".join(str(word) for word in (kind, code, outer.get("status"), message) if word)
    return ReplyError(
        _choose_status(numbers, words),
        message,
        kind=kind if isinstance(kind, str) and kind != "error" else None,
        code=code if isinstance(code, str) else None,
    )


def _find_bare_error(reply: dict[str, Any]) -> object:
    """Return the text of a reply that is only an error, without an error field."""
    if any(key in reply for key in _ANSWER_FIELDS[:-1]) or "type" in reply:
        return None
    words = reply.get("detail") or reply.get("message")
    return words if isinstance(words, str) else None


def _extract_message(error: object) -> str:
    if isinstance(error, str):
        return error
    if not isinstance(error, dict):
        return ""
    fields = cast("dict[str, Any]", error)
    for name in ("message", "detail", "error", "msg"):
        if text := _extract_message(fields.get(name)):
            return text
    return ""


def _choose_status(numbers: tuple[object, ...], words: str) -> int:
    for number in numbers:
        text = str(number)
        if text.isdecimal() and 400 <= int(text) < 600:
            return int(text)
    return next((status for pattern, status in _STATUS_PATTERNS if pattern.search(words)), 500)
