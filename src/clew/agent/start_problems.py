"""What keeps a model from being used before it is asked: its key, and the way to its server."""

from __future__ import annotations

import os
import ssl
import sys
from typing import Final, NamedTuple
from urllib.request import getproxies

import httpx2

from clew.core.secret_text import COPY_AGAIN, find_unsendable
from clew.errors import SettingsError

#: Variables that the HTTP library reads by itself.
_CERTIFICATES: Final = ("SSL_CERT_FILE", "SSL_CERT_DIR")
_PROXIES: Final = "ALL_PROXY, HTTPS_PROXY or HTTP_PROXY"


class StartProblem(NamedTuple):
    """A problem that is found before any request."""

    meaning: str
    advice: str


BAD_KEY: Final = StartProblem(
    "The API key holds a line break, a curly quote, a letter outside ASCII or other characters "
    "that no header can carry.",
    COPY_AGAIN,
)
NO_SOCKS: Final = StartProblem(
    f"{_PROXIES} names a SOCKS proxy, and the package for those is not installed.",
    "install it (pip install socksio), or unset the variable",
)
BAD_PROXY: Final = StartProblem(
    f"{_PROXIES} is not the address of a proxy.",
    "write it as http://HOST:PORT or socks5://HOST:PORT, or unset it",
)
BAD_CERTIFICATES: Final = StartProblem(
    "SSL_CERT_FILE or SSL_CERT_DIR names certificates that are not there or cannot be read.",
    "name a file of certificates in PEM form, or unset it",
)
#: For the reference.
PROBLEMS: Final = (BAD_KEY, NO_SOCKS, BAD_PROXY, BAD_CERTIFICATES)


def refuse_unusable_key(key: str | None, *, setting: str) -> None:
    """
    Check that a key can be sent; the key itself is never shown.

    :raises SettingsError: naming the first character that cannot, and its place
    """
    if problem := find_unsendable(key or ""):
        raise SettingsError(f"{setting} cannot be used: {problem}")


def refuse_unusable_surroundings() -> None:
    """
    Check what the HTTP library takes from the environment by itself: proxies and certificates.

    A client that fails half made cannot be closed and says so on standard error, so one is made
    for trial, and only where there is something to try.

    :raises SettingsError: naming the variables that are wrong
    """
    certificates = [name for name in _CERTIFICATES if os.environ.get(name)]
    if not certificates and not {"all", "http", "https"} & getproxies().keys():
        return
    try:
        httpx2.AsyncClient()
    except ImportError as error:
        raise SettingsError(
            f"{_PROXIES} in the environment names a SOCKS proxy, for which the package socksio is "
            f"missing: {sys.executable} -m pip install socksio, or unset the variable"
        ) from error
    except (ValueError, httpx2.InvalidURL) as error:
        # The text of the error holds the address, and with it a password.
        raise SettingsError(
            f"{_PROXIES} in the environment is not the address of a proxy: {BAD_PROXY.advice}"
        ) from error
    except (OSError, ssl.SSLError) as error:
        raise SettingsError(
            f"{' and '.join(certificates) or 'SSL_CERT_FILE'} in the environment cannot be used "
            f"({error.strerror or error}): {BAD_CERTIFICATES.advice}"
        ) from error
