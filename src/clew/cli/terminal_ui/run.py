"""Opening the terminal UI."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.cli.terminal_ui.engine import Behind
from clew.config import ensure_home
from clew.tui.app import Terminal

if TYPE_CHECKING:
    from clew.config import Settings


def run(settings: Settings, name: str) -> int:
    """Talk on the whole screen until the person leaves; the exit code."""
    ensure_home(settings)
    with Behind(settings) as behind:
        app = Terminal(behind.connect, name=name, folder=settings.home)
        app.may_stop = True
        app.run()
    return app.return_code or 0
