"""Addresses that may be fetched from: decided by the address, not by its name."""

from __future__ import annotations

import httpx2

from clew.errors import ClewError
from clew.record import Record
from clew.sandbox.public_addresses import find_address_problem


class WebRefused(ClewError):
    """Address that is not fetched, or an answer that cannot be used; a sentence for the model."""


class WebTarget(Record):
    """A URL that can be fetched, and its host as it will be looked up."""

    url: httpx2.URL
    host: str
    port: int

    @property
    def netloc(self) -> str:
        return self.url.netloc.decode("ascii")


def parse_url(text: str) -> WebTarget:
    """
    Return the target of a URL, as the client that fetches it reads it.

    :raises WebRefused: if it is not a URL of the web
    """
    try:
        url = httpx2.URL(text.strip())
        host = url.raw_host.decode("ascii").lower().rstrip(".")
    except (httpx2.InvalidURL, UnicodeError, ValueError, TypeError) as error:
        raise WebRefused(f"this is not a URL: {error}") from None
    if url.scheme not in ("http", "https"):
        raise WebRefused("only URLs that begin with http:// or https:// can be fetched")
    if not host or "%" in host or " " in host:
        raise WebRefused("the URL has no usable host")
    if url.userinfo:
        raise WebRefused("a URL with a user name or a password before the host is not fetched")
    port = url.port or (443 if url.scheme == "https" else 80)
    return WebTarget(url=url.copy_with(fragment=None), host=host, port=port)


def check_address(text: str, *, private: bool = False) -> None:
    """
    Reject an address that is not on the public internet.

    :raises WebRefused: saying what it is
    """
    if problem := find_address_problem(text, private=private):
        raise WebRefused(problem)
