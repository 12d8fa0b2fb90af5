"""Asking a person for a line: editing, history, whole pastes."""

from __future__ import annotations

import os
import signal
import sys
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final

try:
    import readline
except ImportError:  # Windows: the console edits by itself
    readline = None

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

#: Lines that the history keeps.
_REMEMBERED: Final = 1000


class Keyboard:
    """A person's keyboard, and the terminal that shows what she types."""

    def __init__(self, history: Path) -> None:
        """Have earlier lines at hand, and keep the new ones in a file, for the user alone."""
        self._history = history
        if readline is None:
            return
        readline.set_history_length(_REMEMBERED)
        with suppress(OSError):
            readline.read_history_file(history)
            readline.write_history_file(history)  # no longer than that
        # Several lines arrive as one text. Not known to every library behind readline.
        readline.parse_and_bind("set enable-bracketed-paste on")

    def ask(self, prompt: str, *, begun: str = "") -> str | None:
        """
        One message, which may have several lines if it was pasted; ``None`` at the end (Ctrl-D).

        ``begun`` is what stands there already. Ctrl-C raises ``KeyboardInterrupt``.
        """
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            if readline is not None:
                readline.set_startup_hook(lambda: _insert(begun))
            text = input(prompt)
        except EOFError:
            return None
        finally:
            signal.signal(signal.SIGINT, before)
        if text.strip():
            self._remember()
        return text

    def _remember(self) -> None:
        """Keep the last line, at once: this process may be killed."""
        if readline is None:
            return
        with suppress(OSError):
            self._history.touch(mode=0o600)
            if hasattr(readline, "append_history_file"):
                readline.append_history_file(1, self._history)
            else:
                readline.write_history_file(self._history)

    @contextmanager
    def typing_ahead(self) -> Generator[int | None]:
        """
        Let a person type while an answer runs: the descriptor to read lines from, if there is one.

        The terminal marks pastes, and does not print the marks.
        """
        if sys.platform == "win32" or not sys.stdin.isatty():
            yield None
            return
        import termios  # noqa: PLC0415  (not on Windows)

        descriptor = sys.stdin.fileno()
        before = termios.tcgetattr(descriptor)
        quiet = list(before)
        quiet[3] &= ~termios.ECHOCTL
        marks = sys.stdout.isatty() and os.environ.get("TERM", "dumb") != "dumb"
        termios.tcsetattr(descriptor, termios.TCSADRAIN, quiet)
        _switch(marks, "\x1b[?2004h")
        try:
            yield descriptor
        finally:
            _switch(marks, "\x1b[?2004l")
            termios.tcsetattr(descriptor, termios.TCSADRAIN, before)


def _insert(text: str) -> None:
    if readline is not None and text:
        readline.insert_text(text)


def _switch(wanted: bool, sequence: str) -> None:
    if wanted:
        sys.stdout.write(sequence)
        sys.stdout.flush()


class Lines:
    """
    What is typed while nothing asks for it: bytes in, messages out.

    Every line is a message; a paste that the terminal marks as one belongs to one line, whatever
    line ends it has.
    """

    _BEGIN: Final = b"\x1b[200~"
    _END: Final = b"\x1b[201~"

    def __init__(self) -> None:
        self._rest = b""
        self._line = b""
        self._pasting = False

    def feed(self, data: bytes) -> list[str]:
        """The messages that are complete now."""
        self._rest += data
        found: list[str] = []
        while True:
            mark = self._END if self._pasting else self._next_mark()
            head, mark, rest = self._rest.partition(mark)
            if not mark:
                return found
            self._line, self._rest = self._line + head, rest
            if mark == b"\n":
                found.append(_text(self._line))
                self._line = b""
            else:
                self._pasting = mark == self._BEGIN

    def _next_mark(self) -> bytes:
        line_end, paste = self._rest.find(b"\n"), self._rest.find(self._BEGIN)
        begins_first = paste >= 0 and (line_end < 0 or paste < line_end)
        return self._BEGIN if begins_first else b"\n"

    def take_rest(self) -> str:
        """What was begun and not ended; it is forgotten here."""
        rest, self._rest, self._line, self._pasting = self._line + self._rest, b"", b"", False
        return _text(rest)


def _text(line: bytes) -> str:
    text = line.decode(sys.stdin.encoding or "utf-8", errors="replace")
    return text.replace("\r\n", "\n").replace("\r", "\n")
