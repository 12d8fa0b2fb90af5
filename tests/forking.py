"""
Processes are forked from one that has imported everything and has started no thread.

To start one takes 10 ms so; from nothing each reads Clew and the library of models anew.
"""

from __future__ import annotations

import multiprocessing
import os
import runpy
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from multiprocessing import forkserver, resource_tracker
from multiprocessing.connection import Connection, wait
from pathlib import Path
from pkgutil import resolve_name
from typing import IO, TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    import signal
    from collections.abc import Mapping, Sequence
    from concurrent.futures import Future

FORKS = multiprocessing.get_context("forkserver")
# The main module of a test run is imported by each child, which is free if it is there already.
FORKS.set_forkserver_preload(["pytest", "tests.killing.preload"])
#: The variable with the address of the one that all workers of a run share.
SHARED = "CLEW_TEST_FORKS"
_STREAMS = (0, 1, 2)
#: What the installed script of this name calls.
CLEW = "clew.cli:main"
_looking = threading.Lock()


def share() -> None:
    """Start it, with an output that nobody reads, for us and the workers that we start."""
    ours, nowhere = os.dup(1), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    try:
        forkserver.ensure_running()
    finally:
        os.dup2(ours, 1)
        os.close(ours)
        os.close(nowhere)
    os.environ[SHARED] = _server()._forkserver_address


def _server() -> Any:
    """The side of it that is in this process."""
    return vars(forkserver)["_forkserver"]


def _join(address: str) -> None:
    """Fork from the one of the process that has started this one, and which ends it."""
    server = _server()
    server._forkserver_address = address
    # What a child holds as long as it lives, and nobody looks at.
    _, server._forkserver_alive_fd = os.pipe()
    server.ensure_running = resource_tracker.ensure_running


if SHARED in os.environ:
    _join(os.environ[SHARED])


class Forked:
    """
    A program as a process of its own, ``clew`` or another, with what ``subprocess.Popen`` has.

    It is no child of this process: what the system tells parents alone nobody hears of.
    """

    def __init__(
        self,
        args: Sequence[str],
        *,
        environ: Mapping[str, str],
        streams: Sequence[int],
        terminal: bool = False,
        program: str = CLEW,
        folder: Path | None = None,
    ) -> None:
        """
        Start it with copies of three descriptors as its standard streams, in this folder or ours.

        On a ``terminal``, which its input is then, it leads a session.
        """
        self.args = list(args)
        self.stdin: IO[str] | None = None
        self.stdout: IO[str] | None = None
        self.stderr: IO[str] | None = None
        theirs: list[Connection[Any, Any]] = [Connection(os.dup(stream)) for stream in streams]
        self._process = FORKS.Process(
            target=_be,
            args=(program, tuple(args), dict(environ), folder or Path.cwd(), theirs, terminal),
            daemon=True,
        )
        with _looking:
            self._process.start()
        for stream in theirs:
            stream.close()
        assert self._process.pid is not None
        self.pid = self._process.pid

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for stream in (self.stdin, self.stdout, self.stderr):
            if stream is not None:
                with suppress(BrokenPipeError):
                    stream.close()
        self.wait()

    @property
    def returncode(self) -> int | None:
        return self.poll()

    def poll(self) -> int | None:
        # Starting a process polls all of them: of two that read one exit code, one gets nothing.
        with _looking:
            return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        """
        Wait for its end; its exit code.

        :raises subprocess.TimeoutExpired: after so many seconds
        """
        if not wait([self._process.sentinel], timeout):
            raise subprocess.TimeoutExpired(self.args, timeout or 0)
        code = self.poll()
        assert code is not None
        return code

    def communicate(self, text: str = "", timeout: float | None = None) -> tuple[str, str]:
        """
        Say ``text`` to it, and return what it prints until its end.

        :raises subprocess.TimeoutExpired: after so many seconds; it is killed then
        """
        with ThreadPoolExecutor(3) as helpers:
            printed = [helpers.submit(_read, stream) for stream in (self.stdout, self.stderr)]
            helpers.submit(_write, self.stdin, text)
            try:
                self.wait(timeout)
            except subprocess.TimeoutExpired:
                self.kill()
                raise
        return _results(printed)

    def send_signal(self, number: signal.Signals) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        if self.poll() is None:
            self._process.terminate()

    def kill(self) -> None:
        if self.poll() is None:
            self._process.kill()


def piped(
    args: Sequence[str],
    *,
    environ: Mapping[str, str],
    stdin: bool,
    errors: IO[str] | None = None,
    program: str = CLEW,
) -> Forked:
    """
    Start a program with pipes.

    Without ``stdin`` its input is at its end; its errors go to ``errors`` if that is given.
    """
    with ExitStack() as theirs:
        ends = [_pipe(theirs, number) for number in _STREAMS]
        streams = [its for its, _ in ends[:2]] + [errors.fileno() if errors else ends[2][0]]
        process = Forked(args, environ=environ, streams=streams, program=program)
    process.stdin, process.stdout, process.stderr = (ours for _, ours in ends)
    if not stdin:
        process.stdin.close()
    return process


def _pipe(theirs: ExitStack, number: int) -> tuple[int, IO[str]]:
    """A pipe for a standard stream: the end of the program, closed with the stack, and ours."""
    readable, writable = os.pipe()
    its, ours = (readable, writable) if number == 0 else (writable, readable)
    theirs.callback(os.close, its)
    return its, os.fdopen(ours, "w" if number == 0 else "r", encoding="utf-8")


def _read(stream: IO[str] | None) -> str:
    if stream is None or stream.closed:
        return ""
    with stream:
        return stream.read()


def _write(stream: IO[str] | None, text: str) -> None:
    if stream is None or stream.closed:
        return
    # It may not want to hear more.
    with suppress(BrokenPipeError):
        stream.write(text)
    with suppress(BrokenPipeError):
        stream.close()


def _results(printed: Sequence[Future[str]]) -> tuple[str, str]:
    out, err = (each.result() for each in printed)
    return out, err


def run(
    args: Sequence[str],
    *,
    environ: Mapping[str, str],
    text: str = "",
    within: float,
    program: str = CLEW,
) -> subprocess.CompletedProcess[str]:
    """
    Run a program with ``args`` to its end: a process of its own, with pipes and this environment.

    :raises subprocess.TimeoutExpired: after ``within`` seconds; it is killed then
    """
    with piped(args, environ=environ, stdin=True, program=program) as process:
        out, err = process.communicate(text, within)
    return subprocess.CompletedProcess(process.args, process.wait(), out, err)


def script() -> None:
    """The interpreter, which runs a file."""
    del sys.argv[0]
    runpy.run_path(sys.argv[0], run_name="__main__")


def _be(
    program: str,
    args: tuple[str, ...],
    environ: dict[str, str],
    folder: Path,
    streams: Sequence[Connection[Any, Any]],
    terminal: bool,
) -> None:
    """Be the program: what a new interpreter would have found."""
    for number, stream in zip(_STREAMS, streams, strict=True):
        os.dup2(stream.fileno(), number)
        stream.close()
    if terminal:
        _lead_session()
    os.environ.clear()
    os.environ.update(environ)
    time.tzset()
    os.chdir(folder)
    sys.stdin = sys.__stdin__ = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stdout = sys.__stdout__ = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stderr = sys.__stderr__ = open(  # noqa: SIM115
        2, "w", encoding="utf-8", errors="backslashreplace", buffering=1, closefd=False
    )
    sys.argv = [program.partition(".")[0], *args]
    # As in an installed script.
    sys.exit(resolve_name(program)())


def _lead_session() -> None:
    """Make the standard input the terminal of a session of its own."""
    import fcntl  # noqa: PLC0415  (not on Windows)
    import termios  # noqa: PLC0415

    os.setsid()
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
