"""
A child of a supervisor that gives its command a way to the proxy of the gateway, and no other.

It waits for the network namespace of the sandbox, enters it, and from then on passes connections
to a port of its loopback on to the Unix socket of the proxy. It stays outside of the sandbox
otherwise, and ends with its supervisor. While no gateway has the socket, connections are refused;
the next one that opens it serves the command again.
"""

from __future__ import annotations

import _socket
import _thread
import ctypes
import errno
import fcntl
import os
import signal
import sys
import time
from contextlib import suppress
from typing import Any

from clew.sandbox.supervisor.order import DESCRIPTORS, PROXY_PORT

LIBC = ctypes.CDLL(None, use_errno=True)
PR_SET_PDEATHSIG = 1
NS_GET_USERNS = 0xB701
CLONE_NEWUSER, CLONE_NEWNET = 0x10000000, 0x40000000
#: Seconds to wait for the sandbox, and between two looks.
PATIENCE, PAUSE = 30.0, 0.0005
#: Seconds in which a client reads why it is refused.
DRAIN = 5.0
CHUNK = 65536
NO_GATEWAY = (
    b"HTTP/1.1 502 no gateway runs that could reach the network\r\n"
    b"Content-Type: text/plain\r\nConnection: close\r\n\r\n"
    b"no gateway runs that could reach the network: start clew serve\n"
)


def run_relay(command: int, path: str, parent: int) -> None:
    """Serve a command, by the number of its first process, until the supervisor ends."""
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    os.closerange(3, DESCRIPTORS)
    end_with(parent)
    enter_network(command)
    # Its new rights inside of the sandbox may have cleared it.
    end_with(parent)
    serve_all(path)


def end_with(parent: int) -> None:
    """Have the kernel end this process with its parent."""
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(0)


def enter_network(parent: int) -> None:
    """Enter the network namespace of a child of ``parent``, as soon as there is one."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        for child in list_children(parent):
            if (place := open_other_network(child)) is not None:
                join(place)
                return
        time.sleep(PAUSE)
    sys.exit("there is no sandbox")


def open_other_network(process: int) -> int | None:
    """Open the network namespace of a process, unless it is this one."""
    with suppress(OSError):
        place = os.open(f"/proc/{process}/ns/net", os.O_RDONLY)
        if os.fstat(place).st_ino != os.stat("/proc/self/ns/net").st_ino:
            return place
        os.close(place)
    return None


def list_children(process: int) -> list[int]:
    with open(f"/proc/{process}/task/{process}/children", encoding="ascii") as file:
        return [int(word) for word in file.read().split()]


def join(network: int) -> None:
    """Enter a network namespace by way of the user namespace that owns it."""
    owner = fcntl.ioctl(network, NS_GET_USERNS)
    for place, kind in ((owner, CLONE_NEWUSER), (network, CLONE_NEWNET)):
        if LIBC.setns(place, kind):
            code = ctypes.get_errno()
            raise SystemExit(os.strerror(code))
        os.close(place)


def serve_all(path: str) -> None:
    """Pass connections on for ever."""
    listener: Any = listen(PROXY_PORT)
    while True:
        client, _ = listener._accept()  # noqa: SLF001  (what wraps it takes 20 ms to import)
        _thread.start_new_thread(serve, (client, path))


def listen(port: int) -> _socket.socket:
    """Listen on the loopback of the namespace, once that is up."""
    listener = _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM)
    end = time.monotonic() + PATIENCE
    while True:
        try:
            listener.bind(("127.0.0.1", port))
            break
        except OSError as error:
            if error.errno != errno.EADDRNOTAVAIL or time.monotonic() > end:
                raise
            time.sleep(PAUSE)
    listener.listen(128)
    return listener


def serve(descriptor: int, path: str) -> None:
    """Pass one connection on."""
    client = _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM, 0, descriptor)
    gateway = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    try:
        if not connect(gateway, path):
            refuse(client)
            return
        ended = _thread.allocate_lock()
        ended.acquire()
        _thread.start_new_thread(copy, (gateway, client, ended))
        copy(client, gateway)
        ended.acquire()
    finally:
        client.close()
        gateway.close()


def connect(gateway: _socket.socket, path: str) -> bool:
    """Return whether a gateway answers at the socket."""
    try:
        # By its name alone: the address of a socket is short.
        os.chdir(os.path.dirname(path))
        gateway.connect(os.path.basename(path))
    except OSError:
        return False
    return True


def refuse(client: _socket.socket) -> None:
    """Tell a client that nobody is there."""
    with suppress(OSError):
        client.sendall(NO_GATEWAY)
        client.shutdown(_socket.SHUT_WR)
        client.settimeout(DRAIN)
        while client.recv(CHUNK):
            pass


def copy(
    source: _socket.socket, target: _socket.socket, ended: _thread.LockType | None = None
) -> None:
    """Copy one direction to its end, and tell the end."""
    with suppress(OSError):
        while data := source.recv(CHUNK):
            target.sendall(data)
    with suppress(OSError):
        target.shutdown(_socket.SHUT_WR)
    if ended is not None:
        ended.release()
