"""Advice for each kind of failure, shared by chats, ``doctor``, ``setup`` and the docs."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple

from clew.agent.provider_errors import FailureKind as Kind

if TYPE_CHECKING:
    from collections.abc import Mapping

#: Only for faults of the context or of a confused model, and for unknown causes.
RETRY_OR_RESET: Final = "Try again; if it keeps failing, /reset starts a new conversation."
_CHECK_BASE_URL: Final = "Check model.base_url: it is the API's address, which usually ends in /v1"


class FailureAdvice(NamedTuple):
    """Cause of a kind of failure and the next step, as text for people."""

    meaning: str
    #: One or more sentences.
    text: str


ADVICE: Final[Mapping[Kind, FailureAdvice]] = MappingProxyType(
    {
        Kind.RATE_LIMIT: FailureAdvice(
            "The provider accepts no more requests from this account for now (429).",
            "Wait a minute and try again; model.fallback names models that answer meanwhile.",
        ),
        Kind.QUOTA: FailureAdvice(
            "The account is empty, or its limit is reached (402, `insufficient_quota`).",
            "Add credit or raise the limit at the provider, or choose another model with /model.",
        ),
        Kind.OVERLOADED: FailureAdvice(
            "The provider or the model is overloaded (503, 529).",
            "Try again in a few minutes, or choose another model with /model.",
        ),
        Kind.SERVER: FailureAdvice("The provider failed (500, 502, …).", RETRY_OR_RESET),
        Kind.TIMEOUT: FailureAdvice(
            "The provider sent nothing for longer than model.timeout, or its reply did not end.",
            "Try again; for a model that is slow or still being loaded, raise model.timeout.",
        ),
        Kind.CONNECTION: FailureAdvice(
            "The connection to the provider broke.",
            "Try again; if it keeps failing, check the network and model.base_url.",
        ),
        Kind.DNS: FailureAdvice(
            "The name of the provider's host is not known to DNS.",
            "Check the host in model.base_url, and whether this machine is online.",
        ),
        Kind.UNREACHABLE: FailureAdvice(
            "No server listens at the provider's address, or there is no route to it.",
            "Start the model's server, or correct model.base_url.",
        ),
        Kind.TLS: FailureAdvice(
            "No secure connection: the certificate is not trusted, or the server speaks no TLS.",
            "Check whether model.base_url begins with the right one of http:// and https://; for "
            "a certificate of your own authority, name the authority's file in SSL_CERT_FILE.",
        ),
        Kind.PROXY: FailureAdvice(
            "The proxy that the environment names does not answer, or refuses the connection.",
            "Check HTTPS_PROXY, HTTP_PROXY and ALL_PROXY, or name the model's host in NO_PROXY.",
        ),
        Kind.BAD_REPLY: FailureAdvice(
            "The reply does not follow the protocol: it is not JSON, or fields are missing.",
            "Try again; if it keeps failing: "
            f"{_CHECK_BASE_URL[0].lower()}{_CHECK_BASE_URL[1:]}. The server's "
            "own log may say more.",
        ),
        Kind.WEB_PAGE: FailureAdvice(
            "The reply was a web page or other text: a wrong address, a login page or a proxy.",
            f"{_CHECK_BASE_URL}, and no login page or proxy stands in between.",
        ),
        Kind.EMPTY: FailureAdvice("The model said nothing, repeatedly.", RETRY_OR_RESET),
        Kind.OUTPUT_LIMIT: FailureAdvice(
            "The model reached its limit of output tokens before an answer.",
            "Ask for a shorter answer, or choose another model with /model.",
        ),
        Kind.GAVE_UP: FailureAdvice(
            "The model kept calling tools wrongly, or its answers were refused.", RETRY_OR_RESET
        ),
        Kind.OVERFLOW: FailureAdvice(
            "The conversation is longer than the model's context window.",
            "Use /compact to shorten it, or /new to start a new conversation.",
        ),
        Kind.TOO_LARGE: FailureAdvice(
            "The request has more bytes or pictures than the provider accepts (413).",
            "Send fewer or smaller pictures in one message; those of earlier messages are left "
            "out automatically.",
        ),
        Kind.AUTH: FailureAdvice(
            "The provider refuses the API key (401).",
            "Check model.api_key: the key is missing, mistyped, revoked or of another provider. "
            "clew setup writes another one.",
        ),
        Kind.FORBIDDEN: FailureAdvice(
            "The provider does not permit this for the key (403).",
            "Check at the provider what this key, account and region may use, or choose another "
            "model with /model.",
        ),
        Kind.BAD_KEY: FailureAdvice(
            "The API key has a line break, a curly quote or another character that a key cannot "
            "contain.",
            "Copy the key again into the place that model.api_key names, without quotes and "
            "spaces.",
        ),
        Kind.NO_MODEL: FailureAdvice(
            "The provider has no such model, or there is no API at this address (404).",
            "Choose a model that the provider has, with /model or model.name (clew setup lists "
            "them), and check model.base_url, which usually ends in /v1.",
        ),
        Kind.FILTERED: FailureAdvice(
            "The provider's content filter refuses the request or the answer.",
            "Rephrase the message, or take it back with /undo.",
        ),
        Kind.REFUSED: FailureAdvice("The provider refuses the request (400, 422).", RETRY_OR_RESET),
        Kind.TOOLSET: FailureAdvice(
            "A toolset could not be opened or did not list its tools; no model was called.",
            "Check the toolset in agent.object or tools.modules, and the server behind it.",
        ),
        Kind.AGENT_CODE: FailureAdvice(
            "Code of the agent's author failed: instructions, validators, history processors.",
            "Correct the agent that agent.object names, the log has the traceback; then /retry.",
        ),
        Kind.INTERNAL: FailureAdvice("An unexpected error occurred.", RETRY_OR_RESET),
    }
)
#: Failures of a turn that are not failures of a request.
TURN_ADVICE: Final[Mapping[str, FailureAdvice]] = MappingProxyType(
    {
        "max_steps": FailureAdvice(
            "The turn used all the model calls that agent.max_steps allows.",
            "Ask it to continue, or raise agent.max_steps.",
        ),
        "repeated_calls": FailureAdvice(
            "The model called the same tools again and again, with the same results.",
            RETRY_OR_RESET,
        ),
        "interrupted": FailureAdvice("The turn crashed its process three times.", RETRY_OR_RESET),
    }
)


def get_advice(code: str | None) -> str:
    """Return the advice for a failure, by the code stored with its turn."""
    known = {kind.value: advice for kind, advice in ADVICE.items()} | TURN_ADVICE
    advice = known.get(code or "")
    return RETRY_OR_RESET if advice is None else advice.text
