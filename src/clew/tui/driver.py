"""The terminal itself: the library's driver, with input read by our own rules."""

from __future__ import annotations

import os
import selectors
import time
from codecs import getincrementaldecoder
from typing import Final

from textual._xterm_parser import XTermParser
from textual.drivers.linux_driver import LinuxDriver

from clew.tui.terminal_input import TerminalInput

#: Bytes that are read at once.
_MOST: Final = 65536
#: Seconds until the library's parser is asked whether a lone escape was a key.
_TICK: Final = 0.1
#: Seconds until what may begin a mark is taken for keys.
_HELD: Final = 0.02


class TerminalDriver(LinuxDriver):
    """
    Reads keys and pastes.

    The library reads keys within a paste, so that encoded newlines and colour codes went beside
    the text, and before it.
    """

    def run_input_thread(self) -> None:
        """Read until the program ends or the terminal has gone."""
        reader = TerminalInput(XTermParser(self._debug), time.monotonic)
        decode = getincrementaldecoder("utf-8")("replace").decode
        with selectors.SelectSelector() as selector:
            selector.register(self.fileno, selectors.EVENT_READ)
            while not self.exit_event.is_set():
                came = selector.select(_HELD if reader.is_waiting else _TICK)
                data = self._read() if came else b""
                if came and not data:
                    return
                for message in reader.feed(decode(data)) if came else reader.tick():
                    self.process_message(message)

    def _read(self) -> bytes:
        try:
            return os.read(self.fileno, _MOST)
        except OSError:  # the terminal has gone
            return b""
