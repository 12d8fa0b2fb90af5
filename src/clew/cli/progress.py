"""What is being done, while it takes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from clew.cli.terminal import Output


class Progress:
    """A line on a terminal that says what is being done, until something is printed."""

    def __init__(self, notes: Output) -> None:
        self._notes = notes

    def say(self, what: str) -> None:
        if self._notes.is_terminal:
            click.echo(f"\r\x1b[K{what} …", err=True, nl=False)

    def clear(self) -> None:
        if self._notes.is_terminal:
            click.echo("\r\x1b[K", err=True, nl=False)
