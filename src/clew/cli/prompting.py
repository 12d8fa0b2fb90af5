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

from clew.core.escapes import strip_sequences

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
        return strip_sequences(text)

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
