"""What went wrong with a model request, in words that decide what is done about it."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from pydantic_ai import exceptions as ai

from clew.core.text import shorten, storable


class FailureKind(enum.Enum):
    RATE_LIMIT = "rate_limit"
    QUOTA = "quota"
    OVERLOADED = "overloaded"
    SERVER = "server_error"
    TIMEOUT = "timeout"
    CONNECTION = "connection"
    BAD_REPLY = "bad_reply"
    #: It was told what was wrong as often as that may be.
    GAVE_UP = "gave_up"
    OVERFLOW = "context_length_exceeded"
    AUTH = "authentication"
    REFUSED = "bad_request"
    INTERNAL = "internal"


#: Asking the same model again may help.
PASSING = frozenset(
    {
        FailureKind.RATE_LIMIT,
        FailureKind.OVERLOADED,
        FailureKind.SERVER,
        FailureKind.TIMEOUT,
        FailureKind.CONNECTION,
        FailureKind.BAD_REPLY,
    }
)
#: Another model may help.
ELSEWHERE = PASSING | {FailureKind.QUOTA, FailureKind.AUTH, FailureKind.GAVE_UP}


@dataclass(frozen=True, kw_only=True, slots=True)
class Failure:
    kind: FailureKind
    #: One sentence for a person.
    text: str
    #: Seconds that the provider asks to wait.
    retry_after: float | None = None


_TOO_LARGE = 413


class CutResponse(Exception):
    """A response that ended without its end."""


_KINDS: tuple[tuple[type[Exception], FailureKind], ...] = (
    (ai.ModelContextWindowExceededError, FailureKind.OVERFLOW),
    (ai.ModelQuotaExceededError, FailureKind.QUOTA),
    (ai.ModelRateLimitError, FailureKind.RATE_LIMIT),
    (ai.ModelAuthenticationError, FailureKind.AUTH),
    (ai.ModelRequestRejectedError, FailureKind.REFUSED),
    (ai.ModelOverloadedError, FailureKind.OVERLOADED),
    (ai.ModelUnavailableError, FailureKind.OVERLOADED),
    (ai.ModelServerError, FailureKind.SERVER),
    (ai.ModelTimeoutError, FailureKind.TIMEOUT),
    (ai.ModelRequestTimeout, FailureKind.TIMEOUT),
    (ai.ModelConnectionError, FailureKind.CONNECTION),
    (ai.ModelAPIError, FailureKind.CONNECTION),
    (ai.UnexpectedModelBehavior, FailureKind.BAD_REPLY),
    (CutResponse, FailureKind.BAD_REPLY),
)


def classify(error: Exception) -> Failure:
    """What an exception of a run means."""
    kind = next((kind for cls, kind in _KINDS if isinstance(error, cls)), FailureKind.INTERNAL)
    text = _sentence(str(error)) or type(error).__name__
    if isinstance(error, ai.ModelHTTPError):
        return _http(error, kind)
    if isinstance(error, _UNREADABLE):
        return Failure(kind=FailureKind.BAD_REPLY, text="the provider sent a reply without sense")
    if isinstance(error, TimeoutError) and kind is FailureKind.INTERNAL:
        return Failure(kind=FailureKind.TIMEOUT, text="the provider was silent for too long")
    if kind is FailureKind.BAD_REPLY and "max" in text and "retries" in text:
        kind = FailureKind.GAVE_UP
    return Failure(kind=kind, text=text)


# What client libraries raise on replies that they did not foresee.
_UNREADABLE = (IndexError, TypeError, ValueError, KeyError, AttributeError)


def _http(error: ai.ModelHTTPError, kind: FailureKind) -> Failure:
    text = f"{error.status_code} {_message(error.body)}".strip()
    passing = kind in (FailureKind.REFUSED, FailureKind.CONNECTION)
    if passing and (error.status_code == _TOO_LARGE or looks_like_overflow(text)):
        kind = FailureKind.OVERFLOW
    elif kind is FailureKind.CONNECTION:
        kind = FailureKind.SERVER if error.status_code >= 500 else FailureKind.REFUSED
    return Failure(kind=kind, text=text, retry_after=_retry_after(error))


def _retry_after(error: ai.ModelHTTPError) -> float | None:
    value: object = getattr(error, "retry_after", None)
    return float(value) if isinstance(value, (int, float)) else None


def _message(body: object) -> str:
    while isinstance(body, dict):
        fields: dict[str, object] = body  # pyright: ignore[reportUnknownVariableType]
        body = fields.get("error") or fields.get("message") or ""
    return _sentence(str(body))


def _sentence(text: str) -> str:
    return shorten(storable(" ".join(text.split())), 500)


_OVERFLOW = (
    "context length",
    "context_length",
    "context window",
    "maximum context",
    "prompt is too long",
    "input is too long",
)


def looks_like_overflow(text: str) -> bool:
    """Whether a provider's words say that the request was longer than the context window."""
    lowered = text.lower()
    return any(sign in lowered for sign in _OVERFLOW)
