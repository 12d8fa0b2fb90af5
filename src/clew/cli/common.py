"""What the commands share: the program's own options, JSON, examples."""

from __future__ import annotations

import gc
import json
import os
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TextIO

import click

from clew.imports import hide_modules

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping
    from pathlib import Path

    from clew.config import Settings


@dataclass(frozen=True, kw_only=True, slots=True)
class Globals:
    """What stands before the command."""

    home: Path | None
    #: What ``--set`` gave, by ``section.key``.
    flags: Mapping[str, str]

    def settings(self) -> Settings:
        """
        Read all settings; what is not as it should be is said on stderr.

        :raises SettingsError: if they cannot be used
        """
        from clew.config import load_settings  # noqa: PLC0415  (help and version need no settings)

        settings = load_settings(home=self.home, flags=self.flags, environ=os.environ)
        for warning in settings.warnings:
            click.echo(f"clew: warning: {warning}", err=True)
        return settings


class WholeSentences(click.Group):
    """A group whose list of commands breaks no sentence off."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(
                [
                    (name, command.get_short_help_str(limit=_SENTENCE))
                    for name in self.list_commands(ctx)
                    if (command := self.get_command(ctx, name)) is not None
                ]
            )


@contextmanager
def undisturbed() -> Generator[None]:
    """
    Import much: without collecting garbage, of which there is none, and without what is not used.

    A tenth of the time, and some megabytes: structlog and httpx look for what draws on terminals.
    """
    gc.disable()
    try:
        with hide_modules("rich", "httpx._main"):
            yield
    finally:
        gc.enable()


#: Characters; longer first sentences of a help do not exist.
_SENTENCE: Final = 400

pass_globals = click.make_pass_decorator(Globals)

#: ``as_json`` for every command that prints data.
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


def print_json(data: object, to: TextIO | None = None) -> None:
    """Print data for programs, to standard output if not elsewhere."""
    click.echo(json.dumps(data, indent=2, ensure_ascii=False), file=to)


def example(*lines: str) -> str:
    """The end of a command's help."""
    return "\n".join(
        ["\b", "Example:" if len(lines) == 1 else "Examples:", *(f"  {line}" for line in lines)]
    )
