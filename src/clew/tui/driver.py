"""Terminal driver: the library's, with our own input parser."""

from __future__ import annotations

import os
import selectors
import time
from codecs import getincrementaldecoder
from typing import Final

from textual._xterm_parser import XTermParser
from textual.drivers.linux_driver import LinuxDriver

from clew.tui.terminal_input import TerminalInput

#: Bytes per read.
_READ_SIZE: Final = 65536
#: Seconds between checks whether a lone escape was a key.
_PARSER_INTERVAL: Final = 0.1
#: Seconds after which a partial paste marker counts as keys.
_MARK_TIMEOUT: Final = 0.02


class TerminalDriver(LinuxDriver):
    """
    Driver that reads keys and pastes.

    The library parses keys inside a paste, so that encoded newlines and colour codes ended
    up outside the pasted text.
    """

    def run_input_thread(self) -> None:
        """Read until the program ends or the terminal is gone."""
        reader = TerminalInput(XTermParser(self._debug), time.monotonic)
        decode = getincrementaldecoder("utf-8")("replace").decode
        with selectors.SelectSelector() as selector:
            selector.register(self.fileno, selectors.EVENT_READ)
            while not self.exit_event.is_set():
                came = selector.select(_MARK_TIMEOUT if reader.is_waiting else _PARSER_INTERVAL)
                data = self._read_bytes() if came else b""
                if came and not data:
                    return
                for message in reader.feed(decode(data)) if came else reader.tick():
                    self.process_message(message)

    def _read_bytes(self) -> bytes:
        try:
            return os.read(self.fileno, _READ_SIZE)
        except OSError:  # the terminal is gone
            return b""
