"""
Standard output for what this program says, and for nothing else.

Tools and plugins print, and so do the programs that they start: among the frames of JSON-RPC, or
before the JSON of an answer, that would break whatever reads them.
"""

from __future__ import annotations

import os
import sys
from contextlib import ExitStack, contextmanager, redirect_stdout, suppress
from typing import TYPE_CHECKING, Final, TextIO

if TYPE_CHECKING:
    from collections.abc import Generator

_STDIN: Final = 0
_STDOUT: Final = 1


@contextmanager
def stdout_apart(*, stdin: bool = False) -> Generator[TextIO]:
    """
    Give standard output; meanwhile whatever is printed by others goes to standard error.

    With ``stdin`` others find nothing on standard input either.
    """
    with ExitStack() as stack:
        ours = _own(sys.stdout, stack)
        stack.enter_context(_led_elsewhere(_STDOUT, _descriptor(sys.stderr)))
        if stdin:
            stack.enter_context(_led_elsewhere(_STDIN, None))
        stack.enter_context(redirect_stdout(sys.stderr))
        yield ours


def _own(stream: TextIO, stack: ExitStack) -> TextIO:
    """The same stream over a descriptor of its own, if it is the standard one's."""
    if _descriptor(stream) != _STDOUT:
        return stream
    stream.flush()
    made = os.fdopen(os.dup(_STDOUT), "w", encoding=stream.encoding, errors="replace")
    stack.callback(_closed, made)
    return made


def _closed(stream: TextIO) -> None:
    with suppress(BrokenPipeError):  # known, and told, since it was written
        stream.close()


@contextmanager
def _led_elsewhere(descriptor: int, elsewhere: int | None) -> Generator[None]:
    """Have a standard descriptor be another one, or nothing; children inherit that."""
    with ExitStack() as stack:
        if elsewhere is None:
            elsewhere = os.open(os.devnull, os.O_RDWR)
            stack.callback(os.close, elsewhere)
        before = os.dup(descriptor)
        stack.callback(os.close, before)
        stack.callback(os.dup2, before, descriptor)
        os.dup2(elsewhere, descriptor)
        yield


def _descriptor(stream: TextIO | None) -> int | None:
    """``None`` where there is none: a program without the stream, or a stream in memory."""
    try:
        return None if stream is None else stream.fileno()
    except (OSError, ValueError):
        return None
