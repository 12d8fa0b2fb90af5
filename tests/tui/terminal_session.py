"""A person at a real terminal: types bytes, and reads the cells of the emulator."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final, cast

from clew.tui.app import TerminalApp
from clew.tui.screens.approval import ApprovalScreen
from clew.tui.state.typing_guard import MIN_PAUSE
from clew.tui.text.palette import Palette
from clew.tui.text.renderer import BlockRenderer
from clew.tui.widgets.activity import ActivityBar
from clew.tui.widgets.transcript import Transcript
from clew.tui.widgets.transcript_layout import TranscriptLayout
from tests.integration.rpc_clients import over_pipe
from tests.tui.screen import ManualClock
from tests.tui.terminal_emulator import PseudoTerminal, drawn_afresh, driver_on, signals_kept
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Collection, Sequence
    from pathlib import Path

    from textual.driver import Driver
    from textual.drivers.linux_driver import LinuxDriver

    from clew.tui.transports import Connect
    from tests.integration.api_server import Server
from tests.tui.terminal_emulator import Cells

#: The bytes that a terminal sends for keys that are not letters.
KEYS: Final = {
    "enter": "\r",
    # As the keyboard protocol has it: a lone escape byte could begin a sequence.
    "escape": "\x1b[27u",
    "tab": "\t",
    "backspace": "\x7f",
    "up": "\x1b[A",
    "down": "\x1b[B",
    "right": "\x1b[C",
    "left": "\x1b[D",
    "home": "\x1b[H",
    "end": "\x1b[F",
    "pageup": "\x1b[5~",
    "pagedown": "\x1b[6~",
    "f1": "\x1bOP",
    "f2": "\x1bOQ",
    "f3": "\x1bOR",
    "f4": "\x1bOS",
    "f5": "\x1b[15~",
    "f6": "\x1b[17~",
    "f7": "\x1b[18~",
    **{f"ctrl+{letter}": chr(ord(letter) & 31) for letter in "abcdefghijklmnopqrstuvwxyz"},
}


class TerminalSession:
    """The program on a terminal, and the person before it."""

    def __init__(self, app: TerminalApp, terminal: PseudoTerminal, clock: ManualClock) -> None:
        self.app, self.terminal, self.clock = app, terminal, clock

    @property
    def rows(self) -> list[str]:
        return self.terminal.emulator.rows

    @property
    def text(self) -> str:
        return "\n".join(self.rows)

    async def see(self, *texts: str) -> None:
        """Wait until all of it stands in the cells."""
        try:
            await wait_until(lambda: self._shows(texts))
        except AssertionError:
            raise AssertionError(f"never saw {texts} but:\n{self.text}") from None

    def _shows(self, texts: Sequence[str]) -> bool:
        shown = self.text
        return all(text in shown for text in texts)

    async def gone(self, text: str) -> None:
        """Wait until it does not stand there any more."""
        try:
            await wait_until(lambda: text not in self.text)
        except AssertionError:
            raise AssertionError(f"still saw {text!r}:\n{self.text}") from None

    def press(self, *keys: str) -> None:
        """Type keys by their names; a name that is none is typed letter by letter."""
        self.terminal.send("".join(KEYS.get(key, key) for key in keys))

    def say(self, text: str) -> None:
        self.press(text, "enter")

    async def decide(self, letter: str) -> str:
        """Answer an open question, as who has read it does; return the id of its marked call."""
        screen = self.app.screen
        if letter != "n" and isinstance(screen, ApprovalScreen):
            await wait_until(lambda: not screen.blocking_hint(letter), "all of it to be seen")
        shown = screen.current_call.id if isinstance(screen, ApprovalScreen) else ""
        self.clock.now += MIN_PAUSE
        self.press(letter, "enter")
        return shown

    def paste(self, text: str) -> None:
        self.terminal.send(f"\x1b[200~{text}\x1b[201~")

    async def ended(self) -> None:
        """Wait until the program has ended by itself."""
        await wait_until(lambda: not self.app.is_running, "the end")

    async def resize(self, columns: int, lines: int) -> None:
        self.terminal.resize(columns, lines)
        await wait_until(lambda: self.app.size == (columns, lines), "the new size")

    async def drained(self) -> None:
        """Wait until the terminal has got everything that the program has written."""
        mark = self.terminal.mark(cast("Driver", self.app._driver))  # pyright: ignore[reportPrivateUsage]
        await wait_until(lambda: self.terminal.emulator.title == mark, "the mark", pause=0.002)

    async def same(self) -> None:
        """
        Assert that the screen shows what it has to.

        Its cells, with colours and weights, are those of everything drawn from nothing; and the
        conversation on it is that of the view, laid out anew.
        """
        differs = ""
        for _ in range(200):
            await self.drained()
            differs = self._difference()
            if not differs:
                return
            await asyncio.sleep(0.02)
        raise AssertionError(differs)

    def _difference(self) -> str:
        with self.app._context():  # pyright: ignore[reportPrivateUsage]
            wanted = drawn_afresh(self.app)
        # It counts seconds, and so is another one each time.
        counting = {
            y
            for screen in self.app.screen_stack
            for one in screen.query(ActivityBar)
            for y in one.region.line_range
        }
        differs = _first_difference(self.terminal.emulator.cells, wanted, but=counting)
        # A layout from nothing costs most: it is made of a screen that is drawn to its end.
        with self.app._context():  # pyright: ignore[reportPrivateUsage]
            return differs or self._transcript_difference()

    def _transcript_difference(self) -> str:
        """Compare the rows of the conversation with a layout that nothing has happened to."""
        if len(self.app.screen_stack) > 1:
            return ""
        transcript = self.app.screen.query_one(Transcript)
        region = transcript.scrollable_content_region
        wanted = transcript_rows(self.app, transcript)
        cells = self.terminal.emulator.cells[region.y : region.bottom]
        shown = ["".join(c.text for c in row[region.x : region.right]).rstrip() for row in cells]
        # If the screen is too low, the rest is below it.
        pairs = enumerate(zip(shown, wanted, strict=False), region.y)
        wrong = [f"row {y}: {is_!r}, not {should!r}" for y, (is_, should) in pairs if is_ != should]
        return "\n".join([*wrong, self.text]) if wrong else ""


def transcript_rows(app: TerminalApp, transcript: Transcript) -> list[str]:
    """The rows that the view asks for where the conversation is scrolled to."""
    used = transcript._layout  # pyright: ignore[reportPrivateUsage]
    height = transcript.content_size.height
    if used is None:
        return [""] * height
    palette = Palette.from_theme(app.theme_variables, dark=app.current_theme.dark)
    fresh = TranscriptLayout(BlockRenderer(used.painter.width, palette))
    fresh._toggled = set(used._toggled)  # pyright: ignore[reportPrivateUsage]
    view = app.controller.view
    fresh.update_blocks(view.blocks, view.live)
    while fresh.height < used.height and not fresh.is_complete:
        fresh.render_earlier()
    lines = [
        line
        for piece in fresh.pieces
        for line in ([""] * piece.gap + ["".join(s.text for s in each) for each in piece.lines])
    ]
    # From the end: what stands far back may not be laid out.
    top = round(transcript.scroll_y) - used.height + len(lines)
    shown = [*lines[top : top + height], *[""] * height][:height]
    signs = [row[:2] for row in _signs(transcript, height)]
    return [f"{sign}{row}".rstrip() for sign, row in zip(signs, shown, strict=True)]


def _signs(transcript: Transcript, height: int) -> list[str]:
    """Return the text at the left of each row."""
    return [transcript.render_line(y).text[:2] for y in range(height)]


def _first_difference(shown: Cells, wanted: Cells, *, but: Collection[int] = ()) -> str:
    sizes = [(len(cells), len(cells[0])) for cells in (shown, wanted)]
    if sizes[0] != sizes[1]:
        return f"the screen has {sizes[0]}, not {sizes[1]} rows and columns"
    for y, (row, should) in enumerate(zip(shown, wanted, strict=True)):
        for x, (cell, other) in enumerate(zip(row, should, strict=True)):
            if cell != other and y not in but:
                texts = ["".join(one.text for one in each) for each in (row, should)]
                return (
                    f"row {y}, column {x}: {cell}, not {other}\n{texts[0]!r}\n{texts[1]!r}\n"
                    + "\n".join("".join(one.text for one in each) for each in shown)
                )
    return ""


@asynccontextmanager
async def at_terminal(
    connect: Connect,
    folder: Path,
    *,
    name: str = "talk",
    size: tuple[int, int] = (80, 24),
) -> AsyncGenerator[TerminalSession]:
    """Person at a terminal, once the conversation is open."""
    with signals_kept(), PseudoTerminal(*size) as terminal:
        clock = ManualClock()
        app = TerminalApp(connect, name=name, folder=folder, clock=clock)
        app.driver_class = driver_on(terminal, cast("type[LinuxDriver]", app.driver_class))
        running = asyncio.create_task(app.run_async(), name="terminal UI")
        try:
            session = TerminalSession(app, terminal, clock)
            await wait_until(
                lambda: running.done() or app.controller.view.conversation is not None,
                "the conversation",
            )
            yield session
        finally:
            app.exit()
            await asyncio.wait_for(running, 120)


@asynccontextmanager
async def at_server(
    server: Server, folder: Path, *, name: str = "talk", size: tuple[int, int] = (80, 24)
) -> AsyncGenerator[TerminalSession]:
    async with at_terminal(over_pipe(server), folder, name=name, size=size) as session:
        yield session
