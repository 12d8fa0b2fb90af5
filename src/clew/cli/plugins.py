"""``clew plugins``: what plugins add, and whether their capabilities keep to the rules."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import click

from clew.cli.common import CliContext, FullHelpGroup, format_examples, pass_cli_context
from clew.errors import NotFound
from clew.plugin.capability_findings import check_plugin

if TYPE_CHECKING:
    from clew.core.doctor_finding import DoctorFinding


@click.group(cls=FullHelpGroup, epilog=format_examples("clew plugins check NAME"))
def plugins() -> None:
    """Check the plugins that the settings name."""


@plugins.command("check", epilog=format_examples("clew plugins check weather"))
@click.argument("name")
@pass_cli_context
@click.pass_context
def check_command(ctx: click.Context, program: CliContext, *, name: str) -> None:
    """
    Run the capabilities of a plugin and tell whether a conversation with them can be made again.

    They run with a model of the check: nothing is sent or stored. Exits 1 if one adds messages,
    changes what is sent, or keeps state.
    """
    features = program.load_features()
    features.raise_problems()
    if name not in features.plugins:
        raise NotFound("enabled plugin", name)
    found = asyncio.run(check_plugin(features, name))
    for finding in found:
        _print_finding(finding)
    ctx.exit(1 if any(finding.level.value == "fail" for finding in found) else 0)


def _print_finding(finding: DoctorFinding) -> None:
    click.echo(f"{finding.level.value:<5} {finding.what}: {finding.detail}")
    if finding.fix:
        click.echo(f"      {finding.fix}")
