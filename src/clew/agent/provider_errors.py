"""Classification of failed model requests, which decides how they are handled."""

from __future__ import annotations

import enum
import math
import re
from traceback import walk_tb

from pydantic_ai import exceptions as ai
from pydantic_ai.messages import RetryFeedbackPart

from clew.agent.connection_faults import (
    UNSENDABLE_KEY,
    ConnectionFault,
    explain_connection_failure,
    is_unsendable_header,
)
from clew.agent.known_secrets import redact_secrets
from clew.core.text import sanitize_text, truncate_text
from clew.record import Record, replace


class FailureKind(enum.Enum):
    """Kind of a failure; the value is its code for programs."""

    RATE_LIMIT = "rate_limit"
    QUOTA = "quota"
    OVERLOADED = "overloaded"
    SERVER = "server_error"
    TIMEOUT = "timeout"
    #: It broke or could not be opened, for an unknown reason.
    CONNECTION = "connection"
    #: The host name cannot be resolved.
    DNS = "unknown_host"
    #: Connection refused, or no route to the host.
    UNREACHABLE = "unreachable"
    TLS = "tls"
    PROXY = "proxy"
    BAD_REPLY = "bad_reply"
    #: Text for people instead of JSON: a login page, a wrong address.
    WEB_PAGE = "web_page"
    #: An empty answer, repeated after a note to the model.
    EMPTY = "empty_reply"
    #: The limit of output tokens was reached before any answer.
    OUTPUT_LIMIT = "output_limit"
    #: All corrections that the model may get were used up.
    GAVE_UP = "gave_up"
    OVERFLOW = "context_length_exceeded"
    #: More bytes, or more or larger images, than the provider accepts.
    TOO_LARGE = "request_too_large"
    AUTH = "authentication"
    #: The key is valid but lacks permission.
    FORBIDDEN = "permission_denied"
    #: The key has characters that cannot be sent.
    BAD_KEY = "unusable_key"
    NO_MODEL = "model_not_found"
    FILTERED = "content_filter"
    REFUSED = "bad_request"
    #: A toolset could not be opened, or failed before any tool ran.
    TOOLSET = "toolset"
    #: Instructions, validators or other code of the agent's author.
    AGENT_CODE = "agent_code"
    INTERNAL = "internal"


#: Repeating the request may help.
TRANSIENT_KINDS = frozenset(
    {
        FailureKind.RATE_LIMIT,
        FailureKind.OVERLOADED,
        FailureKind.SERVER,
        FailureKind.TIMEOUT,
        FailureKind.CONNECTION,
        FailureKind.DNS,
        FailureKind.UNREACHABLE,
        FailureKind.PROXY,
        FailureKind.BAD_REPLY,
        FailureKind.WEB_PAGE,
    }
)
#: The reply was malformed: asking with or without streaming, the other way, may help.
MALFORMED_KINDS = frozenset({FailureKind.BAD_REPLY, FailureKind.WEB_PAGE})
#: Each costs a long wait or seldom goes away: the request is repeated only once.
RETRY_ONCE_KINDS = MALFORMED_KINDS | {FailureKind.TIMEOUT}
#: Another model may help.
FAILOVER_KINDS = TRANSIENT_KINDS | {
    FailureKind.QUOTA,
    FailureKind.TLS,
    FailureKind.AUTH,
    FailureKind.FORBIDDEN,
    FailureKind.BAD_KEY,
    FailureKind.NO_MODEL,
    FailureKind.EMPTY,
    FailureKind.OUTPUT_LIMIT,
    FailureKind.GAVE_UP,
}


class ProviderFailure(Record):
    """Classified failure of a model request."""

    kind: FailureKind
    #: One sentence for people, without its full stop.
    text: str
    #: Seconds that the provider asks to wait.
    retry_after: float | None = None

    @property
    def user_message(self) -> str:
        """Return the sentence, with the provider's retry delay if it gave one."""
        if not self.retry_after:
            return self.text
        return f"{self.text} (the provider asks to wait {_format_duration(self.retry_after)})"


def _format_duration(seconds: float) -> str:
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{math.ceil(seconds / size)} {unit}"
    return f"{math.ceil(seconds)} s"


_HTTP_TOO_LARGE = 413
_HTTP_FORBIDDEN = 403


class IncompleteResponse(Exception):
    """Response that stopped before its end."""


class ResponseLimitExceeded(Exception):
    """Response beyond its limit of time or length."""


class ToolsetError(Exception):
    """Toolset that could not be opened or listed; the text has its name and the reason."""


class AgentCodeTimeout(Exception):
    """Functions of the agent's author that did not finish in time."""

    def __init__(self, place: str, seconds: float) -> None:
        super().__init__(
            f"the agent's own code (instructions, hooks, processors) was not done {place}, within "
            f"{seconds:g} s (agent.code_timeout)"
        )


_EXCEPTION_KINDS: tuple[tuple[type[Exception], FailureKind], ...] = (
    (ai.ModelContextWindowExceededError, FailureKind.OVERFLOW),
    (ai.ModelQuotaExceededError, FailureKind.QUOTA),
    (ai.ModelRateLimitError, FailureKind.RATE_LIMIT),
    (ai.ModelAuthenticationError, FailureKind.AUTH),
    (ai.ModelNotFoundError, FailureKind.NO_MODEL),
    (ai.ModelRequestRejectedError, FailureKind.REFUSED),
    (ai.ModelOverloadedError, FailureKind.OVERLOADED),
    (ai.ModelUnavailableError, FailureKind.OVERLOADED),
    (ai.ModelServerError, FailureKind.SERVER),
    (ai.ModelTimeoutError, FailureKind.TIMEOUT),
    (ai.ModelRequestTimeout, FailureKind.TIMEOUT),
    (ai.ModelConnectionError, FailureKind.CONNECTION),
    (ai.ContentFilterError, FailureKind.FILTERED),
    (ai.IncompleteToolCall, FailureKind.OUTPUT_LIMIT),
    (ai.UnexpectedModelBehavior, FailureKind.BAD_REPLY),
    (IncompleteResponse, FailureKind.CONNECTION),
    (ResponseLimitExceeded, FailureKind.TIMEOUT),
    (ToolsetError, FailureKind.TOOLSET),
    (AgentCodeTimeout, FailureKind.AGENT_CODE),
)


def classify_error(error: Exception) -> ProviderFailure:
    """Return the classified failure for an exception of a run."""
    kind = next(
        (kind for cls, kind in _EXCEPTION_KINDS if isinstance(error, cls)), FailureKind.INTERNAL
    )
    if isinstance(error, ai.ModelHTTPError):
        return _classify_http_error(error, kind)
    if isinstance(error, ai.ModelAPIError):
        return _classify_api_error(error, kind)
    if isinstance(error, ai.UnexpectedModelBehavior):
        return _classify_model_behavior(error, kind)
    if is_unsendable_header(error):
        return ProviderFailure(kind=FailureKind.BAD_KEY, text=UNSENDABLE_KEY)
    if isinstance(error, _PARSING_ERRORS):
        return _classify_parsing_error(error)
    if isinstance(error, TimeoutError):
        return ProviderFailure(
            kind=FailureKind.TIMEOUT, text="the provider was silent for too long"
        )
    return ProviderFailure(kind=kind, text=_clean_sentence(str(error)) or type(error).__name__)


_MALFORMED_TEXT = "the provider sent an invalid reply"
# Raised by client libraries on unexpected replies.
_PARSING_ERRORS = (IndexError, TypeError, ValueError, KeyError, AttributeError)


#: Modules that parse a provider's replies.
_PARSING_MODULES = ("pydantic_ai.models.", "openai.", "anthropic.", "httpx.", "httpx2.")


def _classify_parsing_error(error: Exception) -> ProviderFailure:
    """Return a malformed reply, or a failure of the agent's code if raised outside of parsers."""
    places = [frame.f_globals.get("__name__", "") for frame, _ in walk_tb(error.__traceback__)]
    if places and not any(place.startswith(_PARSING_MODULES) for place in places):
        # The agent's instructions, validators or history processors: repeating the request
        # costs money and changes nothing.
        text = (
            f"the agent's own code failed ({type(error).__name__}: {_clean_sentence(str(error))})"
        )
        return ProviderFailure(kind=FailureKind.AGENT_CODE, text=text)
    return ProviderFailure(kind=FailureKind.BAD_REPLY, text=_MALFORMED_TEXT)


def _classify_model_behavior(
    error: ai.UnexpectedModelBehavior, kind: FailureKind
) -> ProviderFailure:
    text = _clean_sentence(error.message)
    if text.startswith("Model token limit"):
        kind = FailureKind.OUTPUT_LIMIT
    if kind is FailureKind.OUTPUT_LIMIT:
        return ProviderFailure(
            kind=kind, text="the model reached its limit of output before an answer"
        )
    if kind is FailureKind.FILTERED:
        return ProviderFailure(kind=kind, text=text)
    if tool := _TOOL_RETRIES_EXCEEDED.match(text):
        text = f"the model called the tool {tool[1]!r} wrongly {int(tool[2]) + 1} times in a row"
        return ProviderFailure(kind=FailureKind.GAVE_UP, text=text)
    if text.startswith("Exceeded maximum output retries"):
        return _classify_output_retries(error)
    if _NOT_JSON_PATTERN.search(text):
        return ProviderFailure(kind=FailureKind.WEB_PAGE, text=_WEB_PAGE_TEXT)
    # Its other texts are for programmers, and in the log.
    return ProviderFailure(kind=kind, text=_MALFORMED_TEXT)


_WEB_PAGE_TEXT = "the reply was a web page or other text instead of an answer"
#: Messages of client libraries for a reply that was not JSON at all.
_NOT_JSON_PATTERN = re.compile(r"expected JSON data$|Expected a JSON response, got")


_TOOL_RETRIES_EXCEEDED = re.compile(r"Tool ['\"](.*?)['\"] exceeded max retries count of (\d+)")


def _classify_output_retries(error: ai.UnexpectedModelBehavior) -> ProviderFailure:
    feedback = getattr(error.__cause__, "tool_retry", None)
    if isinstance(feedback, RetryFeedbackPart) and feedback.retry.cause == "no_output":
        return ProviderFailure(
            kind=FailureKind.EMPTY, text="the model gave an empty answer repeatedly"
        )
    return ProviderFailure(
        kind=FailureKind.GAVE_UP, text="the model's answer was refused repeatedly"
    )


#: Message of client libraries for every failed connection.
_GENERIC_CONNECTION_ERROR = "Connection error"
#: Failure kinds by the cause of a failed connection.
_CONNECTION_KINDS = {
    ConnectionFault.DNS: FailureKind.DNS,
    ConnectionFault.REFUSED: FailureKind.UNREACHABLE,
    ConnectionFault.TLS: FailureKind.TLS,
    ConnectionFault.PROXY: FailureKind.PROXY,
    ConnectionFault.KEY: FailureKind.BAD_KEY,
    ConnectionFault.UNKNOWN: FailureKind.CONNECTION,
}


def _classify_api_error(error: ai.ModelAPIError, kind: FailureKind) -> ProviderFailure:
    if kind is FailureKind.INTERNAL:
        # No category: an error in a stream without details, or a reply that is not JSON.
        kind = FailureKind.SERVER if error.in_stream else FailureKind.BAD_REPLY
    if kind is FailureKind.BAD_REPLY and _NOT_JSON_PATTERN.search(error.message):
        return ProviderFailure(kind=FailureKind.WEB_PAGE, text=_WEB_PAGE_TEXT)
    text = _MALFORMED_TEXT if kind is FailureKind.BAD_REPLY else _clean_sentence(error.message)
    if text == _GENERIC_CONNECTION_ERROR:
        fault, said = explain_connection_failure(error)
        return ProviderFailure(kind=_CONNECTION_KINDS[fault], text=_clean_sentence(said))
    if kind in (FailureKind.SERVER, FailureKind.REFUSED) and (size := _classify_size_limit(text)):
        kind = size
    return ProviderFailure(kind=kind, text=text, retry_after=error.retry_after)


def _classify_http_error(error: ai.ModelHTTPError, kind: FailureKind) -> ProviderFailure:
    text = f"{error.status_code} {_extract_message(error.body)}".strip()
    undecided = kind in (FailureKind.REFUSED, FailureKind.INTERNAL)
    if undecided and (
        size := _classify_size_limit(text, too_large=error.status_code == _HTTP_TOO_LARGE)
    ):
        kind = size
    elif error.status_code in _HTTP_TIMEOUTS:
        kind = FailureKind.TIMEOUT
    elif kind is FailureKind.AUTH and error.status_code == _HTTP_FORBIDDEN:
        kind = FailureKind.FORBIDDEN
    elif kind is FailureKind.NO_MODEL and _is_web_page(error.body):
        kind = FailureKind.WEB_PAGE
    elif kind is FailureKind.INTERNAL:
        kind = FailureKind.SERVER if error.status_code >= 500 else FailureKind.REFUSED
    return ProviderFailure(kind=kind, text=text, retry_after=error.retry_after)


#: 408 and 504: a server timed out on the request or on its upstream.
_HTTP_TIMEOUTS = (408, 504)


def _is_web_page(body: object) -> bool:
    return isinstance(body, str) and body.lstrip()[:1] == "<"


def _extract_message(body: object) -> str:
    while isinstance(body, dict):
        fields: dict[str, object] = body  # pyright: ignore[reportUnknownVariableType]
        body = fields.get("error") or fields.get("message") or fields.get("detail")
    text = str(body or "")
    if text.lstrip()[:1] == "<":
        return "(a web page instead of an answer)"
    return _clean_sentence(text)


def _clean_sentence(text: str) -> str:
    return truncate_text(sanitize_text(" ".join(redact_secrets(text).split())), 500).rstrip(".")


_OVERFLOW_PHRASES = (
    "context length",
    "context_length",
    "context window",
    "context size",
    "maximum context",
    "input token count",
    "prompt is too long",
    "input is too long",
)


def looks_like_overflow(text: str) -> bool:
    """Return whether a provider's text says that the request exceeds the context window."""
    lowered = text.lower()
    return any(sign in lowered for sign in _OVERFLOW_PHRASES)


#: Phrases of providers for a limit on bytes or images.
_IMAGE_PATTERN = r"\b(?:image|picture|photo)s?\b"
_EXCESS_PATTERN = r"(?:too (?:large|big|many)|exceed|maximum|at most|larger than|limit)"
_SIZE_LIMIT_PATTERN = re.compile(
    rf"{_IMAGE_PATTERN}.{{0,80}}\b{_EXCESS_PATTERN}|\b{_EXCESS_PATTERN}.{{0,40}}{_IMAGE_PATTERN}|request_too_large"
    r"|\b(?:request|payload|body|entity)\b.{0,25}\b(?:too large|size limit|exceeds? the \w+ size"
    r"|exceeds? the (?:size|limit))",
    re.IGNORECASE,
)


#: Words of providers about a model that takes no pictures.
_NO_IMAGES_PATTERN = re.compile(
    rf"{_IMAGE_PATTERN}|\bimage_url\b|\bvision\b|\bmulti-?modal\b|\bcontent must be a string\b",
    re.IGNORECASE,
)


def refuses_images(failure: ProviderFailure) -> bool:
    """Return whether a refusal is about pictures: then the model may take the text alone."""
    kinds = (FailureKind.REFUSED, FailureKind.NO_MODEL, FailureKind.SERVER)
    return failure.kind in kinds and _NO_IMAGES_PATTERN.search(failure.text) is not None


def _classify_size_limit(text: str, *, too_large: bool = False) -> FailureKind | None:
    """Return the kind of size limit that a refusal names: tokens, bytes, or ``None``."""
    if looks_like_overflow(text) or (too_large and "token" in text.lower()):
        return FailureKind.OVERFLOW
    if too_large or _SIZE_LIMIT_PATTERN.search(text):
        return FailureKind.TOO_LARGE
    return None


def reclassify_text_only(failure: ProviderFailure) -> ProviderFailure:
    """Return the failure with a byte limit reclassified, for a request with only text."""
    if failure.kind is not FailureKind.TOO_LARGE:
        return failure
    # Fewer tokens are fewer bytes; without the status, the text meant something else.
    by_status = failure.text.startswith(str(_HTTP_TOO_LARGE))
    kind = FailureKind.OVERFLOW if by_status else FailureKind.REFUSED
    return replace(failure, kind=kind)
