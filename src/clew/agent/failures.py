"""What went wrong with a model request, in words that decide what is done about it."""

from __future__ import annotations

import enum
import math
import re
from dataclasses import dataclass, replace
from traceback import walk_tb

from pydantic_ai import exceptions as ai
from pydantic_ai.messages import RetryFeedbackPart

from clew.agent.connection_faults import UNSENDABLE, Fault, explain_connection, is_unsendable
from clew.agent.known_secrets import redact
from clew.core.text import sanitize_text, truncate_text


class FailureKind(enum.Enum):
    RATE_LIMIT = "rate_limit"
    QUOTA = "quota"
    OVERLOADED = "overloaded"
    SERVER = "server_error"
    TIMEOUT = "timeout"
    #: It broke, or came to nothing for no reason that is known.
    CONNECTION = "connection"
    #: The host's name is unknown.
    DNS = "unknown_host"
    #: Nothing listens at the address, or no way leads there.
    UNREACHABLE = "unreachable"
    TLS = "tls"
    PROXY = "proxy"
    BAD_REPLY = "bad_reply"
    #: Text for people where JSON was due: a login page, a wrong address.
    WEB_PAGE = "web_page"
    #: It said nothing, and nothing again when it was told so.
    EMPTY = "empty_reply"
    #: The limit of output tokens came before any answer.
    OUTPUT_LIMIT = "output_limit"
    #: It was told what was wrong as often as that may be.
    GAVE_UP = "gave_up"
    OVERFLOW = "context_length_exceeded"
    #: More bytes, or more or larger pictures, than the provider takes.
    TOO_LARGE = "request_too_large"
    AUTH = "authentication"
    #: The key is known, and may not do this.
    FORBIDDEN = "permission_denied"
    #: The key has characters that cannot be sent.
    BAD_KEY = "unusable_key"
    NO_MODEL = "model_not_found"
    FILTERED = "content_filter"
    REFUSED = "bad_request"
    #: A set of tools did not come, or failed before any tool ran.
    TOOLSET = "toolset"
    #: Instructions, validators or other code of the agent's author.
    AGENT_CODE = "agent_code"
    INTERNAL = "internal"


#: Asking the same model again may help.
PASSING = frozenset(
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
#: What stood where an answer was due makes no sense: the other way to ask may bring some.
SENSELESS = frozenset({FailureKind.BAD_REPLY, FailureKind.WEB_PAGE})
#: Each costs a long wait, or helped nobody: asked once more and not again.
ONCE_MORE = SENSELESS | {FailureKind.TIMEOUT}
#: Another model may help.
ELSEWHERE = PASSING | {
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


@dataclass(frozen=True, kw_only=True, slots=True)
class Failure:
    kind: FailureKind
    #: One sentence for a person, without its full stop.
    text: str
    #: Seconds that the provider asks to wait.
    retry_after: float | None = None

    @property
    def told(self) -> str:
        """The sentence, and when to try again where the provider said so."""
        if not self.retry_after:
            return self.text
        return f"{self.text} (the provider asks to wait {_duration(self.retry_after)})"


def _duration(seconds: float) -> str:
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{math.ceil(seconds / size)} {unit}"
    return f"{math.ceil(seconds)} s"


_TOO_LARGE = 413
_FORBIDDEN = 403


class CutResponse(Exception):
    """A response that ended without its end."""


class EndlessResponse(Exception):
    """A response that did not come to its end."""


class ToolsetFailed(Exception):
    """A set of tools that could not be opened or listed; the text names it and says why."""


class AgentCodeTooSlow(Exception):
    """Functions of an agent's author that did not end in time."""

    def __init__(self, place: str, seconds: float) -> None:
        super().__init__(
            f"the agent's own code (instructions, hooks, processors) was not done {place}, within "
            f"{seconds:g} s (agent.code_timeout)"
        )


_KINDS: tuple[tuple[type[Exception], FailureKind], ...] = (
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
    (CutResponse, FailureKind.CONNECTION),
    (EndlessResponse, FailureKind.TIMEOUT),
    (ToolsetFailed, FailureKind.TOOLSET),
    (AgentCodeTooSlow, FailureKind.AGENT_CODE),
)


def classify(error: Exception) -> Failure:
    """What an exception of a run means."""
    kind = next((kind for cls, kind in _KINDS if isinstance(error, cls)), FailureKind.INTERNAL)
    if isinstance(error, ai.ModelHTTPError):
        return _http(error, kind)
    if isinstance(error, ai.ModelAPIError):
        return _api(error, kind)
    if isinstance(error, ai.UnexpectedModelBehavior):
        return _behaviour(error, kind)
    if is_unsendable(error):
        return Failure(kind=FailureKind.BAD_KEY, text=UNSENDABLE)
    if isinstance(error, _UNREADABLE):
        return _unforeseen(error)
    if isinstance(error, TimeoutError):
        return Failure(kind=FailureKind.TIMEOUT, text="the provider was silent for too long")
    return Failure(kind=kind, text=_sentence(str(error)) or type(error).__name__)


_NO_SENSE = "the provider sent a reply without sense"
# What client libraries raise on replies that they did not foresee.
_UNREADABLE = (IndexError, TypeError, ValueError, KeyError, AttributeError)


#: Where what a provider sent is read.
_READERS = ("pydantic_ai.models.", "openai.", "anthropic.", "httpx.", "httpx2.")


def _unforeseen(error: Exception) -> Failure:
    """A reply without sense, unless it was raised outside of what reads replies."""
    places = [frame.f_globals.get("__name__", "") for frame, _ in walk_tb(error.__traceback__)]
    if places and not any(place.startswith(_READERS) for place in places):
        # The agent's instructions, its validators, what it does with the history: asking once
        # more costs, and changes nothing.
        text = f"the agent's own code failed ({type(error).__name__}: {_sentence(str(error))})"
        return Failure(kind=FailureKind.AGENT_CODE, text=text)
    return Failure(kind=FailureKind.BAD_REPLY, text=_NO_SENSE)


def _behaviour(error: ai.UnexpectedModelBehavior, kind: FailureKind) -> Failure:
    text = _sentence(error.message)
    if text.startswith("Model token limit"):
        kind = FailureKind.OUTPUT_LIMIT
    if kind is FailureKind.OUTPUT_LIMIT:
        return Failure(kind=kind, text="the model reached its limit of output before an answer")
    if kind is FailureKind.FILTERED:
        return Failure(kind=kind, text=text)
    if tool := _TOOL_RETRIES.match(text):
        text = f"the model called the tool {tool[1]!r} wrongly {int(tool[2]) + 1} times in a row"
        return Failure(kind=FailureKind.GAVE_UP, text=text)
    if text.startswith("Exceeded maximum output retries"):
        return _gave_up(error)
    if _NOT_JSON.search(text):
        return Failure(kind=FailureKind.WEB_PAGE, text=_PAGE)
    # What else it says is for programmers, and in the log.
    return Failure(kind=kind, text=_NO_SENSE)


_PAGE = "a web page or other text came instead of an answer"
#: How client libraries say that a reply was no JSON at all.
_NOT_JSON = re.compile(r"expected JSON data$|Expected a JSON response, got")


_TOOL_RETRIES = re.compile(r"Tool ['\"](.*?)['\"] exceeded max retries count of (\d+)")


def _gave_up(error: ai.UnexpectedModelBehavior) -> Failure:
    feedback = getattr(error.__cause__, "tool_retry", None)
    if isinstance(feedback, RetryFeedbackPart) and feedback.retry.cause == "no_output":
        return Failure(kind=FailureKind.EMPTY, text="the model answered with nothing, repeatedly")
    return Failure(kind=FailureKind.GAVE_UP, text="the model's answer was refused repeatedly")


#: What client libraries say of every connection that failed.
_SAYS_NOTHING = "Connection error"
#: How they name what is asked for, where it failed for a reason of its own.
_OF_CONNECTIONS = {
    Fault.DNS: FailureKind.DNS,
    Fault.REFUSED: FailureKind.UNREACHABLE,
    Fault.TLS: FailureKind.TLS,
    Fault.PROXY: FailureKind.PROXY,
    Fault.KEY: FailureKind.BAD_KEY,
    Fault.UNKNOWN: FailureKind.CONNECTION,
}


def _api(error: ai.ModelAPIError, kind: FailureKind) -> Failure:
    if kind is FailureKind.INTERNAL:
        # No category: an error in a stream that says no more, or no JSON where JSON was due.
        kind = FailureKind.SERVER if error.in_stream else FailureKind.BAD_REPLY
    if kind is FailureKind.BAD_REPLY and _NOT_JSON.search(error.message):
        return Failure(kind=FailureKind.WEB_PAGE, text=_PAGE)
    text = _NO_SENSE if kind is FailureKind.BAD_REPLY else _sentence(error.message)
    if text == _SAYS_NOTHING:
        fault, said = explain_connection(error)
        return Failure(kind=_OF_CONNECTIONS[fault], text=_sentence(said))
    if kind in (FailureKind.SERVER, FailureKind.REFUSED) and (size := _of_size(text)):
        kind = size
    return Failure(kind=kind, text=text, retry_after=error.retry_after)


def _http(error: ai.ModelHTTPError, kind: FailureKind) -> Failure:
    text = f"{error.status_code} {_message(error.body)}".strip()
    undecided = kind in (FailureKind.REFUSED, FailureKind.INTERNAL)
    if undecided and (size := _of_size(text, too_large=error.status_code == _TOO_LARGE)):
        kind = size
    elif error.status_code in _TIMED_OUT:
        kind = FailureKind.TIMEOUT
    elif kind is FailureKind.AUTH and error.status_code == _FORBIDDEN:
        kind = FailureKind.FORBIDDEN
    elif kind is FailureKind.NO_MODEL and _is_page(error.body):
        kind = FailureKind.WEB_PAGE
    elif kind is FailureKind.INTERNAL:
        kind = FailureKind.SERVER if error.status_code >= 500 else FailureKind.REFUSED
    return Failure(kind=kind, text=text, retry_after=error.retry_after)


#: 408 and 504: a server waited for the request, or for the one behind it.
_TIMED_OUT = (408, 504)


def _is_page(body: object) -> bool:
    return isinstance(body, str) and body.lstrip()[:1] == "<"


def _message(body: object) -> str:
    while isinstance(body, dict):
        fields: dict[str, object] = body  # pyright: ignore[reportUnknownVariableType]
        body = fields.get("error") or fields.get("message") or fields.get("detail")
    text = str(body or "")
    if text.lstrip()[:1] == "<":
        return "(a web page instead of an answer)"
    return _sentence(text)


def _sentence(text: str) -> str:
    return truncate_text(sanitize_text(" ".join(redact(text).split())), 500).rstrip(".")


_OVERFLOW = (
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
    """Whether a provider's words say that the request was longer than the context window."""
    lowered = text.lower()
    return any(sign in lowered for sign in _OVERFLOW)


#: A limit of bytes or of pictures, in the words of providers.
_PICTURE = r"\b(?:image|picture|photo)s?\b"
_MUCH = r"(?:too (?:large|big|many)|exceed|maximum|at most|larger than|limit)"
_TOO_MANY_BYTES = re.compile(
    rf"{_PICTURE}.{{0,80}}\b{_MUCH}|\b{_MUCH}.{{0,40}}{_PICTURE}|request_too_large"
    r"|\b(?:request|payload|body|entity)\b.{0,25}\b(?:too large|size limit|exceeds? the \w+ size"
    r"|exceeds? the (?:size|limit))",
    re.IGNORECASE,
)


def _of_size(text: str, *, too_large: bool = False) -> FailureKind | None:
    """Which limit of size a refusal speaks of: that of tokens, that of bytes, or none."""
    if looks_like_overflow(text) or (too_large and "token" in text.lower()):
        return FailureKind.OVERFLOW
    if too_large or _TOO_MANY_BYTES.search(text):
        return FailureKind.TOO_LARGE
    return None


def without_pictures(failure: Failure) -> Failure:
    """Return what a limit of bytes means where nothing but text was sent."""
    if failure.kind is not FailureKind.TOO_LARGE:
        return failure
    # Fewer tokens are fewer bytes; else the words meant something else.
    by_status = failure.text.startswith(str(_TOO_LARGE))
    kind = FailureKind.OVERFLOW if by_status else FailureKind.REFUSED
    return replace(failure, kind=kind)
