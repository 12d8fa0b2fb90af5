"""The terminal UI: a client of the protocol, on whatever connection it is given."""

from __future__ import annotations

import asyncio
import signal
import time
import traceback
from contextlib import suppress
from typing import TYPE_CHECKING, Any, ClassVar, Final

from rich.text import Text
from textual.app import App, SystemCommand
from textual.binding import Binding
from textual.worker import WorkerFailed

from clew.tui.desk import Desk
from clew.tui.screens.chat import Chat
from clew.tui.state.typed import dumped, loaded

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from textual.binding import BindingType
    from textual.driver import Driver
    from textual.screen import Screen

    from clew.tui.transports import Connect


#: Seconds that the first picture takes at most.
_FIRST_PICTURE: Final = 0.5


class Terminal(App[None]):
    """
    One person before one conversation at a time.

    ``folder`` keeps what was typed and the theme, for the user alone.
    """

    TITLE = "Clew"
    CSS = "* { scrollbar-size-vertical: 1; }"
    ENABLE_COMMAND_PALETTE = True
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+z", "stop", "Stop the program; fg brings it back", show=False, priority=True)
    ]

    def __init__(
        self,
        connect: Connect,
        *,
        name: str = "main",
        folder: Path,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__()
        self._history, self._theme_file = folder / "typed.jsonl", folder / "theme"
        self._fault_file = folder / "logs" / "terminal.log"
        self.desk = Desk(connect, name, changed=self._changed, refused=self._refused)
        self._chat = Chat(self.desk, loaded(_read(self._history)), self._keep, clock)
        self._begun = False
        #: Whether this is a program of its own, which Ctrl-Z stops.
        self.may_stop = False

    def on_mount(self) -> None:
        wanted = _read(self._theme_file).strip()
        if wanted in self.available_themes:
            self.theme = wanted
        self.theme_changed_signal.subscribe(self, lambda theme: self._themed(theme.name))
        if not self.is_headless:
            self._leave_in_order()
        # After the first picture: nothing that takes time stands before it.
        self.call_after_refresh(self._begin)
        # Another screen, opened by a key that came at once, would swallow that.
        self.set_timer(_FIRST_PICTURE, self._begin)

    async def on_unmount(self) -> None:
        """Leave once the server knows that the person has gone: the event loop ends with us."""
        await self.desk.ended()

    def get_driver_class(self) -> type[Driver]:
        """Return the library's driver, on POSIX with our own reading of what is typed."""
        chosen = super().get_driver_class()
        if chosen.__name__ != "LinuxDriver":
            return chosen
        # Termios: not on Windows.
        from clew.tui.driver import TerminalDriver  # noqa: PLC0415

        return TerminalDriver

    def get_default_screen(self) -> Screen[None]:
        """The conversation is the first thing that is seen."""
        return self._chat

    def _leave_in_order(self) -> None:
        """Ended from outside, or when the terminal has gone, put things back as Ctrl-Q does."""
        loop = asyncio.get_running_loop()
        for name in ("SIGTERM", "SIGHUP"):
            if (number := getattr(signal, name, None)) is not None:
                with suppress(NotImplementedError, RuntimeError):  # Windows
                    loop.add_signal_handler(number, self.exit)

    def _begin(self) -> None:
        if not self._begun:
            self._begun = True
            self.run_worker(self.desk.run(), name="desk", group="desk")

    def action_stop(self) -> None:
        """Stop the process as Ctrl-Z does elsewhere; ``fg`` in the shell continues it."""
        if self.may_stop:
            self.action_suspend_process()

    def _changed(self) -> None:
        self._chat.changed()

    def _refused(self, text: str, reason: str) -> None:
        if self._chat.is_attached:
            self._chat.refused(text, reason)

    def _themed(self, name: str) -> None:
        if name != _read(self._theme_file).strip():
            _append(self._theme_file, name, anew=True)
        if self._chat.is_mounted:
            self._chat.redraw()

    def _keep(self, text: str) -> None:
        _append(self._history, dumped(text) + "\n")

    def _handle_exception(self, error: Exception) -> None:
        """A fault of our own: it is written down, and the person told what to do."""
        if self._exception is not None:
            return  # one that follows from the first
        self._return_code, self._exception = 1, error
        self._exception_event.set()  # pyright: ignore[reportUnknownMemberType]
        cause = error.error if isinstance(error, WorkerFailed) else error
        kept = _append(self._fault_file, "".join(traceback.format_exception(cause)))
        where = f"written to {self._fault_file}" if kept else f"{cause!r}"
        self.panic(
            Text(
                "clew: the screen met a fault of its own and had to close. Nothing that was said "
                f"is lost: start clew again. What went wrong is {where}."
            )
        )

    def get_system_commands(self, screen: Screen[Any]) -> Iterable[SystemCommand]:
        """What Ctrl-P offers beside themes."""
        yield from super().get_system_commands(screen)  # pyright: ignore[reportUnknownMemberType]
        if screen is not self._chat:
            return
        for title, told, action in (
            ("Conversations", "Search, open, start and delete them", "sessions"),
            ("Sessions", "Which session continued which, and why", "lineage"),
            ("Summary", "What a compaction would do; take one back", "compaction"),
            ("Model", "Choose the model of this conversation", "models"),
            ("What waits", "Change messages that wait, or take them back", "queue"),
            ("All keys", "What every key does", "keys"),
        ):
            yield SystemCommand(title, told, getattr(self._chat, f"action_{action}"))


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return ""


def _append(file: Path, text: str, *, anew: bool = False) -> bool:
    """Keep something, and whether it was; where it cannot be kept it is forgotten."""
    try:
        file.parent.mkdir(mode=0o700, exist_ok=True)
        file.touch(mode=0o600)
        with file.open("w" if anew else "a", encoding="utf-8") as stream:
            stream.write(text)
    except OSError:
        return False
    return True
