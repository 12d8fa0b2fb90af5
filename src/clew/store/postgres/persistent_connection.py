"""Connection that is held permanently and reopened whenever it is lost."""

from __future__ import annotations

import contextlib
import selectors
import socket
import threading
from typing import TYPE_CHECKING, TypeVar

import psycopg
import structlog

from clew.store.postgres.worker_connection import shut_down_socket

if TYPE_CHECKING:
    from collections.abc import Callable

    from clew.store.postgres.dsn import Connection, Dsn

T = TypeVar("T")
log = structlog.get_logger()

#: Times in seconds.
_RESPONSE_TIMEOUT = 10.0
_BACKOFF = (0.05, 0.1, 0.25, 0.5, 1.0)


class PersistentConnection:
    """
    Thread that keeps one connection and calls ``serve`` on it.

    ``serve(connection, fresh)`` is called when the connection was opened (``fresh``), when
    the server sent something, when ``wake`` was called, and when the seconds that it last
    returned have passed. A lost connection is noticed at once (the socket ends) or, if the
    network dropped it silently, after those seconds plus the time-outs of TCP.
    """

    def __init__(
        self,
        name: str,
        address: Dsn,
        serve: Callable[[Connection, bool], float],
        *,
        farewell: bytes | None = None,
    ) -> None:
        """Prepare the thread; ``farewell`` is the last statement before closing."""
        self._address, self._serve, self._name = address, serve, name
        self._farewell = farewell
        self._wake_sender, self._wake_receiver = socket.socketpair()
        self._wake_sender.setblocking(False)
        self._closing = threading.Event()
        #: There is a connection, as far as we know.
        self.is_up = False
        self._thread = threading.Thread(target=self._run_thread, name=name, daemon=True)

    def start(self) -> None:
        """Start the thread, once."""
        self._thread.start()

    def wake(self) -> None:
        """Have ``serve`` called soon; from any thread."""
        with contextlib.suppress(BlockingIOError, OSError):
            # A full pipe is a wake-up already.
            self._wake_sender.send(b"!")

    def close(self) -> None:
        """End the thread and its connection; wait for both."""
        self._closing.set()
        self.wake()
        if self._thread.ident is not None:
            self._thread.join()
        self._wake_sender.close()
        self._wake_receiver.close()

    def _run_thread(self) -> None:
        failures = 0
        while not self._closing.is_set():
            try:
                with contextlib.closing(self._address.connect()) as connection:
                    wait = call_with_timeout(connection, lambda link: self._serve(link, True))
                    failures, self.is_up = 0, True
                    self._serve_connection(connection, wait)
            except psycopg.Error as error:
                if not self._closing.is_set():
                    log.warning("store_line_lost", line=self._name, error=str(error).strip())
            except Exception:
                # Log it and continue: owner locks and notifications must not end with one error.
                log.exception("store_line_failed", line=self._name)
            self.is_up = False
            self._closing.wait(_BACKOFF[min(failures, len(_BACKOFF) - 1)])
            failures += 1

    def _serve_connection(self, connection: Connection, wait: float) -> None:
        with selectors.DefaultSelector() as selector:
            selector.register(connection.fileno(), selectors.EVENT_READ)
            selector.register(self._wake_receiver, selectors.EVENT_READ)
            while not self._closing.is_set():
                ready = [key.fileobj for key, _ in selector.select(wait)]
                if self._wake_receiver in ready:
                    self._wake_receiver.recv(4096)
                if not ready:
                    call_with_timeout(connection, lambda link: link.execute(b"SELECT 1"))
                wait = self._serve(connection, False)
        if (farewell := self._farewell) is not None:
            call_with_timeout(connection, lambda link: link.execute(farewell))


def call_with_timeout(connection: Connection, ask: Callable[[Connection], T]) -> T:
    """Call ``ask``; shut the connection down if the server does not respond in time."""
    timer = threading.Timer(_RESPONSE_TIMEOUT, shut_down_socket, (connection,))
    timer.daemon = True
    timer.start()
    try:
        return ask(connection)
    finally:
        timer.cancel()
