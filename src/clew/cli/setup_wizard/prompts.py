"""Prompts to the user, and notes between them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from clew.record import Record

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clew.cli.output import Output


class _Number(click.IntRange):
    name = "number"


class Prompter(Record, kw_only=False):
    """Prompts on the terminal; without a user, the first option is taken."""

    notes: Output
    #: True if a user can be prompted.
    is_interactive: bool

    def print_note(self, text: str) -> None:
        self.notes.print_dim(text)

    def choose_option(self, question: str, options: Sequence[str]) -> int:
        """Return the index of an option; 0 without a user, or if there is only one."""
        if not self.is_interactive or len(options) == 1:
            return 0
        self.notes.write(f"{question}\n")
        for number, option in enumerate(options, start=1):
            self.notes.write(f"  {number}  {option}\n")
        chosen = click.prompt("Number", type=_Number(1, len(options)), default=1, err=True)
        return int(chosen) - 1

    def ask_text(self, question: str, *, default: str | None = None, secret: bool = False) -> str:
        """Prompt for a text."""
        answer: str = click.prompt(question, default=default, hide_input=secret, err=True)
        return answer.strip()

    def confirm(self, question: str) -> bool:
        """Ask for a yes or no; no without a user."""
        return self.is_interactive and click.confirm(question, default=False, err=True)
