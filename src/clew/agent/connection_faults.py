"""Causes of failed connections to a provider, which client libraries do not report."""

from __future__ import annotations

import enum
import errno
import socket
import ssl
from traceback import walk_tb
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from collections.abc import Iterator

UNSENDABLE_KEY = "the API key has characters that cannot be sent"
_UNREACHABLE_ERRNOS = frozenset(
    {errno.ENETUNREACH, errno.EHOSTUNREACH, errno.ENETDOWN, errno.EHOSTDOWN}
)
#: Modules of the HTTP library that only proxied requests use.
_PROXY_MODULES = ("http_proxy", "socks_proxy")
_NO_CONNECTION = "no connection to the model's server"


class ConnectionFault(enum.Enum):
    """Cause of a failed connection."""

    DNS = enum.auto()
    REFUSED = enum.auto()
    TLS = enum.auto()
    PROXY = enum.auto()
    KEY = enum.auto()
    UNKNOWN = enum.auto()


def explain_connection_failure(error: BaseException) -> tuple[ConnectionFault, str]:
    """Return the cause of a failed connection, and a clause that describes it."""
    chain = list(_iter_causes(error))
    if any(is_unsendable_header(each) for each in chain):
        return ConnectionFault.KEY, UNSENDABLE_KEY
    if any(_is_from_proxy(each) for each in chain):
        return (
            ConnectionFault.PROXY,
            f"the proxy that the environment names fails ({_describe_proxy_failure(chain)})",
        )
    place = _find_address(chain)
    for each in chain:
        if (found := _explain_error(each, place)) is not None:
            return found
    return ConnectionFault.UNKNOWN, _NO_CONNECTION


def _explain_error(error: BaseException, place: str) -> tuple[ConnectionFault, str] | None:
    match error:
        case socket.gaierror():
            host = place.rpartition(":")[0] if place.count(":") == 1 else place
            return ConnectionFault.DNS, f"the name of {host} cannot be resolved"
        case ssl.SSLCertVerificationError():
            return (
                ConnectionFault.TLS,
                f"the certificate of {place} is not trusted ({error.verify_message})",
            )
        case ssl.SSLError(reason="WRONG_VERSION_NUMBER" | "HTTP_REQUEST" | "RECORD_LAYER_FAILURE"):
            return ConnectionFault.TLS, f"{place} does not speak TLS (https)"
        case ConnectionRefusedError():
            return ConnectionFault.REFUSED, f"nothing listens at {place}"
        case OSError() if error.errno in _UNREACHABLE_ERRNOS:
            return ConnectionFault.REFUSED, f"there is no route to {place} ({error.strerror})"
        case _:
            return None


def is_unsendable_header(error: BaseException) -> bool:
    """Return whether a header could not be encoded: only the key can cause that."""
    if isinstance(error, UnicodeEncodeError):
        return error.encoding == "ascii"
    # The text of the error contains the header, and with it the key.
    return type(error).__name__ == "LocalProtocolError" and "header value" in str(error)


def _is_from_proxy(error: BaseException) -> bool:
    if type(error).__name__ == "ProxyError":
        return True
    modules = (str(frame.f_globals.get("__name__")) for frame, _ in walk_tb(error.__traceback__))
    return any(module.rpartition(".")[2] in _PROXY_MODULES for module in modules)


def _iter_causes(error: BaseException) -> Iterator[BaseException]:
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


def _find_address(chain: list[BaseException]) -> str:
    """Return host and port of the requested URL, without a password that it may contain."""
    for error in chain:
        url = getattr(getattr(error, "_request", None) or _get_request(error), "url", None)
        if host := getattr(url, "host", None):
            port = getattr(url, "port", None)
            return f"{host}:{port}" if port else str(host)
    return "the model's server"


def _get_request(error: BaseException) -> object:
    try:
        return getattr(error, "request", None)
    except RuntimeError:  # raised by the HTTP library if it is not set
        return None


def _describe_proxy_failure(chain: list[BaseException]) -> str:
    words = [str(each) for each in chain if isinstance(each, OSError) or _is_proxy_error(each)]
    return words[-1] if words else "no connection"


def _is_proxy_error(error: BaseException) -> bool:
    return type(error).__name__ == "ProxyError"
