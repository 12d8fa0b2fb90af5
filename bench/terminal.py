"""The terminal UI: how soon it is there, how soon a key is seen, how soon a long talk is open."""

from __future__ import annotations

import asyncio
import os
import pty
import select
import signal
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

from bench.figures import Figure, percentile
from bench.lasting import lengthened
from bench.places import scratch
from bench.streaming import SPEED
from bench.turns import provider
from clew.config.settings import ModelSettings, Settings
from clew.testing import FakeProvider, echo
from clew.tui.app import TerminalApp
from clew.tui.widgets.transcript import Transcript
from tests.integration.api_server import running
from tests.integration.rpc_clients import over_pipe

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Generator

CLEW: Final = str(Path(sys.executable).with_name("clew"))
STARTS, KEYS, OPENINGS = 7, 60, 7
ENTRIES: Final = 5000
#: None of them is in what streams in.
_LETTERS: Final = "αβγδεζηθικλμνξοπρστυφχψω"


async def measure() -> list[Figure]:
    """All of it, each where a person sees it."""
    return [*await asyncio.to_thread(_before_a_terminal), await _openings()]


def _before_a_terminal() -> list[Figure]:
    # In a process of its own: this one is busy reading the screen.
    with scratch() as folder, provider("bench.streaming:script") as url:
        env = {
            "CLEW_HOME": str(folder / "home"),
            "CLEW_MODEL__NAME": "openai-chat:fake-model",
            "CLEW_MODEL__BASE_URL": url,
        }
        starts = [_start(env) for _ in range(STARTS)]
        echoes = _echoes(env)
    return [
        Figure(
            name="clew to its first picture",
            value=percentile(starts, 0.5),
            unit="s",
            target=0.5,
        ),
        Figure(
            name=f"key to echo while {SPEED} tokens/s stream in, median",
            value=percentile(echoes, 0.5) * 1000,
            unit="ms",
            target=30,
        ),
        Figure(name="the same, 95 of 100", value=percentile(echoes, 0.95) * 1000, unit="ms"),
    ]


class _Pty:
    """A program on a terminal of 80 columns."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor, self.printed = descriptor, ""

    def until(self, text: str, patience: float = 30.0) -> float:
        """Return the time of printing from now on, in seconds."""
        begun, seen = time.perf_counter(), len(self.printed)
        while text not in self.printed[seen:]:
            if time.perf_counter() - begun > patience:
                raise TimeoutError(f"never saw {text!r} in {self.printed[-500:]!r}")
            self.drain(0.5)
        return time.perf_counter() - begun

    def drain(self, wait: float) -> None:
        ready, _, _ = select.select([self._descriptor], [], [], wait)
        if ready:
            self.printed += os.read(self._descriptor, 65536).decode(errors="replace")

    def type(self, text: str) -> None:
        os.write(self._descriptor, text.encode())


@contextmanager
def _program(env: dict[str, str]) -> Generator[_Pty]:
    pid, descriptor = pty.fork()
    if pid == 0:
        os.execve(CLEW, [CLEW], {**os.environ, "TERM": "xterm-256color", **env})
    try:
        yield _Pty(descriptor)
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        os.close(descriptor)


def _start(env: dict[str, str]) -> float:
    begun = time.perf_counter()
    with _program(env) as program:
        program.until("a message;")
        return time.perf_counter() - begun


def _echoes(env: dict[str, str]) -> list[float]:
    found: list[float] = []
    with _program(env) as program:
        program.until("a message;")
        program.drain(1.0)
        program.type("go\r")
        program.until("again")
        for number in range(KEYS):
            for _ in range(5):
                program.drain(0.02)
            letter = _LETTERS[number % len(_LETTERS)]
            if number % len(_LETTERS) == 0:
                program.type("\x15")  # an empty line: each letter is new in it
                program.drain(0.2)
            program.type(letter)
            found.append(program.until(letter))
    return found


async def _openings() -> Figure:
    with scratch() as folder, FakeProvider(echo) as asked:
        settings = Settings(
            home=folder,
            model=ModelSettings(name="openai-chat:fake-model", base_url=asked.openai_url),
        )
        async with running(settings) as server:
            for number in range(5):
                await server.say(f"message {number} of **some** length", "long")
            conversation = await server.engine.resolve_name("long")
        lengthened(folder / "clew.db", conversation, few=10, many=ENTRIES)
        async with running(settings) as server:
            app = TerminalApp(over_pipe(server), name="other", folder=folder)
            async with app.run_test(size=(80, 24)) as pilot:
                times = [await _open(app, conversation, pilot.pause) for _ in range(OPENINGS)]
    return Figure(
        name=f"a conversation of {ENTRIES:,} entries opens",
        value=percentile(times, 0.5),
        unit="s",
        target=0.3,
    )


async def _open(app: TerminalApp, conversation: str, pause: Callable[[], Awaitable[None]]) -> float:
    """Seconds until the end of it is on the screen."""
    await app.controller.switch_to_named("other")
    while (there := app.controller.view.conversation) is None or there.id == conversation:  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    await pause()
    begun = time.perf_counter()
    await app.controller.switch_to_named(conversation)
    transcript = app.screen.query_one(Transcript)
    while transcript.virtual_size.height < 2 * transcript.size.height:  # noqa: ASYNC110
        await asyncio.sleep(0.001)
    await pause()
    return time.perf_counter() - begun
