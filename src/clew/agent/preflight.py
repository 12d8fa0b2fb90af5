"""Checks of a model before its first request: its key, proxies and certificates."""

from __future__ import annotations

import os
import ssl
import sys
from typing import Final, NamedTuple
from urllib.request import getproxies

import httpx2

from clew.core.secret_text import COPY_AGAIN, find_unsendable
from clew.errors import SettingsError

#: Variables that the HTTP library reads.
_CERTIFICATE_VARIABLES: Final = ("SSL_CERT_FILE", "SSL_CERT_DIR")
_PROXY_VARIABLES: Final = "ALL_PROXY, HTTPS_PROXY or HTTP_PROXY"


class PreflightProblem(NamedTuple):
    """Problem found before any request."""

    meaning: str
    advice: str


BAD_KEY: Final = PreflightProblem(
    "The API key holds a line break, a curly quote, a letter outside ASCII or other characters "
    "that no header can carry.",
    COPY_AGAIN,
)
NO_SOCKS: Final = PreflightProblem(
    f"{_PROXY_VARIABLES} names a SOCKS proxy, and the package for those is not installed.",
    "install it (pip install socksio), or unset the variable",
)
BAD_PROXY: Final = PreflightProblem(
    f"{_PROXY_VARIABLES} is not the address of a proxy.",
    "write it as http://HOST:PORT or socks5://HOST:PORT, or unset it",
)
BAD_CERTIFICATES: Final = PreflightProblem(
    "SSL_CERT_FILE or SSL_CERT_DIR names certificates that do not exist or cannot be read.",
    "name a file of certificates in PEM form, or unset it",
)
#: For the reference page.
PREFLIGHT_PROBLEMS: Final = (BAD_KEY, NO_SOCKS, BAD_PROXY, BAD_CERTIFICATES)


def check_key_sendable(key: str | None, *, setting: str) -> None:
    """
    Raise an error if a key cannot be sent; the error never shows the key.

    :raises SettingsError: naming the first unusable character and its position
    """
    if problem := find_unsendable(key or ""):
        raise SettingsError(f"{setting} cannot be used: {problem}")


def check_network_environment() -> None:
    """
    Check the proxies and certificates that the HTTP library reads from the environment.

    A client whose construction fails cannot be closed and reports that on standard error,
    so a test client is made, only if such variables are set.

    :raises SettingsError: naming the wrong variables
    """
    certificates = [name for name in _CERTIFICATE_VARIABLES if os.environ.get(name)]
    if not certificates and not {"all", "http", "https"} & getproxies().keys():
        return
    try:
        httpx2.AsyncClient()
    except ImportError as error:
        raise SettingsError(
            f"{_PROXY_VARIABLES} in the environment names a SOCKS proxy, for which the "
            "package socksio is "
            f"missing: {sys.executable} -m pip install socksio, or unset the variable"
        ) from error
    except (ValueError, httpx2.InvalidURL) as error:
        # The text of the error contains the address, which may have a password.
        raise SettingsError(
            f"{_PROXY_VARIABLES} in the environment is not the address of a proxy: "
            f"{BAD_PROXY.advice}"
        ) from error
    except (OSError, ssl.SSLError) as error:
        raise SettingsError(
            f"{' and '.join(certificates) or 'SSL_CERT_FILE'} in the environment cannot be used "
            f"({error.strerror or error}): {BAD_CERTIFICATES.advice}"
        ) from error
