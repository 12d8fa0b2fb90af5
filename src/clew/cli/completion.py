"""``clew completion``: print a shell completion script, or install it."""

from __future__ import annotations

import os

import click

from clew.cli.common import format_examples
from clew.cli.shell_completion import SHELLS, plan_completion, render_script


@click.command(
    epilog=format_examples('eval "$(clew completion bash)"', "clew completion zsh --install")
)
@click.option("--install", is_flag=True, help="Write it to where SHELL loads it from.")
@click.argument("shell", type=click.Choice(SHELLS))
def completion(shell: str, *, install: bool) -> None:
    """
    Print the script that completes clew's commands and options in SHELL.

    With --install it is written for this person; repeated, that changes nothing.
    """
    if not install:
        click.echo(render_script(shell), nl=False)
        return
    plan = plan_completion(shell, os.environ)
    state = "unchanged" if plan.is_installed else "written"
    plan.install()
    click.echo(f"{state}: {plan.file}; new shells complete clew")
