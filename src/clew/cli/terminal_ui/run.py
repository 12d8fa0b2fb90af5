"""Start of the terminal UI."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.cli.client_backend import ClientBackend
from clew.config import ensure_home
from clew.tui.app import TerminalApp

if TYPE_CHECKING:
    from clew.config import Settings


def run_tui(settings: Settings, name: str) -> int:
    """Run the terminal UI until the user exits, and return the exit code."""
    ensure_home(settings)
    with ClientBackend(settings, role="tui") as behind:
        app = TerminalApp(behind.connect, name=name, folder=settings.home)
        app.may_stop = True
        app.run()
    return app.return_code or 0
