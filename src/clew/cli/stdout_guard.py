"""
Reserve standard output for this program's own data.

Tools, plugins and the programs that they start print too. Mixed with JSON-RPC frames or a
JSON answer, that output would break the reader.
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
def reserve_stdout(*, stdin: bool = False) -> Generator[TextIO]:
    """
    Yield standard output; redirect all other output to standard error meanwhile.

    With ``stdin``, other code reads an empty standard input.
    """
    with ExitStack() as stack:
        ours = _duplicate_stdout(sys.stdout, stack)
        stack.enter_context(_redirect_descriptor(_STDOUT, _get_descriptor(sys.stderr)))
        if stdin:
            stack.enter_context(_redirect_descriptor(_STDIN, None))
        stack.enter_context(redirect_stdout(sys.stderr))
        yield ours


def _duplicate_stdout(stream: TextIO, stack: ExitStack) -> TextIO:
    """Return the stream on a descriptor of its own if it uses the standard one."""
    if _get_descriptor(stream) != _STDOUT:
        return stream
    stream.flush()
    made = os.fdopen(os.dup(_STDOUT), "w", encoding=stream.encoding, errors="replace")
    stack.callback(_close_quietly, made)
    return made


def _close_quietly(stream: TextIO) -> None:
    with suppress(BrokenPipeError):  # reported when it was written
        stream.close()


@contextmanager
def _redirect_descriptor(descriptor: int, elsewhere: int | None) -> Generator[None]:
    """
    Redirect a standard descriptor to another one, or to the null device.

    Child processes inherit the redirection.
    """
    with ExitStack() as stack:
        if elsewhere is None:
            elsewhere = os.open(os.devnull, os.O_RDWR)
            stack.callback(os.close, elsewhere)
        before = os.dup(descriptor)
        stack.callback(os.close, before)
        stack.callback(os.dup2, before, descriptor)
        os.dup2(elsewhere, descriptor)
        yield


def _get_descriptor(stream: TextIO | None) -> int | None:
    """Return the descriptor; ``None`` without a stream, or for a stream in memory."""
    try:
        return None if stream is None else stream.fileno()
    except (OSError, ValueError):
        return None
