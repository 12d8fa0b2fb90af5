"""
The way of commands to the network: an HTTP proxy on a Unix socket, which reaches named hosts only.

A name is looked up here, once for each connection, and the connection goes to an address that was
checked: a name that resolves differently a moment later has no effect. Nothing is looked up for a
host that is not allowed, so that a name cannot carry data out either.
"""

from __future__ import annotations

import asyncio
import os
import socket
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
    from pathlib import Path

    from clew.sandbox.network_rules import NetworkRules

    #: Looks up a host; returns its addresses.
    Resolve = Callable[[str, int], Awaitable[Sequence[str]]]

#: Seconds for a client to send the head of a request, and to connect to an address.
_HEAD_TIMEOUT: Final = 30.0
_CONNECT_TIMEOUT: Final = 10.0
#: Bytes of the head of a request.
_LONGEST_HEAD: Final = 64 * 1024
_CHUNK: Final = 64 * 1024
#: Connections that commands may have at once; the others wait.
_CONNECTIONS: Final = 256
#: Addresses of a host that are tried.
_ADDRESSES: Final = 3
#: Headers that concern the way to the proxy, not the server behind it.
_HOP_HEADERS: Final = ("connection", "keep-alive", "proxy-authorization", "proxy-connection", "te")
_HTTP_PORT: Final = 80


class _Refused(Exception):
    """A request that is answered with an error."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status, self.reason = status, reason


@dataclass(frozen=True, kw_only=True, slots=True)
class _Target:
    """The first line of a request, read."""

    method: str
    host: str
    port: int
    #: The path with the query; empty for a tunnel.
    path: str = ""

    @property
    def netloc(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _HTTP_PORT else f"{host}:{self.port}"


async def resolve_host(host: str, port: int) -> Sequence[str]:
    """Return the addresses of a host; an address is its own."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(each[4][0]) for each in found))


@dataclass(kw_only=True)
class NetworkProxy:
    """The proxy of a gateway, and what its commands may reach."""

    rules: NetworkRules
    #: By host, the header ``Authorization`` of requests that have none; only without TLS.
    credentials: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)
    #: Is told each refusal: the host, and the sentence.
    on_refused: Callable[[str, str], None] = lambda host, reason: None
    resolve: Resolve = resolve_host

    def __post_init__(self) -> None:
        self._permits = asyncio.Semaphore(_CONNECTIONS)

    @asynccontextmanager
    async def serve(self, path: Path) -> AsyncGenerator[None]:
        """Serve on a socket of this path during the block; its folder must be private."""
        tasks: set[asyncio.Task[None]] = set()

        def begin(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.create_task(self._handle(reader, writer), name="network-proxy")
            tasks.add(task)
            task.add_done_callback(tasks.discard)

        server = await asyncio.start_unix_server(begin, sock=_bind(path), limit=_LONGEST_HEAD)
        try:
            yield
        finally:
            server.close()
            for task in tuple(tasks):
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            _remove(path)

    async def _handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with self._permits:
                try:
                    await self._serve_request(reader, writer)
                except _Refused as refusal:
                    writer.write(_format_refusal(refusal))
                    await writer.drain()
        except (OSError, TimeoutError):
            pass  # the command or the server is gone: the other end sees its connection end
        finally:
            writer.close()

    async def _serve_request(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        head = await _read_head(reader)
        target = _read_target(head[0])
        addresses = await self._find_addresses(target)
        server_reader, server_writer = await _connect(target, addresses)
        try:
            if target.path:
                server_writer.write(self._rewrite(target, head))
            else:
                writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            await asyncio.gather(
                _copy(reader, server_writer), _copy(server_reader, writer, ends=True)
            )
        finally:
            server_writer.close()

    async def _find_addresses(self, target: _Target) -> Sequence[str]:
        """Return addresses of the host that may be connected to."""
        if problem := self.rules.find_host_problem(target.host, target.port):
            self._refuse(target, problem)
        try:
            found = await self.resolve(target.host, target.port)
        except OSError as error:
            raise _Refused(502, f"{target.host} has no address: {error.strerror}") from error
        for address in found:
            # One that is refused refuses all: others do not choose which one is connected to.
            if problem := self.rules.find_address_problem(target.host, address, target.port):
                self._refuse(target, problem)
        return found[:_ADDRESSES]

    def _refuse(self, target: _Target, problem: str) -> None:
        self.on_refused(target.host, problem)
        raise _Refused(403, problem)

    def _rewrite(self, target: _Target, head: Sequence[str]) -> bytes:
        """Return the head of a request as the server gets it: for this host, and one request."""
        kept = [line for line in head[1:] if _name(line) not in (*_HOP_HEADERS, "host")]
        lines = [f"{target.method} {target.path} HTTP/1.1", f"Host: {target.netloc}", *kept]
        given = self.credentials.get(target.netloc) or self.credentials.get(target.host)
        if given is not None and "authorization" not in map(_name, kept):
            lines.append(f"Authorization: {given}")
        return "\r\n".join([*lines, "Connection: close", "", ""]).encode("latin-1")


async def _read_head(reader: asyncio.StreamReader) -> list[str]:
    """Return the lines of the head of a request."""
    try:
        async with asyncio.timeout(_HEAD_TIMEOUT):
            head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.LimitOverrunError:
        raise _Refused(431, "the head of the request is too long") from None
    except asyncio.IncompleteReadError as error:
        if not error.partial:
            raise ConnectionResetError from error
        raise _Refused(400, "the request has no end") from error
    return head.decode("latin-1").removesuffix("\r\n\r\n").split("\r\n")


def _read_target(line: str) -> _Target:
    """Return the host that a request is for."""
    words = line.split(" ")
    if len(words) != 3 or not words[2].startswith("HTTP/1."):
        raise _Refused(400, "this is not a request to a proxy")
    method, place, _ = words
    tunnel = method == "CONNECT"
    try:
        url = urlsplit(f"//{place}" if tunnel else place)
        host, port = url.hostname or "", url.port
    except ValueError:
        raise _Refused(400, "the request names no usable host") from None
    if not host or (tunnel and port is None) or not (tunnel or url.scheme == "http"):
        raise _Refused(400, "a request names its host as http://HOST/PATH, or by CONNECT HOST:PORT")
    path = "" if tunnel else f"{url.path or '/'}{f'?{url.query}' if url.query else ''}"
    return _Target(method=method, host=host.rstrip("."), port=port or _HTTP_PORT, path=path)


async def _connect(
    target: _Target, addresses: Sequence[str]
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    reason = "it has no address"
    for address in addresses:
        try:
            async with asyncio.timeout(_CONNECT_TIMEOUT):
                return await asyncio.open_connection(address, target.port)
        except TimeoutError:
            reason = "it does not answer"
        except OSError as error:
            reason = os.strerror(error.errno) if error.errno else str(error)
    raise _Refused(502, f"{target.host} cannot be reached: {reason}")


async def _copy(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, ends: bool = False
) -> None:
    """Copy one direction to its end, and tell the end; with ``ends`` the other one ends as well."""
    while data := await reader.read(_CHUNK):
        writer.write(data)
        await writer.drain()
    if writer.can_write_eof():
        writer.write_eof()
    if ends:
        raise ConnectionResetError  # of a server that has answered


def _name(line: str) -> str:
    return line.partition(":")[0].strip().lower()


def _format_refusal(refusal: _Refused) -> bytes:
    """Return the answer; clients show the sentence beside the status, or the text."""
    text = f"{refusal.reason}\n".encode()
    reason = refusal.reason.encode("ascii", "replace").decode()
    return (
        f"HTTP/1.1 {refusal.status} {reason}\r\nContent-Type: text/plain; charset=utf-8\r\n"
        f"Content-Length: {len(text)}\r\nConnection: close\r\n\r\n"
    ).encode() + text


def _bind(path: Path) -> socket.socket:
    """Return a bound socket; a path may be longer than an address of a socket can be."""
    _remove(path)  # of a gateway that was killed
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    made = socket.socket(socket.AF_UNIX)
    try:
        made.bind(f"/proc/self/fd/{folder}/{path.name}")
        path.chmod(0o600)
    except OSError:
        made.close()
        raise
    finally:
        os.close(folder)
    return made


def _remove(path: Path) -> None:
    with suppress(OSError):
        path.unlink()
