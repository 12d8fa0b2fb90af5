"""``clew`` on a terminal of its own, and a person who types."""

from __future__ import annotations

import fcntl
import os
import select
import struct
import subprocess
import termios
import time
from typing import TYPE_CHECKING, Self

from tests.acceptance.program import PATIENCE
from tests.forking import Forked
from tests.sent.watching import program as asking

if TYPE_CHECKING:
    from tests.acceptance.program import Clew

CTRL_C, CTRL_D = "\x03", "\x04"


class Terminal:
    """A command on a terminal of its own, and a person who types."""

    def __init__(self, clew: Clew, *args: str, size: tuple[int, int] | None = None) -> None:
        self._args = args
        #: Rows and columns.
        self._size = size
        self._environ = {**clew.environ, "TERM": clew.env.get("TERM", "xterm")}
        if size is not None:
            # Programs believe these before they ask the terminal.
            self._environ |= {"LINES": str(size[0]), "COLUMNS": str(size[1])}
        self._asking = asking(clew.home, clew.environ)
        #: Everything that was printed.
        self.screen = ""
        self._seen = 0

    def __enter__(self) -> Self:
        self._asking.__enter__()
        self._descriptor, slave = os.openpty()
        if self._size is not None:
            # Before the program looks at it.
            fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", *self._size, 0, 0))
        self._process = Forked(
            self._args, environ=self._environ, streams=[slave] * 3, terminal=True
        )
        os.close(slave)
        self.pid = self._process.pid
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._descriptor)
        self._asking.__exit__(None, None, None)
        self._process.kill()
        self._process.wait()

    def see(self, text: str) -> str:
        """Wait until ``text`` is printed after what was seen before; what came until then."""
        until = time.monotonic() + PATIENCE
        while (at := self.screen.find(text, self._seen)) < 0:
            assert self._read(until), (
                f"never saw {text!r} after:\n{self.screen[self._seen :][-500:]}"
            )
        found = self.screen[self._seen : at]
        self._seen = at + len(text)
        return found

    def _read(self, until: float) -> bool:
        ready, _, _ = select.select([self._descriptor], [], [], max(0, until - time.monotonic()))
        try:
            data = os.read(self._descriptor, 65536) if ready else b""
        except OSError:  # the program has ended
            data = b""
        self.screen += data.decode(errors="replace")
        return bool(data)

    def type(self, text: str) -> None:
        os.write(self._descriptor, text.encode())

    def press(self, key: str) -> None:
        """
        Press a control key at the prompt.

        readline misses a signal that comes between its prompt and its wait for keys, so a person's
        pace is kept.
        """
        time.sleep(0.3)
        self.type(key)

    def stopped(self) -> None:
        """Wait until the program is stopped as Ctrl-Z stops one."""
        until = time.monotonic() + PATIENCE
        state = ["ps", "-o", "stat=", "-p", str(self.pid)]
        while not subprocess.check_output(state, encoding="utf-8").startswith("T"):
            assert time.monotonic() < until, f"it goes on: {self.screen[self._seen :][-500:]!r}"
            self._read(time.monotonic() + 0.05)

    def kill(self) -> None:
        """``kill -9``."""
        self._process.kill()
        self.ended()

    def ended(self) -> int:
        """Wait for the end; the exit code, negative for a signal."""
        until = time.monotonic() + PATIENCE
        while self._read(until):
            pass
        assert time.monotonic() < until, f"it goes on: {self.screen[self._seen :][-500:]!r}"
        return self._process.wait(PATIENCE)
