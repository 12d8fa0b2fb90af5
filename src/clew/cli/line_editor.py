"""Line input from a terminal: editing, history, multi-line pastes."""

from __future__ import annotations

import os
import signal
import sys
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final

try:
    import readline
except ImportError:  # Windows: the console has line editing
    readline = None

from clew.core.escapes import strip_sequences

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

#: Lines kept in the history.
_HISTORY_LENGTH: Final = 1000


class LineEditor:
    """Line input on the user's terminal."""

    def __init__(self, history: Path) -> None:
        """Load the history file, and append new lines to it; only the user can read it."""
        self._history = history
        if readline is None:
            return
        readline.set_history_length(_HISTORY_LENGTH)
        with suppress(OSError):
            readline.read_history_file(history)
            readline.write_history_file(history)  # truncated to that length
        # Several lines arrive as one text; not every readline library knows it.
        readline.parse_and_bind("set enable-bracketed-paste on")

    def read_message(self, prompt: str, *, begun: str = "") -> str | None:
        """
        Return one message, of several lines if it was pasted; ``None`` at the end (Ctrl-D).

        ``begun`` is its initial text. Ctrl-C raises ``KeyboardInterrupt``.
        """
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            if readline is not None:
                readline.set_startup_hook(lambda: _insert_text(begun))
            text = input(prompt)
        except EOFError:
            return None
        finally:
            signal.signal(signal.SIGINT, before)
        if text.strip():
            self._save_line()
        return strip_sequences(text)

    def _save_line(self) -> None:
        """Save the last line at once: this process may be killed."""
        if readline is None:
            return
        with suppress(OSError):
            self._history.touch(mode=0o600)
            if hasattr(readline, "append_history_file"):
                readline.append_history_file(1, self._history)
            else:
                readline.write_history_file(self._history)

    @contextmanager
    def enable_typeahead(self) -> Generator[int | None]:
        """
        Accept input during an answer: yield the descriptor to read, or ``None``.

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
        _write_sequence(marks, "\x1b[?2004h")
        try:
            yield descriptor
        finally:
            _write_sequence(marks, "\x1b[?2004l")
            termios.tcsetattr(descriptor, termios.TCSADRAIN, before)


def _insert_text(text: str) -> None:
    if readline is not None and text:
        readline.insert_text(text)


def _write_sequence(wanted: bool, sequence: str) -> None:
    if wanted:
        sys.stdout.write(sequence)
        sys.stdout.flush()
