"""
Processes are forked from one that has imported everything and has started no thread.

To start one takes 10 ms so; from nothing each reads Clew and the library of models anew.
"""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from multiprocessing.connection import wait
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping, Sequence
    from multiprocessing.connection import Connection
    from multiprocessing.process import BaseProcess

FORKS = multiprocessing.get_context("forkserver")
# The main module of a test run is imported by each child, which is free if it is there already.
FORKS.set_forkserver_preload(["pytest", "tests.killing.preload"])
_STREAMS = (0, 1, 2)
_looking = threading.Lock()


def run(
    args: Sequence[str], *, environ: Mapping[str, str], text: str, within: float
) -> subprocess.CompletedProcess[str]:
    """
    Run ``clew`` with ``args`` to its end: a process of its own, with pipes and this environment.

    :raises subprocess.TimeoutExpired: after ``within`` seconds; it is killed then
    """
    pipes: list[tuple[Any, Any]] = [FORKS.Pipe(duplex=False) for _ in _STREAMS]
    (its_in, our_in), (our_out, its_out), (our_err, its_err) = pipes
    theirs = (its_in, its_out, its_err)
    process = FORKS.Process(
        target=_program, args=(tuple(args), dict(environ), Path.cwd(), theirs), daemon=True
    )
    with _looking:
        process.start()
    for end in theirs:
        end.close()
    with ThreadPoolExecutor(3) as readers:
        out, err = (readers.submit(_read, end) for end in (our_out, our_err))
        readers.submit(_write, our_in, text.encode())
        ended = wait([process.sentinel], within)
        if not ended:
            process.kill()
            wait([process.sentinel])
        # Starting a process polls all of them: of two that read one exit code, one gets nothing.
        with _looking:
            code = process.exitcode
        if not ended:
            raise subprocess.TimeoutExpired(list(args), within, out.result(), err.result())
    assert code is not None
    return subprocess.CompletedProcess(list(args), code, out.result(), err.result())


@contextmanager
def started(
    args: Sequence[str], *, environ: Mapping[str, str]
) -> Generator[tuple[BaseProcess, IO[str]]]:
    """``clew`` with ``args``, as a process of its own, and its output; killed at the end."""
    pipes: list[tuple[Any, Any]] = [FORKS.Pipe(duplex=False) for _ in _STREAMS]
    (its_in, our_in), (our_out, its_out), (our_err, its_err) = pipes
    theirs = (its_in, its_out, its_err)
    process = FORKS.Process(
        target=_program, args=(tuple(args), dict(environ), Path.cwd(), theirs), daemon=True
    )
    with _looking:
        process.start()
    for end in (*theirs, our_in):
        end.close()
    with ThreadPoolExecutor(1) as readers:
        readers.submit(_read, our_err)
        try:
            with our_out, open(our_out.fileno(), encoding="utf-8", closefd=False) as output:
                yield process, output
        finally:
            process.kill()
            process.join()


def _read(end: Connection[Any, Any]) -> str:
    with end, open(end.fileno(), encoding="utf-8", closefd=False) as file:
        return file.read()


def _write(end: Connection[Any, Any], data: bytes) -> None:
    with end:
        try:
            while data:
                data = data[os.write(end.fileno(), data) :]
        except BrokenPipeError:
            """It does not want to hear more."""


def _program(
    args: tuple[str, ...],
    environ: dict[str, str],
    folder: Path,
    streams: tuple[Connection[Any, Any], ...],
) -> None:
    """Be the program: what a new interpreter would have found."""
    for number, stream in zip(_STREAMS, streams, strict=True):
        os.dup2(stream.fileno(), number)
        stream.close()
    os.environ.clear()
    os.environ.update(environ)
    time.tzset()
    os.chdir(folder)
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stderr = open(  # noqa: SIM115
        2, "w", encoding="utf-8", errors="backslashreplace", buffering=1, closefd=False
    )
    sys.argv = ["clew", *args]
    from clew.cli import main  # noqa: PLC0415  (nothing that forks needs it)

    main()
