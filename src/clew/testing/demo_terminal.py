"""``clew chat`` on a terminal of its own, whose screen is copied to the output."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import sys
import time
from typing import TYPE_CHECKING, Final, Self

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

_TIMEOUT: Final = 120.0
_COMMAND: Final = (sys.executable, "-c", "import sys; from clew.cli import main; main()")
_CONTROLS: Final = re.compile(r"\x1b\[[\d;?]*[a-zA-Z]|[\r\x07]")


class DemoTerminal:
    """A chat in a home, and a person who types."""

    def __init__(self, home: Path) -> None:
        self._argv = [*_COMMAND, "--home", str(home), "chat"]
        kept = {name: text for name, text in os.environ.items() if not name.startswith("CLEW_")}
        self._environ = {**kept, "TERM": "xterm", "NO_COLOR": "1"}
        self._output = b""
        #: All of it, as plain text.
        self._screen = ""
        self._seen = 0
        self._printed = 0

    def __enter__(self) -> Self:
        sys.stdout.flush()
        self._pid, self._descriptor = pty.fork()
        if self._pid == 0:
            os.execve(self._argv[0], self._argv, self._environ)
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
        os.close(self._descriptor)
        self._print_lines(self._screen.rstrip("\n> ").splitlines())

    def wait_for(self, text: str, *, unless: str = "") -> None:
        """
        Wait until ``text`` is printed after what was waited for before.

        :raises TimeoutError: if it is not, or ``unless`` is printed instead
        """
        end = time.monotonic() + _TIMEOUT
        while (at := self._screen.find(text, self._seen)) < 0:
            if unless and unless in self._screen:
                raise TimeoutError(unless)
            if not self._read_output(end):
                raise TimeoutError(f"{text!r} did not come on the terminal")
        self._seen = at + len(text)

    def type_line(self, text: str) -> None:
        """Type a line."""
        os.write(self._descriptor, f"{text}\n".encode())

    def kill(self) -> None:
        """``kill -9``."""
        if self._pid:
            os.kill(self._pid, signal.SIGKILL)
            os.waitpid(self._pid, 0)
            self._pid = 0

    def _read_output(self, end: float) -> bool:
        ready, _, _ = select.select([self._descriptor], [], [], max(0.0, end - time.monotonic()))
        try:
            data = os.read(self._descriptor, 65536) if ready else b""
        except OSError:  # the program has ended
            data = b""
        self._output += data
        self._screen = _CONTROLS.sub("", self._output.decode(errors="ignore"))
        # The last one is not complete yet.
        self._print_lines(self._screen.split("\n")[:-1])
        return bool(data)

    def _print_lines(self, lines: Sequence[str]) -> None:
        for line in lines[self._printed :]:
            sys.stdout.write(f"   {line}".rstrip() + "\n")
        self._printed = max(self._printed, len(lines))
        sys.stdout.flush()
