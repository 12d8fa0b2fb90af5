"""
The terminal UI on a pseudo terminal, and the cells that a terminal shows of it.

The program draws with its real driver; its bytes go to an emulator. Judged is what stands in the
emulator's cells, not what a widget believes to have drawn.
"""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import struct
import termios
import threading
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import count
from typing import TYPE_CHECKING, Any, Final, Self

import pyte
from textual.widget import Widget

if TYPE_CHECKING:
    from collections.abc import Generator

    from textual.app import App
    from textual.driver import Driver
    from textual.drivers.linux_driver import LinuxDriver
    from textual.geometry import Size

#: Bytes of the keyboard protocol that the emulator does not know and would print.
_KEYBOARD: Final = (b"\x1b[<u", b"\x1b[>25u")
#: The prefix of a mark's name.
_MARK: Final = "mark "
_SIGNALS: Final = (signal.SIGWINCH, signal.SIGTSTP, signal.SIGCONT, signal.SIGTTOU, signal.SIGTTIN)


@dataclass(frozen=True, kw_only=True, slots=True)
class Cell:
    """One character on the screen, and how it looks."""

    text: str
    foreground: str
    background: str
    bold: bool
    italic: bool
    underlined: bool
    struck: bool
    reversed: bool

    @classmethod
    def of(cls, char: Any) -> Cell:
        return cls(
            text=char.data,
            foreground=char.fg,
            background=char.bg,
            bold=char.bold,
            italic=char.italics,
            underlined=char.underscore,
            struck=char.strikethrough,
            reversed=char.reverse,
        )


#: The rows of a screen.
Cells = list[list[Cell]]


class _Screen(pyte.Screen):
    """A screen whose title is always the last mark."""

    def set_title(self, param: str) -> None:
        """Keep marks alone: the emulator takes the pointer's shape for a title, too."""
        if param.startswith(_MARK):
            super().set_title(param)


class Emulator:
    """Screen of a terminal, computed from the bytes that it receives."""

    def __init__(self, columns: int, lines: int) -> None:
        self._screen = _Screen(columns, lines)
        self._stream = pyte.ByteStream(self._screen)
        self._lock = threading.Lock()

    def feed(self, data: bytes) -> None:
        for each in _KEYBOARD:
            data = data.replace(each, b"")
        with self._lock:
            self._stream.feed(data)

    def resize(self, columns: int, lines: int) -> None:
        with self._lock:
            self._screen.resize(lines, columns)

    @property
    def title(self) -> str:
        return self._screen.title

    @property
    def cells(self) -> Cells:
        with self._lock:
            screen = self._screen
            return [
                [Cell.of(screen.buffer[y][x]) for x in range(screen.columns)]
                for y in range(screen.lines)
            ]

    @property
    def rows(self) -> list[str]:
        """The text of each row."""
        with self._lock:
            return [row.rstrip() for row in self._screen.display]


class PseudoTerminal:
    """A terminal without a window: the program has one end, the emulator the other."""

    def __init__(self, columns: int, lines: int) -> None:
        self.emulator = Emulator(columns, lines)
        self._ours, self.theirs = pty.openpty()
        self._size = (columns, lines)
        self._tell_size()
        self._over, self._end = os.pipe()
        self._reader = threading.Thread(target=self._read, name="emulator", daemon=True)
        self._marks = count()
        #: All bytes that the program wrote.
        self.written = 0

    def __enter__(self) -> Self:
        self._reader.start()
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._end)
        self._reader.join(10)
        for each in (self._ours, self.theirs, self._over):
            os.close(each)

    def _read(self) -> None:
        """In a thread: the program waits while nobody takes what it writes."""
        while True:
            ready, _, _ = select.select([self._ours, self._over], [], [])
            if self._ours in ready:
                data = os.read(self._ours, 65536)
                self.written += len(data)
                self.emulator.feed(data)
            elif ready:
                return

    @property
    def size(self) -> tuple[int, int]:
        return self._size

    def _tell_size(self) -> None:
        columns, lines = self._size
        told = struct.pack("HHHH", lines, columns, 0, 0)
        fcntl.ioctl(self._ours, termios.TIOCSWINSZ, told)

    def resize(self, columns: int, lines: int) -> None:
        """Change the size, and tell the program as a terminal does."""
        self._size = (columns, lines)
        self.emulator.resize(columns, lines)
        self._tell_size()
        signal.raise_signal(signal.SIGWINCH)

    def send(self, data: str | bytes) -> None:
        """Type: keys as a terminal encodes them."""
        left = data.encode() if isinstance(data, str) else data
        while left:
            left = left[os.write(self._ours, left) :]

    def mark(self, driver: Driver) -> str:
        """Have the program write a mark behind everything else: the title says once it is here."""
        name = f"{_MARK}{next(self._marks)}"
        driver.write(f"\x1b]2;{name}\x07")
        return name


def driver_on(terminal: PseudoTerminal, base: type[LinuxDriver]) -> type[LinuxDriver]:
    """The product's driver, on this terminal instead of the standard streams."""

    class Driver(base):
        def __init__(
            self,
            app: App[Any],
            *,
            debug: bool = False,
            mouse: bool = True,
            size: tuple[int, int] | None = None,
        ) -> None:
            super().__init__(app, debug=debug, mouse=mouse, size=size)  # pyright: ignore[reportUnknownMemberType]
            self._file = os.fdopen(os.dup(terminal.theirs), "w", encoding="utf-8")
            self.fileno = terminal.theirs
            self.input_tty = True

        def _get_terminal_size(self) -> tuple[int, int]:
            return terminal.size

        def close(self) -> None:
            super().close()
            self._file.close()

    return Driver


@contextmanager
def signals_kept() -> Generator[None]:
    """A driver takes signals for itself: put back who had them."""
    kept = {number: signal.getsignal(number) for number in _SIGNALS}
    try:
        yield
    finally:
        for number, handler in kept.items():
            with suppress(TypeError):  # not set from Python
                signal.signal(number, handler)


def drawn_afresh(app: App[Any]) -> Cells:
    """The cells of everything drawn from nothing: what the screen has to show."""
    screen = app.screen
    for widget in screen.walk_children(Widget, with_self=True):
        widget._styles_cache.clear()  # pyright: ignore[reportPrivateUsage]
    size: Size = screen.size
    emulator = Emulator(size.width, size.height)
    emulator.feed(b"\x1b[?7l")
    strips = screen._compositor.render_strips(size)  # pyright: ignore[reportPrivateUsage]
    for y, strip in enumerate(strips, 1):
        emulator.feed(f"\x1b[{y};1H{strip.render(app.console)}".encode())
    return emulator.cells
