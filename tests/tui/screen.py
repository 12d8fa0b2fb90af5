"""The terminal UI before a real engine in the test's own loop."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from clew.tui.app import TerminalApp
from clew.tui.state.typing_guard import MIN_PAUSE
from tests.integration.rpc_clients import over_pipe

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence
    from pathlib import Path

    from textual.pilot import Pilot

    from clew.tui.transports import Connect
    from tests.integration.api_server import Server


class ManualClock:
    """A clock that goes on when the test says so."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Seen:
    """A person before the screen."""

    def __init__(
        self, app: TerminalApp, pilot: Pilot[None], clock: ManualClock | None = None
    ) -> None:
        self.app, self.pilot = app, pilot
        self.clock = clock or ManualClock()

    @property
    def text(self) -> str:
        """Return the text on the screen."""
        lines = self.app.screen._compositor.render_strips()  # pyright: ignore[reportPrivateUsage]
        return "\n".join("".join(segment.text for segment in line).rstrip() for line in lines)

    async def see(self, *texts: str) -> None:
        """Wait until all of it is on the screen."""
        try:
            async with asyncio.timeout(120):
                while not self._shows(texts):
                    await self.pilot.pause(0.02)
        except TimeoutError:
            raise AssertionError(f"never saw {texts} but:\n{self.text}") from None

    def _shows(self, texts: Sequence[str]) -> bool:
        # Each look draws the whole screen.
        shown = self.text
        return all(text in shown for text in texts)

    async def gone(self, text: str) -> None:
        """Wait until it is not on the screen any more."""
        try:
            async with asyncio.timeout(120):
                while text in self.text:
                    await self.pilot.pause(0.02)
        except TimeoutError:
            raise AssertionError(f"still saw {text!r}:\n{self.text}") from None

    async def type(self, text: str) -> None:
        """Type as a person does, key by key."""
        names = {" ": "space", "/": "slash", "@": "at", ".": "full_stop", "-": "minus"}
        await self.pilot.press(*(names.get(each, each) for each in text))

    async def decide(self, letter: str) -> None:
        """Answer an open question, as who has read it does."""
        self.clock.now += MIN_PAUSE
        await self.pilot.press(letter, "enter")

    async def say(self, text: str) -> None:
        await self.type(text)
        await self.pilot.press("enter")


@asynccontextmanager
async def before(
    connect: Connect, folder: Path, *, name: str = "talk", size: tuple[int, int] = (80, 24)
) -> AsyncGenerator[Seen]:
    """Person at the screen, once the conversation is open."""
    clock = ManualClock()
    app = TerminalApp(connect, name=name, folder=folder, clock=clock)
    async with app.run_test(size=size) as pilot:
        seen = Seen(app, pilot, clock)
        await seen.see("Type a message")
        yield seen


@asynccontextmanager
async def at(
    server: Server, folder: Path, *, name: str = "talk", size: tuple[int, int] = (80, 24)
) -> AsyncGenerator[Seen]:
    async with before(over_pipe(server), folder, name=name, size=size) as seen:
        yield seen
