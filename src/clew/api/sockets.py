"""
Listening sockets, on which clients wait until a server accepts them.

Imports next to nothing, so that a program can listen before it has imported its server.
"""

from __future__ import annotations

import errno
import os
import socket
from typing import TYPE_CHECKING

from clew.errors import PortTaken, SettingsError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clew.config import ApiSettings

#: The number of connections that can wait to be accepted.
BACKLOG = 2048


def bind_sockets(settings: ApiSettings) -> list[socket.socket]:
    """
    Return sockets that listen on the configured address.

    :raises SettingsError: if the address cannot be listened on, or is open to others
        without a token
    """
    settings.require_token_beyond_loopback()
    if settings.token is not None:
        settings.token.reveal()
    return _bind_addresses(settings.host, settings.port)


def _bind_addresses(host: str, port: int) -> list[socket.socket]:
    """Return a listening socket for each address of the host: ``localhost`` has two."""
    try:
        found = socket.getaddrinfo(host.strip("[]"), port, type=socket.SOCK_STREAM)
    except OSError as error:
        raise SettingsError(f"api.host {host!r} is not an address: {error.strerror}") from error
    sockets: list[socket.socket] = []
    failed: OSError | None = None
    for family, name in dict.fromkeys((each[0], str(each[4][0])) for each in found):
        try:
            sockets.append(_bind_socket(family, name, port))
        except OSError as error:
            failed = error
        if sockets and port == 0:
            # Another address could not get the same free port.
            return sockets
    # A machine without IPv6 still resolves ::1, so one address is enough.
    if failed is not None and (not sockets or failed.errno == errno.EADDRINUSE):
        close_sockets(sockets)
        raise _listen_error(host, port, failed) from failed
    return sockets


def _bind_socket(family: int, name: str, port: int) -> socket.socket:
    # asyncio sends small pieces at once only on sockets whose protocol is named.
    made = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        if os.name == "posix":
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            made.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        made.bind((name, port))
        made.listen(BACKLOG)
    except OSError:
        made.close()
        raise
    return made


def close_sockets(sockets: Sequence[socket.socket]) -> None:
    """Close the sockets."""
    for each in sockets:
        each.close()


def _listen_error(host: str, port: int, error: OSError) -> SettingsError:
    if error.errno == errno.EADDRINUSE:
        return PortTaken(host, port)
    return SettingsError(f"cannot listen on {host} port {port}: {error.strerror}")


def base_url(listening: socket.socket) -> str:
    """Return the URL of a listening socket."""
    name, port = listening.getsockname()[:2]
    return f"http://[{name}]:{port}" if ":" in name else f"http://{name}:{port}"
