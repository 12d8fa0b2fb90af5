"""``clew completion``: print a shell completion script."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from clew.cli.common import format_examples


@click.command(
    epilog=format_examples('eval "$(clew completion bash)"', "clew completion fish | source")
)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print the script that completes clew's commands and options in SHELL."""
    complete = get_completion_class(shell)
    if complete is None:
        raise click.BadParameter(f"there is no completion for {shell}")
    click.echo(complete(ctx.find_root().command, {}, "clew", "_CLEW_COMPLETE").source())
