"""Terminal UI application, independent of the transport."""

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

from clew.tui.controller import ConversationController
from clew.tui.screens.chat import ChatScreen
from clew.tui.state.input_history import parse_history, serialize_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from textual.binding import BindingType
    from textual.driver import Driver
    from textual.screen import Screen

    from clew.tui.transports import Connect


#: Longest time in seconds until the first paint.
_MAX_FIRST_PAINT: Final = 0.5


class TerminalApp(App[None]):
    """
    Application that shows one conversation at a time.

    ``folder`` stores the input history and the theme, readable by the user alone.
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
        self.controller = ConversationController(
            connect, name, changed=self._redraw_chat, refused=self._show_refusal
        )
        self._chat = ChatScreen(
            self.controller, parse_history(_read_file(self._history)), self._save_input, clock
        )
        self._is_started = False
        #: True if this process owns the terminal, so that Ctrl-Z suspends it.
        self.may_stop = False

    def on_mount(self) -> None:
        wanted = _read_file(self._theme_file).strip()
        if wanted in self.available_themes:
            self.theme = wanted
        self.theme_changed_signal.subscribe(self, lambda theme: self._save_theme(theme.name))
        if not self.is_headless:
            self._handle_exit_signals()
        # After the first paint: nothing slow may delay it.
        self.call_after_refresh(self._start_controller)
        # A screen opened by an early key would swallow that callback.
        self.set_timer(_MAX_FIRST_PAINT, self._start_controller)

    async def on_unmount(self) -> None:
        """Wait until the server knows that the client left: the event loop ends after this."""
        await self.controller.wait_closed()

    def get_driver_class(self) -> type[Driver]:
        """Return the library's driver, on POSIX with our own input parser."""
        chosen = super().get_driver_class()
        if chosen.__name__ != "LinuxDriver":
            return chosen
        # Termios: not on Windows.
        from clew.tui.driver import TerminalDriver  # noqa: PLC0415

        return TerminalDriver

    def get_default_screen(self) -> Screen[None]:
        """Return the conversation screen."""
        return self._chat

    def _handle_exit_signals(self) -> None:
        """Exit cleanly on SIGTERM and SIGHUP, so that the terminal is restored."""
        loop = asyncio.get_running_loop()
        for name in ("SIGTERM", "SIGHUP"):
            if (number := getattr(signal, name, None)) is not None:
                with suppress(NotImplementedError, RuntimeError):  # Windows
                    loop.add_signal_handler(number, self.exit)

    def _start_controller(self) -> None:
        if not self._is_started:
            self._is_started = True
            self.run_worker(self.controller.run(), name="desk", group="desk")

    def action_stop(self) -> None:
        """Suspend the process as Ctrl-Z does elsewhere; ``fg`` in the shell continues it."""
        if self.may_stop:
            self.action_suspend_process()

    def _redraw_chat(self) -> None:
        self._chat.schedule_draw()

    def _show_refusal(self, text: str, reason: str) -> None:
        if self._chat.is_attached:
            self._chat.restore_refused(text, reason)

    def _save_theme(self, name: str) -> None:
        if name != _read_file(self._theme_file).strip():
            _append_file(self._theme_file, name, anew=True)
        if self._chat.is_mounted:
            self._chat.redraw_transcript()

    def _save_input(self, text: str) -> None:
        _append_file(self._history, serialize_text(text) + "\n")

    def _handle_exception(self, error: Exception) -> None:
        """Log an internal error and tell the user what to do."""
        if self._exception is not None:
            return  # a consequence of the first error
        self._return_code, self._exception = 1, error
        self._exception_event.set()  # pyright: ignore[reportUnknownMemberType]
        cause = error.error if isinstance(error, WorkerFailed) else error
        kept = _append_file(self._fault_file, "".join(traceback.format_exception(cause)))
        where = f"written to {self._fault_file}" if kept else f"{cause!r}"
        self.panic(
            Text(
                "clew: the terminal UI failed and had to close. No message is lost: start clew "
                f"again. The details are {where}."
            )
        )

    def get_system_commands(self, screen: Screen[Any]) -> Iterable[SystemCommand]:
        """Yield the entries of the command palette (Ctrl-P) beside the themes."""
        yield from super().get_system_commands(screen)  # pyright: ignore[reportUnknownMemberType]
        if screen is not self._chat:
            return
        for title, told, action in (
            ("Conversations", "Search, open, start and delete them", "sessions"),
            ("Sessions", "Which session continued which, and why", "lineage"),
            ("Summary", "What a compaction would do; take one back", "compaction"),
            ("Model", "Choose the model of this conversation", "models"),
            ("Waiting messages", "Change or cancel messages that are waiting", "queue"),
            ("All keys", "What every key does", "keys"),
        ):
            yield SystemCommand(title, told, getattr(self._chat, f"action_{action}"))


def _read_file(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return ""


def _append_file(file: Path, text: str, *, anew: bool = False) -> bool:
    """Write text to a file; return whether it succeeded. Failures are ignored."""
    try:
        file.parent.mkdir(mode=0o700, exist_ok=True)
        file.touch(mode=0o600)
        with file.open("w" if anew else "a", encoding="utf-8") as stream:
            stream.write(text)
    except OSError:
        return False
    return True
