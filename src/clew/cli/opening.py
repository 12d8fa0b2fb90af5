"""``clew`` without a command: the terminal UI, where it is installed."""

from __future__ import annotations

import os
from importlib.util import find_spec
from typing import TYPE_CHECKING

from clew.distribution import format_install_command
from clew.errors import ClewError

if TYPE_CHECKING:
    from clew.cli.common import Globals


def open_terminal(program: Globals, name: str = "main") -> int:
    """
    Open the terminal UI; the exit code.

    :raises ClewError: if the package that draws it is not installed
    """
    if not is_installed():
        raise ClewError(
            f"the terminal UI needs a package that is not installed: {format_install_command('tui')}, or "
            "talk line by line with clew chat"
        )
    if os.environ.get("TERM") == "dumb":
        raise ClewError(
            "this terminal cannot show a whole screen (TERM is dumb): talk line by line with "
            "clew chat"
        )
    settings = program.settings()
    from clew.cli.terminal_ui.run import run  # noqa: PLC0415  (only where it is installed)

    return run(settings, name)


def is_installed() -> bool:
    """Whether the terminal UI can be opened."""
    return find_spec("textual") is not None
