"""Whoever is asked, and what they are told meanwhile."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clew.cli.terminal import Output


class _Number(click.IntRange):
    name = "number"


@dataclass(frozen=True, slots=True)
class Person:
    """Asks on the terminal; where nobody sits before one, takes what stands first."""

    notes: Output
    #: Whether there is somebody to ask.
    is_there: bool

    def tell(self, text: str) -> None:
        self.notes.dim(text)

    def choose(self, question: str, options: Sequence[str]) -> int:
        """The index of an option; the first one without a person, or where there is no choice."""
        if not self.is_there or len(options) == 1:
            return 0
        self.notes.write(f"{question}\n")
        for number, option in enumerate(options, start=1):
            self.notes.write(f"  {number}  {option}\n")
        chosen = click.prompt("Number", type=_Number(1, len(options)), default=1, err=True)
        return int(chosen) - 1

    def ask(self, question: str, *, default: str | None = None, secret: bool = False) -> str:
        """A text."""
        answer: str = click.prompt(question, default=default, hide_input=secret, err=True)
        return answer.strip()

    def agrees(self, question: str) -> bool:
        """Yes or no; no without a person."""
        return self.is_there and click.confirm(question, default=False, err=True)
