"""Command group that imports a command's module when the command is used."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, NamedTuple, cast

import click
from click.shell_completion import CompletionItem

from clew.cli.common import fast_import

if TYPE_CHECKING:
    from collections.abc import Mapping


class LazyCommand(NamedTuple):
    """The location of a command."""

    module: str
    attribute: str
    #: One line for the list of commands.
    help: str


class LazyGroup(click.Group):
    """Lazy command group in the order of its table; a command without its module is hidden."""

    #: Set once, before the group is used.
    entries: Mapping[str, LazyCommand]

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self._list_entries(ctx))

    def _list_entries(self, ctx: click.Context) -> Mapping[str, LazyCommand]:
        own = {name: one for name, one in self.entries.items() if find_spec(one.module)}
        return {**own, **self.find_more_entries(ctx)}

    def find_more_entries(self, ctx: click.Context) -> Mapping[str, LazyCommand]:
        """Return commands that are not in the table."""
        return {}

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        entry = self.entries.get(cmd_name)
        if entry is None or not find_spec(entry.module):
            entry = self.find_more_entries(ctx).get(cmd_name)
        if entry is None:
            return None
        with fast_import():
            module = import_module(entry.module)
        return cast("click.Command", getattr(module, entry.attribute))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] in self.entries:
            return super().resolve_command(ctx, args)
        known = self.list_commands(ctx)
        if args[0] not in known and not args[0].startswith("-") and not ctx.resilient_parsing:
            raise click.NoSuchCommand(args[0], possibilities=[*known, "--help"], ctx=ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(
                [(name, entry.help) for name, entry in self._list_entries(ctx).items()]
            )

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        entries = self._list_entries(ctx).items()
        found = [(name, entry) for name, entry in entries if name.startswith(incomplete)]
        return [
            *(CompletionItem(name, help=entry.help) for name, entry in found),
            # Not ``click.Group``'s own, which imports every command for its help.
            *click.Command.shell_complete(self, ctx, incomplete),
        ]
