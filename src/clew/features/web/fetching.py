"""
Fetching of a page from an address that was looked up, checked and then connected to.

The name of a host is resolved once for each request, and the connection goes to the address that
was checked: a name that resolves differently a moment later has no effect.
"""

from __future__ import annotations

import asyncio
import functools
import socket
import zlib
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Final

import httpx2

from clew.distribution import VERSION
from clew.features.web.addresses import WebRefused, WebTarget, check_address, parse_url
from clew.record import Record
from clew.sandbox.public_addresses import matches_host

if TYPE_CHECKING:
    import ssl
    from collections.abc import Collection

#: Seconds for a page with all redirects, to connect, and between two pieces of it.
_TOTAL, _CONNECT, _SILENCE = 30.0, 10.0, 15.0
#: Bytes of a page, unpacked.
MAX_BYTES: Final = 5_000_000
_REDIRECTS: Final = 5
#: Addresses of a host that are tried.
_ADDRESSES: Final = 3
_PIECE: Final = 64 * 1024
_REDIRECTING: Final = (301, 302, 303, 307, 308)
_HEADERS: Final = {
    "User-Agent": f"Clew/{VERSION} (web_fetch)",
    "Accept": "text/markdown, text/html;q=0.9, text/*;q=0.8, */*;q=0.5",
    # Encodings that are unpacked in pieces, so that the size stays limited.
    "Accept-Encoding": "gzip, identity",
}
#: Looks up a host; returns its addresses.
Resolve = Callable[[str, int], Awaitable[Sequence[str]]]


class FetchedPage(Record):
    """The answer to a request, or the first part of a long one."""

    url: str
    #: Without parameters, in lower case: ``text/html``.
    media_type: str
    charset: str | None
    body: bytes
    #: True if the page is longer than what was read.
    is_cut: bool


async def fetch_page(
    url: str, *, allow_private: Collection[str] = (), resolve: Resolve | None = None
) -> FetchedPage:
    """
    Fetch a URL, and follow its redirects on the same host; each address is checked.

    :raises WebRefused: if it is refused, fails, or takes too long
    """
    try:
        async with asyncio.timeout(_TOTAL), _make_client() as client:
            return await _follow(client, parse_url(url), allow_private, resolve or resolve_host)
    except TimeoutError:
        raise WebRefused(f"it took longer than {_TOTAL:g} seconds") from None


async def _follow(
    client: httpx2.AsyncClient, target: WebTarget, allow_private: Collection[str], resolve: Resolve
) -> FetchedPage:
    for _ in range(_REDIRECTS + 1):
        private = any(matches_host(target.host, one) for one in allow_private)
        addresses = await _look_up(target, resolve, private=private)
        found = await _request(client, target, addresses)
        if isinstance(found, FetchedPage):
            return found
        if _site(found) != _site(target):
            # The person or rule that allowed this call has allowed this host.
            raise WebRefused(
                f"{target.host} redirects to {found.url}: fetch that address if it is what you want"
            )
        target = found
    raise WebRefused(f"more than {_REDIRECTS} redirects, the last one to {target.url}")


def _site(target: WebTarget) -> str:
    return target.host.removeprefix("www.")


async def resolve_host(host: str, port: int) -> Sequence[str]:
    """
    Return the addresses of a host.

    :raises OSError: if there are none
    """
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(address[0]) for *_, address in found]


async def _look_up(target: WebTarget, resolve: Resolve, *, private: bool) -> Sequence[str]:
    """Return the addresses of the host, if all of them may be connected to."""
    try:
        found = list(dict.fromkeys(await resolve(target.host, target.port)))
    except (OSError, UnicodeError):
        raise WebRefused(f"there is no host {target.host}") from None
    for address in found:
        try:
            check_address(address, private=private)
        except WebRefused as error:
            raise WebRefused(f"{target.host} is refused: {error}") from None
    return found[:_ADDRESSES]


@functools.cache
def _tls() -> ssl.SSLContext:
    """Return the trusted certificates; reading them takes longer than many requests."""
    return httpx2.create_ssl_context()


def _make_client() -> httpx2.AsyncClient:
    # A proxy of the environment would look up the name once more, and connect to whatever it finds.
    return httpx2.AsyncClient(
        verify=_tls(),
        trust_env=False,
        timeout=httpx2.Timeout(_SILENCE, connect=_CONNECT),
        limits=httpx2.Limits(max_keepalive_connections=0),
    )


async def _request(
    client: httpx2.AsyncClient, target: WebTarget, addresses: Sequence[str]
) -> FetchedPage | WebTarget:
    """Return the page, or the target of its redirect."""
    why = "it has no address"
    for address in addresses:
        request = client.build_request(
            "GET",
            target.url.copy_with(host=address.partition("%")[0]),
            headers={**_HEADERS, "Host": target.netloc},
            extensions={"sni_hostname": target.host},
        )
        client.cookies.clear()
        try:
            answer = await client.send(request, stream=True)
        except (httpx2.ConnectError, httpx2.ConnectTimeout) as error:
            why = _describe(error)
            continue
        except httpx2.HTTPError as error:
            raise WebRefused(f"{target.host} failed: {_describe(error)}") from None
        try:
            return await _read_answer(answer, target)
        except httpx2.HTTPError as error:
            raise WebRefused(f"{target.host} broke off: {_describe(error)}") from None
        finally:
            await answer.aclose()
    raise WebRefused(f"{target.host} cannot be connected to: {why}")


def _describe(error: httpx2.HTTPError) -> str:
    return str(error) or type(error).__name__


async def _read_answer(answer: httpx2.Response, target: WebTarget) -> FetchedPage | WebTarget:
    status, location = answer.status_code, answer.headers.get("Location")
    if status in _REDIRECTING and location:
        try:
            joined = str(target.url.join(location))
        except (httpx2.InvalidURL, ValueError):
            raise WebRefused(f"{target.host} redirects to something that is not a URL") from None
        return parse_url(joined)
    if status != 200:
        raise WebRefused(f"{target.host} answered {status} {answer.reason_phrase}".rstrip())
    body, is_cut = await _read_body(answer, target)
    media_type, _, _ = answer.headers.get("Content-Type", "").partition(";")
    return FetchedPage(
        url=str(target.url),
        media_type=media_type.strip().lower(),
        charset=answer.charset_encoding,
        body=body,
        is_cut=is_cut,
    )


async def _read_body(answer: httpx2.Response, target: WebTarget) -> tuple[bytes, bool]:
    """Return the unpacked body up to the limit, and whether there is more."""
    packing = answer.headers.get("Content-Encoding", "identity").strip().lower()
    if packing not in ("gzip", "x-gzip", "identity", ""):
        raise WebRefused(f"{target.host} compresses its answer in an unsupported way ({packing})")
    unpack = zlib.decompressobj(zlib.MAX_WBITS | 16).decompress if "gzip" in packing else None
    body = bytearray()
    async for raw in answer.aiter_raw(_PIECE):
        body += raw if unpack is None else unpack_piece(unpack, raw, MAX_BYTES + 1 - len(body))
        if len(body) > MAX_BYTES:
            return bytes(body[:MAX_BYTES]), True
    return bytes(body), False


def unpack_piece(unpack: Callable[[bytes, int], bytes], raw: bytes, most: int) -> bytes:
    try:
        return unpack(raw, most)
    except zlib.error:
        raise WebRefused("its compressed answer is damaged") from None
