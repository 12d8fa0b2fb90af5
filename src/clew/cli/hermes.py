"""``clew hermes``: the plugins for Hermes Agent, and the commands that they bring."""

from __future__ import annotations

import click

from clew.cli.common import CliContext, format_examples, pass_cli_context


@click.command(
    epilog=format_examples("clew hermes", "clew hermes apify-setup --token TOKEN"),
    context_settings={"ignore_unknown_options": True},
)
@click.argument("name", required=False)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
@pass_cli_context
@click.pass_context
def hermes(
    ctx: click.Context, program: CliContext, *, name: str | None, arguments: tuple[str, ...]
) -> None:
    """
    Run the command NAME of a Hermes plugin with ARGUMENTS; without a name, list the plugins.

    Which plugins are loaded is the setting `hermes.enabled_plugins`.
    """
    from clew.features.hermes import terminal  # noqa: PLC0415  (help needs none)
    from clew.features.hermes.findings import describe_parts  # noqa: PLC0415  (as above)

    plugins = terminal.load_plugins(program.load_settings())
    if name is not None:
        ctx.exit(terminal.run_command(terminal.find_command(plugins, name), arguments))
    if not plugins:
        click.echo("no Hermes plugin is enabled: name some in hermes.enabled_plugins")
    for plugin in plugins:
        click.echo(f"{plugin.name}: {describe_parts(plugin) or 'registers nothing'}")
        for sentence in plugin.unused:
            click.echo(f"  {sentence}")
