"""A connection that is held for good: reopened whenever it is lost."""

from __future__ import annotations

import contextlib
import selectors
import socket
import threading
from typing import TYPE_CHECKING, TypeVar

import psycopg
import structlog

from clew.store.postgres.link import shut

if TYPE_CHECKING:
    from collections.abc import Callable

    from clew.store.postgres.address import Address, Connection

T = TypeVar("T")
log = structlog.get_logger()

#: Seconds.
_SILENCE = 10.0
_BACKOFF = (0.05, 0.1, 0.25, 0.5, 1.0)


class Line:
    """
    A thread that keeps one connection and calls ``serve`` on it.

    ``serve(connection, fresh)`` is called when the connection was opened (``fresh``), when the
    server sent something, when ``nudge`` was called, and when the seconds that it returned last
    are over. Losing the connection shows at once (the socket ends), or, where the network swallowed
    it, after those seconds plus the time-outs of TCP.
    """

    def __init__(
        self,
        name: str,
        address: Address,
        serve: Callable[[Connection, bool], float],
        *,
        farewell: bytes | None = None,
    ) -> None:
        """``farewell`` is the last statement when the line is closed."""
        self._address, self._serve, self._name = address, serve, name
        self._farewell = farewell
        self._mouth, self._ear = socket.socketpair()
        self._mouth.setblocking(False)
        self._closing = threading.Event()
        #: Whether there is a connection, as far as we know.
        self.up = False
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Begin, once."""
        self._thread.start()

    def nudge(self) -> None:
        """Have ``serve`` called soon; from any thread."""
        with contextlib.suppress(BlockingIOError, OSError):
            # A full pipe is a nudge already.
            self._mouth.send(b"!")

    def close(self) -> None:
        """End the thread and its connection; waits for both."""
        self._closing.set()
        self.nudge()
        if self._thread.ident is not None:
            self._thread.join()
        self._mouth.close()
        self._ear.close()

    def _run(self) -> None:
        failures = 0
        while not self._closing.is_set():
            try:
                with contextlib.closing(self._address.connect()) as connection:
                    wait = answer(connection, lambda link: self._serve(link, True))
                    failures, self.up = 0, True
                    self._hold(connection, wait)
            except psycopg.Error as error:
                if not self._closing.is_set():
                    log.warning("store_line_lost", line=self._name, error=str(error).strip())
            except Exception:
                # Logged, and the line goes on: what it proves or hears must not end with it.
                log.exception("store_line_failed", line=self._name)
            self.up = False
            self._closing.wait(_BACKOFF[min(failures, len(_BACKOFF) - 1)])
            failures += 1

    def _hold(self, connection: Connection, wait: float) -> None:
        with selectors.DefaultSelector() as selector:
            selector.register(connection.fileno(), selectors.EVENT_READ)
            selector.register(self._ear, selectors.EVENT_READ)
            while not self._closing.is_set():
                ready = [key.fileobj for key, _ in selector.select(wait)]
                if self._ear in ready:
                    self._ear.recv(4096)
                if not ready:
                    answer(connection, lambda link: link.execute(b"SELECT 1"))
                wait = self._serve(connection, False)
        if (farewell := self._farewell) is not None:
            answer(connection, lambda link: link.execute(farewell))


def answer(connection: Connection, ask: Callable[[Connection], T]) -> T:
    """What a server answers; one that does not in time is as good as gone."""
    timer = threading.Timer(_SILENCE, shut, (connection,))
    timer.daemon = True
    timer.start()
    try:
        return ask(connection)
    finally:
        timer.cancel()
