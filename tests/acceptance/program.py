"""``clew`` as its users start it: real processes, with pipes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TypeAlias

from tests import forking
from tests.sent.watching import program as asking
from tests.waiting import block_until

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping, Sequence

    from clew.testing import FakeProvider

CLEW = str(Path(sys.executable).with_name("clew"))
#: A program that runs.
Process: TypeAlias = subprocess.Popen[str] | forking.Forked
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
        self, *args: str, errors: IO[str] | None = None, piped: bool = False, fresh: bool = False
    ) -> Generator[Process]:
        """
        A command that runs in the background, with pipes; killed at the end of the block.

        Only if it is ``piped`` it has a standard input.

        ``errors`` takes its standard error, where nobody reads the pipe before it is full.

        It is ``fresh``, from a new interpreter, where the start itself is what matters.
        """
        start = self._fresh if fresh else partial(forking.piped, environ=self.environ)
        with (
            start(args, stdin=piped, errors=errors) as process,
            asking(self.home, self.environ),
        ):
            try:
                yield process
            finally:
                process.kill()

    def _fresh(
        self, args: Sequence[str], *, stdin: bool, errors: IO[str] | None
    ) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [CLEW, *args],
            stdin=subprocess.PIPE if stdin else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors or subprocess.PIPE,
            env=self.environ,
            encoding="utf-8",
        )

    @contextmanager
    def serving(
        self, *, errors: IO[str] | None = None, fresh: bool = False
    ) -> Generator[tuple[str, Process]]:
        """``clew serve`` on a free port, ready: its base URL and process."""
        own = self.with_env({"CLEW_API__PORT": "0"})
        with own.started("serve", errors=errors, fresh=fresh) as process:
            assert process.stdout is not None
            word, _, url = process.stdout.readline().strip().partition(" ")
            if word != "ready":
                process.kill()
                raise AssertionError(process.communicate())
            yield url, process


@dataclass(frozen=True, kw_only=True)
class Ran:
    """Result of a command."""

    code: int
    out: str
    err: str
