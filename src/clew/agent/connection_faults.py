"""The reason why a connection to a provider failed: client libraries say no more than that."""

from __future__ import annotations

import enum
import errno
import socket
import ssl
from traceback import walk_tb
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from collections.abc import Iterator

UNSENDABLE = "the API key has characters that cannot be sent"
_NO_WAY = frozenset({errno.ENETUNREACH, errno.EHOSTUNREACH, errno.ENETDOWN, errno.EHOSTDOWN})
#: Modules of the HTTP library through which only what goes to a proxy passes.
_PROXYING = ("http_proxy", "socks_proxy")
_NO_CONNECTION = "no connection to the model's server"


class Fault(enum.Enum):
    """What is wrong with a connection."""

    DNS = enum.auto()
    REFUSED = enum.auto()
    TLS = enum.auto()
    PROXY = enum.auto()
    KEY = enum.auto()
    UNKNOWN = enum.auto()


def explain_connection(error: BaseException) -> tuple[Fault, str]:
    """Return the reason for a connection that failed, and a clause that says it."""
    chain = list(_causes(error))
    if any(is_unsendable(each) for each in chain):
        return Fault.KEY, UNSENDABLE
    if any(_is_of_a_proxy(each) for each in chain):
        return Fault.PROXY, f"the proxy that the environment names fails ({_last_words(chain)})"
    place = _place(chain)
    for each in chain:
        if (found := _explain(each, place)) is not None:
            return found
    return Fault.UNKNOWN, _NO_CONNECTION


def _explain(error: BaseException, place: str) -> tuple[Fault, str] | None:
    match error:
        case socket.gaierror():
            host = place.rpartition(":")[0] if place.count(":") == 1 else place
            return Fault.DNS, f"the name of {host} cannot be resolved"
        case ssl.SSLCertVerificationError():
            return Fault.TLS, f"the certificate of {place} is not trusted ({error.verify_message})"
        case ssl.SSLError(reason="WRONG_VERSION_NUMBER" | "HTTP_REQUEST" | "RECORD_LAYER_FAILURE"):
            return Fault.TLS, f"{place} does not speak TLS (https)"
        case ConnectionRefusedError():
            return Fault.REFUSED, f"nothing listens at {place}"
        case OSError() if error.errno in _NO_WAY:
            return Fault.REFUSED, f"no way leads to {place} ({error.strerror})"
        case _:
            return None


def is_unsendable(error: BaseException) -> bool:
    """Return whether a header could not be written: of ours, only the key comes from outside."""
    if isinstance(error, UnicodeEncodeError):
        return error.encoding == "ascii"
    # The text of the error holds the header, and with it the key.
    return type(error).__name__ == "LocalProtocolError" and "header value" in str(error)


def _is_of_a_proxy(error: BaseException) -> bool:
    if type(error).__name__ == "ProxyError":
        return True
    modules = (str(frame.f_globals.get("__name__")) for frame, _ in walk_tb(error.__traceback__))
    return any(module.rpartition(".")[2] in _PROXYING for module in modules)


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and everything that led to it, each once."""
    seen: set[int] = set()
    ahead: list[BaseException | None] = [error]
    while ahead:
        each = ahead.pop()
        if each is None or id(each) in seen:
            continue
        seen.add(id(each))
        yield each
        ahead += [each.__context__, each.__cause__]
        if isinstance(each, BaseExceptionGroup):
            ahead += cast("BaseExceptionGroup[BaseException]", each).exceptions


def _place(chain: list[BaseException]) -> str:
    """Return host and port of the address that was asked, which may hold a password as well."""
    for error in chain:
        url = getattr(getattr(error, "_request", None) or _request(error), "url", None)
        if host := getattr(url, "host", None):
            port = getattr(url, "port", None)
            return f"{host}:{port}" if port else str(host)
    return "the model's server"


def _request(error: BaseException) -> object:
    try:
        return getattr(error, "request", None)
    except RuntimeError:  # the HTTP library's way to say that it was not set
        return None


def _last_words(chain: list[BaseException]) -> str:
    words = [str(each) for each in chain if isinstance(each, OSError) or _is_proxy_error(each)]
    return words[-1] if words else "no connection"


def _is_proxy_error(error: BaseException) -> bool:
    return type(error).__name__ == "ProxyError"
