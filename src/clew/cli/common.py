"""Helpers shared by all commands: global options, JSON output, help examples."""

from __future__ import annotations

import gc
import json
import os
import shlex
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TextIO

import click

from clew.lazy_imports import hide_modules

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping
    from pathlib import Path

    from clew.config import Settings
    from clew.plugin.registry import Features


@dataclass(frozen=True, kw_only=True, slots=True)
class CliContext:
    """The global options, given before the command."""

    home: Path | None
    #: Values of ``--set``, by ``section.key``.
    flags: Mapping[str, str]

    def load_settings(self) -> Settings:
        """
        Load the features and all settings, and print their warnings on stderr.

        :raises SettingsError: if they cannot be used
        """
        settings = self.read_settings()
        for warning in settings.warnings:
            click.echo(f"clew: warning: {warning}", err=True)
        return settings

    def load_features(self) -> Features:
        """Load the features alone: the settings may be wrong."""
        from clew.plugin.loading import load_named_features  # noqa: PLC0415  (as below)

        return load_named_features(home=self.home, flags=self.flags, environ=os.environ)

    def read_settings(self) -> Settings:
        """
        Load the features and all settings.

        :raises SettingsError: if they cannot be used
        """
        from clew.plugin.loading import load_settings_with_features  # noqa: PLC0415  (help and version need no settings)

        return load_settings_with_features(home=self.home, flags=self.flags, environ=os.environ)

    def format_command(self) -> str:
        """Return ``clew`` with these options, for a shell; a secret's value is left out."""
        from clew.config.secret import is_secret_name, redact_password  # noqa: PLC0415  (as above)

        words = ["clew"]
        if self.home is not None:
            words += ["--home", str(self.home.absolute())]
        for name, value in self.flags.items():
            literal = is_secret_name(name.rpartition(".")[2]) and not value.lstrip().startswith("{")
            words += ["--set", f"{name}={'SECRET' if literal else redact_password(value)}"]
        return shlex.join(words)


class FullHelpGroup(click.Group):
    """Click group that lists its commands with their whole first sentences."""

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(
                [
                    (name, command.get_short_help_str(limit=_SHORT_HELP_LIMIT))
                    for name in self.list_commands(ctx)
                    if (command := self.get_command(ctx, name)) is not None
                ]
            )


@contextmanager
def fast_import() -> Generator[None]:
    """
    Speed up large imports: no garbage collection, no modules that are not needed.

    Saves a tenth of the time and some megabytes: structlog and httpx import terminal
    libraries if these are there.
    """
    gc.disable()
    try:
        with hide_modules("rich", "httpx._main"):
            yield
    finally:
        gc.enable()


#: Characters; no first sentence is longer.
_SHORT_HELP_LIMIT: Final = 400

pass_cli_context = click.make_pass_decorator(CliContext)

#: ``as_json`` for every command that prints data.
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
#: ``cursor`` for every command that prints pages.
cursor_option = click.option(
    "--cursor", help="Continue from this cursor, which the previous page printed."
)


def limit_option(default: int) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return ``limit`` for a command that prints pages."""
    return click.option(
        "--limit",
        type=click.IntRange(1, 1000),
        default=default,
        show_default=True,
        help="How many at most.",
    )


def print_json(data: object, to: TextIO | None = None) -> None:
    """Print data as JSON, by default to standard output."""
    click.echo(json.dumps(data, indent=2, ensure_ascii=False), file=to)


def format_examples(*lines: str) -> str:
    """Return the examples at the end of a command's help."""
    return "\n".join(
        ["\b", "Example:" if len(lines) == 1 else "Examples:", *(f"  {line}" for line in lines)]
    )
