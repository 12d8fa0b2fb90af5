"""``clew`` as its users start it: real processes, with pipes or on a terminal."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Self

from tests import forking
from tests.sent.watching import program as asking
from tests.waiting import block_until

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping
    from multiprocessing.process import BaseProcess

    from clew.testing import FakeProvider

CLEW = str(Path(sys.executable).with_name("clew"))
#: Seconds after which a test gives up waiting.
PATIENCE = 120.0


def until(ready: Callable[[], object]) -> None:
    """Wait until something is so."""
    block_until(ready, seconds=PATIENCE, pause=0.02)


@dataclass(frozen=True)
class Clew:
    """The program with its home; every call is a process of its own."""

    home: Path
    #: Beside what the machine's environment has.
    env: dict[str, str] = field(default_factory=dict[str, str])

    @property
    def environ(self) -> dict[str, str]:
        ours = ("CLEW_", "OPENAI_", "ANTHROPIC_", "NO_COLOR", "COV_")
        kept = {name: text for name, text in os.environ.items() if not name.startswith(ours)}
        return {**kept, "CLEW_HOME": str(self.home), **self.env}

    def asking(self, provider: FakeProvider) -> Clew:
        """The same, with the fake provider as its model."""
        model = {"MODEL__NAME": "openai-chat:fake-model", "MODEL__BASE_URL": provider.openai_url}
        return self.with_env({f"CLEW_{name}": value for name, value in model.items()})

    def with_env(self, env: Mapping[str, str]) -> Clew:
        return Clew(self.home, {**self.env, **env})

    def run(self, *args: str, text: str | None = None) -> Ran:
        """Run a command to its end, with ``text`` piped in."""
        with asking(self.home, self.environ):
            done = forking.run(args, environ=self.environ, text=text or "", within=PATIENCE)
        return Ran(code=done.returncode, out=done.stdout, err=done.stderr)

    def ok(self, *args: str, text: str | None = None) -> str:
        """The output of a command that succeeds."""
        ran = self.run(*args, text=text)
        assert ran.code == 0, ran
        return ran.out

    def data(self, *args: str) -> Any:
        """The JSON that a command prints."""
        return json.loads(self.ok(*args, "--json"))

    def said(self, name: str = "main") -> list[tuple[str, str]]:
        """Return the speakers and texts of a conversation; its numbers have no gap."""
        entries = self.data("sessions", "show", name, "--cursor", "0", "--limit", "1000")["items"]
        assert [entry["seq"] for entry in entries] == list(range(1, len(entries) + 1))
        return [(entry["role"] or entry["kind"], entry["text"]) for entry in entries]

    @contextmanager
    def started(
        self, *args: str, errors: IO[str] | None = None, piped: bool = False
    ) -> Generator[subprocess.Popen[str]]:
        """
        A command that runs in the background, with pipes; killed at the end of the block.

        Only if it is ``piped`` it has a standard input.

        ``errors`` takes its standard error, where nobody reads the pipe before it is full.
        """
        process = subprocess.Popen(
            [CLEW, *args],
            stdin=subprocess.PIPE if piped else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors or subprocess.PIPE,
            env=self.environ,
            encoding="utf-8",
        )
        with process, asking(self.home, self.environ):
            try:
                yield process
            finally:
                process.kill()

    @contextmanager
    def serving(
        self, *, errors: IO[str] | None = None
    ) -> Generator[tuple[str, subprocess.Popen[str]]]:
        """``clew serve`` on a free port, ready: its base URL and process."""
        with self.with_env({"CLEW_API__PORT": "0"}).started("serve", errors=errors) as process:
            assert process.stdout is not None
            word, _, url = process.stdout.readline().strip().partition(" ")
            if word != "ready":
                process.kill()
                raise AssertionError(process.communicate())
            yield url, process

    @contextmanager
    def serving_forked(self) -> Generator[tuple[str, BaseProcess]]:
        """``clew serve`` as ``serving``, forked from a process that has imported everything."""
        environ = {**self.environ, "CLEW_API__PORT": "0"}
        with (
            forking.started(["serve"], environ=environ) as (process, output),
            asking(self.home, self.environ),
        ):
            word, _, url = output.readline().strip().partition(" ")
            assert word == "ready", word
            yield url, process


@dataclass(frozen=True, kw_only=True)
class Ran:
    """Result of a command."""

    code: int
    out: str
    err: str


class Terminal:
    """A command on a terminal of its own, and a person who types."""

    def __init__(self, clew: Clew, *args: str) -> None:
        self._argv = [CLEW, *args]
        self._environ = {**clew.environ, "TERM": clew.env.get("TERM", "xterm")}
        self._asking = asking(clew.home, clew.environ)
        #: Everything that was printed.
        self.screen = ""
        self._seen = 0

    def __enter__(self) -> Self:
        import pty  # noqa: PLC0415  (not on Windows)

        self._asking.__enter__()
        self.pid, self._descriptor = pty.fork()
        if self.pid == 0:
            os.execve(self._argv[0], self._argv, self._environ)
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._descriptor)
        self._asking.__exit__(None, None, None)
        if self.pid:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)

    def see(self, text: str) -> str:
        """Wait until ``text`` is printed after what was seen before; what came until then."""
        until = time.monotonic() + PATIENCE
        while (at := self.screen.find(text, self._seen)) < 0:
            assert self._read(until), (
                f"never saw {text!r} after:\n{self.screen[self._seen :][-500:]}"
            )
        found = self.screen[self._seen : at]
        self._seen = at + len(text)
        return found

    def _read(self, until: float) -> bool:
        ready, _, _ = select.select([self._descriptor], [], [], max(0, until - time.monotonic()))
        try:
            data = os.read(self._descriptor, 65536) if ready else b""
        except OSError:  # the program has ended
            data = b""
        self.screen += data.decode(errors="replace")
        return bool(data)

    def type(self, text: str) -> None:
        os.write(self._descriptor, text.encode())

    def press(self, key: str) -> None:
        """
        Press a control key at the prompt.

        readline misses a signal that comes between its prompt and its wait for keys, so a person's
        pace is kept.
        """
        time.sleep(0.3)
        self.type(key)

    def stopped(self) -> None:
        """Wait until the program is stopped as Ctrl-Z stops one."""
        until = time.monotonic() + PATIENCE
        while not os.WIFSTOPPED(os.waitpid(self.pid, os.WUNTRACED | os.WNOHANG)[1]):
            assert time.monotonic() < until, f"it goes on: {self.screen[self._seen :][-500:]!r}"
            self._read(time.monotonic() + 0.05)

    def kill(self) -> None:
        """``kill -9``."""
        os.kill(self.pid, signal.SIGKILL)
        self.ended()

    def ended(self) -> int:
        """Wait for the end; the exit code, negative for a signal."""
        until = time.monotonic() + PATIENCE
        while self._read(until):
            pass
        assert time.monotonic() < until, f"it goes on: {self.screen[self._seen :][-500:]!r}"
        _, status = os.waitpid(self.pid, 0)
        self.pid = 0
        return os.waitstatus_to_exitcode(status)


CTRL_C, CTRL_D = "\x03", "\x04"
