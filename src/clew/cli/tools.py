"""``clew tools``: the tools that features give to the model."""

from __future__ import annotations

import click

from clew.cli.common import (
    CliContext,
    format_examples,
    json_option,
    pass_cli_context,
    print_json,
)
from clew.cli.output import format_table, get_outputs


@click.command(epilog=format_examples("clew tools", "clew tools --json"))
@json_option
@pass_cli_context
def tools(program: CliContext, *, as_json: bool) -> None:
    """
    List the tools of Clew and its plugins, with the effect of running each twice.

    The tools of an agent of your own and of tools.modules are not listed.
    """
    from clew.core.tool_declaration import ToolDeclaration  # noqa: PLC0415  (help needs none)
    from clew.plugin.loading import get_features  # noqa: PLC0415  (help needs none)

    features = get_features(program.load_settings())
    found = [
        {
            "name": one.value.name,
            "effect": one.value.effect.value,
            "feature": one.owner,
        }
        for one in features.get(ToolDeclaration)
    ]
    if as_json:
        print_json({"items": found})
        return
    out, _ = get_outputs()
    rows = [(one["name"], one["effect"], one["feature"]) for one in found]
    for line in format_table(("TOOL", "EFFECT", "FEATURE"), rows):
        out.write(line + "\n")
