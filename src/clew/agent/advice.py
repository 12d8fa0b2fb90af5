"""The advice for each kind of failure: one table for chats, ``doctor``, ``setup`` and the docs."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final, NamedTuple

from clew.agent.failures import FailureKind as Kind

if TYPE_CHECKING:
    from collections.abc import Mapping

#: For faults of the context, of a confused model and of nobody knows what; only these.
START_ANEW: Final = "Try again; if it keeps failing, /reset starts a new conversation."
_ADDRESS: Final = "Check model.base_url: it is the API's address, which mostly ends in /v1"


class Advice(NamedTuple):
    """A kind of failure in words: the cause, and the next step."""

    meaning: str
    #: One or more sentences.
    text: str


ADVICE: Final[Mapping[Kind, Advice]] = MappingProxyType(
    {
        Kind.RATE_LIMIT: Advice(
            "The provider takes no more requests from this account for now (429).",
            "Wait a minute and try again; model.fallback names models that answer meanwhile.",
        ),
        Kind.QUOTA: Advice(
            "The account is empty, or its limit is reached (402, `insufficient_quota`).",
            "Add credit or raise the limit at the provider, or choose another model with /model.",
        ),
        Kind.OVERLOADED: Advice(
            "The provider or the model is overloaded (503, 529).",
            "Try again in a few minutes, or choose another model with /model.",
        ),
        Kind.SERVER: Advice("The provider failed (500, 502, …).", START_ANEW),
        Kind.TIMEOUT: Advice(
            "The provider said nothing for longer than model.timeout, or never came to an end.",
            "Try again; for a model that is slow or still being loaded, raise model.timeout.",
        ),
        Kind.CONNECTION: Advice(
            "The connection to the provider broke.",
            "Try again; if it keeps failing, check the network and model.base_url.",
        ),
        Kind.DNS: Advice(
            "The name of the provider's host is not known to DNS.",
            "Check the host in model.base_url, and whether this machine is online.",
        ),
        Kind.UNREACHABLE: Advice(
            "Nothing listens at the provider's address, or no way leads there.",
            "Start the model's server, or correct model.base_url.",
        ),
        Kind.TLS: Advice(
            "No secure connection: the certificate is not trusted, or the server speaks no TLS.",
            "Check whether model.base_url begins with the right one of http:// and https://; for "
            "a certificate of your own authority, name the authority's file in SSL_CERT_FILE.",
        ),
        Kind.PROXY: Advice(
            "The proxy that the environment names does not answer, or refuses.",
            "Check HTTPS_PROXY, HTTP_PROXY and ALL_PROXY, or name the model's host in NO_PROXY.",
        ),
        Kind.BAD_REPLY: Advice(
            "What came is no answer of this protocol: no JSON, or fields are missing.",
            f"Try again; if it keeps failing: {_ADDRESS[0].lower()}{_ADDRESS[1:]}. The server's "
            "own log may say more.",
        ),
        Kind.WEB_PAGE: Advice(
            "A web page or other text came: a wrong address, a login page, a proxy.",
            f"{_ADDRESS}, and no login page or proxy stands in between.",
        ),
        Kind.EMPTY: Advice("The model said nothing, repeatedly.", START_ANEW),
        Kind.OUTPUT_LIMIT: Advice(
            "The model reached its limit of output tokens before an answer.",
            "Ask for a shorter answer, or choose another model with /model.",
        ),
        Kind.GAVE_UP: Advice(
            "The model kept calling tools wrongly, or its answers were refused.", START_ANEW
        ),
        Kind.OVERFLOW: Advice(
            "The conversation is longer than the model's context window.",
            "Use /compact to shorten it, or /new to start afresh.",
        ),
        Kind.TOO_LARGE: Advice(
            "The request has more bytes or pictures than the provider takes (413).",
            "Send fewer or smaller pictures in one message; those of earlier messages are left "
            "out by themselves.",
        ),
        Kind.AUTH: Advice(
            "The provider refuses the API key (401).",
            "Check model.api_key: the key is missing, mistyped, revoked or of another provider. "
            "clew setup writes another one.",
        ),
        Kind.FORBIDDEN: Advice(
            "The provider knows the key, but it may not do this (403).",
            "Check at the provider what this key, account and region may use, or choose another "
            "model with /model.",
        ),
        Kind.BAD_KEY: Advice(
            "The API key has a line break, a curly quote or another character that no key has.",
            "Copy the key anew into the place that model.api_key names, without quotes and spaces.",
        ),
        Kind.NO_MODEL: Advice(
            "The provider has no such model, or nothing at this address (404).",
            "Choose a model that the provider has, with /model or model.name (clew setup lists "
            "them), and check model.base_url, which mostly ends in /v1.",
        ),
        Kind.FILTERED: Advice(
            "The provider's content filter refuses the request or the answer.",
            "Ask in other words, or take the message back with /undo.",
        ),
        Kind.REFUSED: Advice("The provider refuses the request (400, 422).", START_ANEW),
        Kind.TOOLSET: Advice(
            "A set of tools does not come or does not tell its tools; no model was asked.",
            "Check the toolset in agent.object or tools.modules, and the server behind it.",
        ),
        Kind.AGENT_CODE: Advice(
            "Code of the agent's author failed: instructions, validators, history processors.",
            "Correct the agent that agent.object names, the log has the traceback; then /retry.",
        ),
        Kind.INTERNAL: Advice("Something failed that nobody foresaw.", START_ANEW),
    }
)
#: Failures of a turn that are no failures of a request.
OF_TURNS: Final[Mapping[str, Advice]] = MappingProxyType(
    {
        "max_steps": Advice(
            "The turn used all the model calls that agent.max_steps allows.",
            "Ask it to go on, or raise agent.max_steps.",
        ),
        "repeated_calls": Advice(
            "The model called the same tools again and again, with the same results.", START_ANEW
        ),
        "interrupted": Advice("The turn crashed its process three times.", START_ANEW),
    }
)


def advice_for(code: str | None) -> str:
    """Return what to do about a failure, by the code that is stored with its turn."""
    known = {kind.value: advice for kind, advice in ADVICE.items()} | OF_TURNS
    advice = known.get(code or "")
    return START_ANEW if advice is None else advice.text
