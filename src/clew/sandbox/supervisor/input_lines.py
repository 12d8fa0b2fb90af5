"""The input of a command: lines of JSON in a named pipe become what it reads."""

from __future__ import annotations

import errno
import json
import os

from clew.sandbox.supervisor.order import INPUT

#: Bytes that wait for a command which does not read.
_LONGEST_QUEUE = 256 * 1024
_CHUNK = 64 * 1024


class InputLines:
    """Reader of the named pipe, and writer of the pipe to the command."""

    def __init__(self, pipe: int) -> None:
        os.set_blocking(pipe, False)
        #: The pipe to the command; ``None`` once it is closed.
        self.pipe: int | None = pipe
        #: The command has begun: what is written before that is read by its sandbox.
        self.is_open = False
        # For writing as well, so that it never ends.
        self.source = os.open(INPUT, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        self._rest = b""
        self._queue = b""
        self._closing = False
        #: Keys of what was given: the same input is given once.
        self._known: set[str] = set()

    @property
    def waits(self) -> bool:
        """True while the command has not read all of it."""
        return self.is_open and self.pipe is not None and bool(self._queue or self._closing)

    @property
    def is_full(self) -> bool:
        return len(self._queue) >= _LONGEST_QUEUE

    def read_lines(self) -> None:
        """Take what is in the named pipe."""
        try:
            data = self._rest + os.read(self.source, _CHUNK)
        except OSError:
            return
        *lines, self._rest = data.split(b"\n")
        for line in filter(None, lines):
            self._take_line(line)
        self.write_queue()

    def _take_line(self, line: bytes) -> None:
        try:
            given = json.loads(line)
            key, text, is_end = given["key"], given["text"], given["end"]
        except (ValueError, KeyError, TypeError):
            return
        if key in self._known:
            return
        self._known.add(key)
        if not self._closing:
            self._queue += text.encode(errors="replace")
            self._closing = is_end

    def write_queue(self) -> None:
        """Write as much as the command takes now."""
        if self.pipe is None:
            self._queue = b""
        if self.pipe is None or not self.is_open:
            return
        while self._queue:
            try:
                done = os.write(self.pipe, self._queue[:_CHUNK])
            except OSError as error:
                if error.errno != errno.EAGAIN:  # it has closed its input
                    self.close_pipe()
                return
            self._queue = self._queue[done:]
        if self._closing:
            self.close_pipe()

    def answer(self, *, takes_input: bool) -> None:
        """Tell the command that its supervisor will end it: only then it runs."""
        assert self.pipe is not None
        try:
            os.write(self.pipe, b"\n")
        except OSError:  # it has ended already
            self.close_pipe()
        self.is_open = True
        if takes_input:
            self.write_queue()
        else:
            self.close_pipe()

    def close_source(self) -> None:
        """Take no more: what is written from now on is refused."""
        os.close(self.source)

    def close_pipe(self) -> None:
        """Let the command read the end of its input."""
        self._queue = b""
        if self.pipe is not None:
            os.close(self.pipe)
            self.pipe = None
