"""``clew`` without a command: open the terminal UI, if it is installed."""

from __future__ import annotations

import os
from importlib.util import find_spec
from typing import TYPE_CHECKING

from clew.distribution import format_install_command
from clew.errors import ClewError

if TYPE_CHECKING:
    from clew.cli.common import CliContext


def open_tui(program: CliContext, name: str = "main") -> int:
    """
    Open the terminal UI, and return the exit code.

    :raises ClewError: if its package is not installed
    """
    if not is_tui_installed():
        raise ClewError(
            "the terminal UI needs a package that is not installed: "
            f"{format_install_command('tui')}, or "
            "talk line by line with clew chat"
        )
    if os.environ.get("TERM") == "dumb":
        raise ClewError(
            "this terminal cannot show a whole screen (TERM is dumb): talk line by line with "
            "clew chat"
        )
    settings = program.load_settings()
    from clew.cli.terminal_ui.run import run_tui  # noqa: PLC0415  (only where it is installed)

    return run_tui(settings, name)


def is_tui_installed() -> bool:
    """Return whether the terminal UI can be opened."""
    return find_spec("textual") is not None
