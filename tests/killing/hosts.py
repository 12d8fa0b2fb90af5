"""Another host: a network namespace whose one link to ours can be cut. Needs root and ``ip``."""

from __future__ import annotations

import ctypes
import os
import socket
import subprocess
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tests.integration.postgres_proxy import BlackHole
from tests.killing.ways import way

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Generator

_OURS, _THEIRS = "10.231.77.1", "10.231.77.2"
_NETWORK = 0x40000000  # CLONE_NEWNET


class NotAllowed(Exception):
    """This machine lets nobody make namespaces; the text is what it said."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Host:
    """The other host."""

    name: str
    #: The end of its link on our side.
    link: str

    def cut(self) -> None:
        """Whatever is sent from now on gets lost."""
        _ip("link", "set", self.link, "down")

    def heal(self) -> None:
        _ip("link", "set", self.link, "up")


@contextmanager
def host() -> Generator[Host]:
    """
    A host for the length of the block.

    :raises NotAllowed: if there can be none here
    """
    name, link = f"clew{os.getpid()}", f"clew{os.getpid() % 100_000}"
    _ip("netns", "add", name)
    try:
        _ip("link", "add", link, "type", "veth", "peer", "name", "eth0", "netns", name)
        _ip("addr", "add", f"{_OURS}/24", "dev", link)
        _ip("link", "set", link, "up")
        _ip("-n", name, "addr", "add", f"{_THEIRS}/24", "dev", "eth0")
        _ip("-n", name, "link", "set", "eth0", "up")
        _ip("-n", name, "link", "set", "lo", "up")
        yield Host(name=name, link=link)
    finally:
        # Its link goes with it.
        _ip("netns", "del", name)


def move_to(name: str) -> None:
    """Connect this process from now on as that host does; single-threaded."""
    with Path(f"/run/netns/{name}").open() as namespace:
        if ctypes.CDLL(None, use_errno=True).setns(namespace.fileno(), _NETWORK):
            raise OSError(ctypes.get_errno(), "setns failed")


@contextmanager
def seen_from_there(*urls: str) -> Generator[list[str]]:
    """Return the addresses of servers on our loopback, as another host sees them."""
    with ExitStack() as stack:
        yield [stack.enter_context(way(url, _Doorway, host=_OURS)).url for url in urls]


class _Doorway(BlackHole):
    """Ends what is behind it when the other host fell silent, as a server would itself."""

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        end: socket.socket = writer.get_extra_info("socket")
        end.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        # Options that the store sets on its connections (``clew.store.postgres.dsn``).
        end.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 10)
        end.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 3)
        end.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 3)
        end.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 15_000)
        await super().handle(reader, writer)


def _ip(*args: str) -> None:
    try:
        subprocess.run(["ip", *args], check=True, capture_output=True, text=True)
    except FileNotFoundError as error:
        raise NotAllowed(str(error)) from error
    except subprocess.CalledProcessError as error:
        raise NotAllowed(f"ip {' '.join(args)}: {error.stderr.strip()}") from error
