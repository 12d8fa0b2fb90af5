"""Addresses at which the dashboard may be opened, and pages that may use its cookie: pure rules."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from clew.api.auth import is_loopback_url
from clew.record import Record

if TYPE_CHECKING:
    from collections.abc import Collection

_DEFAULT_PORTS: Final = {"http": ":80", "https": ":443"}
#: What browsers say of requests that no other page has caused.
_OWN_SITES: Final = frozenset({"same-origin", "none"})


class PageAddress(Record):
    """An address at which the dashboard is opened."""

    #: The origins that its page can have: the scheme is not known behind a proxy.
    origins: frozenset[str]
    #: Browsers send its cookie over TLS only.
    is_secure: bool
    port: int | None


def find_address(host: str, origins: Collection[str]) -> PageAddress | None:
    """
    Return the address of a ``Host`` header; ``None`` if no dashboard is there.

    Names other than ``localhost`` must be listed: one that a stranger makes lead here (DNS
    rebinding) is not.
    """
    try:
        port = urlsplit(f"//{host}").port
    except ValueError:
        return None
    listed = frozenset(one for one in origins if _host_of(one) == host.lower())
    if listed:
        is_secure = all(one.startswith("https:") for one in listed)
        return PageAddress(origins=listed, is_secure=is_secure, port=port)
    if is_loopback_url(f"//{host}"):
        both = frozenset({f"http://{host.lower()}", f"https://{host.lower()}"})
        return PageAddress(origins=both, is_secure=False, port=port)
    return None


def is_own_request(
    address: PageAddress, *, origin: str | None, site: str | None, must_have_origin: bool
) -> bool:
    """
    Return whether a request comes from the page at this address.

    ``origin`` and ``site`` are the headers ``Origin`` and ``Sec-Fetch-Site``. A browser sends
    the former with every WebSocket and every request that changes something.
    """
    if site is not None and site not in _OWN_SITES:
        return False
    if origin is None:
        return not must_have_origin
    return origin.lower() in address.origins


def _host_of(origin: str) -> str:
    parts = urlsplit(origin.lower())
    return parts.netloc.removesuffix(_DEFAULT_PORTS.get(parts.scheme, ""))
