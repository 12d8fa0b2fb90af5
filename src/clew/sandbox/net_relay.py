"""
A program that gives a command in its sandbox a way to the proxy of the gateway, and no other.

``python -I -S net_relay.py SOCKET PORT``, started beside bubblewrap by the same parent: it waits
for the network namespace of the sandbox, enters it, and from then on passes connections to PORT of
its loopback on to the Unix socket. It stays outside of the sandbox otherwise, ends with its parent,
and imports nothing of Clew, to start fast. While no gateway has the socket, connections are
refused; the next one that opens it serves the command again.
"""

from __future__ import annotations

import _thread
import ctypes
import errno
import fcntl
import os
import signal
import socket
import sys
import time
from contextlib import suppress

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
        return [int(word) for word in file.read().split() if int(word) != os.getpid()]


def join(network: int) -> None:
    """Enter a network namespace by way of the user namespace that owns it."""
    owner = fcntl.ioctl(network, NS_GET_USERNS)
    for place, kind in ((owner, CLONE_NEWUSER), (network, CLONE_NEWNET)):
        if LIBC.setns(place, kind):
            code = ctypes.get_errno()
            raise SystemExit(os.strerror(code))
        os.close(place)


def listen(port: int) -> socket.socket:
    """Listen on the loopback of the namespace, once that is up."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
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


def serve(client: socket.socket, path: str) -> None:
    """Pass one connection on."""
    with client, socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as gateway:
        try:
            # By its name alone: the address of a socket is short.
            os.chdir(os.path.dirname(path))
            gateway.connect(os.path.basename(path))
        except OSError:
            refuse(client)
            return
        ended = _thread.allocate_lock()
        ended.acquire()
        _thread.start_new_thread(copy, (gateway, client, ended))
        copy(client, gateway)
        ended.acquire()


def refuse(client: socket.socket) -> None:
    """Tell a client that nobody is there."""
    with suppress(OSError):
        client.sendall(NO_GATEWAY)
        client.shutdown(socket.SHUT_WR)
        client.settimeout(DRAIN)
        while client.recv(CHUNK):
            pass


def copy(
    source: socket.socket, target: socket.socket, ended: _thread.LockType | None = None
) -> None:
    """Copy one direction to its end, and tell the end."""
    with suppress(OSError):
        while data := source.recv(CHUNK):
            target.sendall(data)
    with suppress(OSError):
        target.shutdown(socket.SHUT_WR)
    if ended is not None:
        ended.release()


def main() -> None:
    """Serve until the parent ends."""
    path, port = sys.argv[1], int(sys.argv[2])
    parent = os.getppid()
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        return
    enter_network(parent)
    listener = listen(port)
    while True:
        client, _ = listener.accept()
        _thread.start_new_thread(serve, (client, path))


if __name__ == "__main__":
    main()
