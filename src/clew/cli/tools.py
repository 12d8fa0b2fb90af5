"""``clew tools``: the tools that the model is offered."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from clew.cli.common import (
    CliContext,
    format_examples,
    json_option,
    pass_cli_context,
    print_json,
)
from clew.cli.output import format_table, get_outputs

if TYPE_CHECKING:
    from clew.config import Settings
    from clew.core.listed_tool import ListedTool


@click.command(epilog=format_examples("clew tools", "clew tools --json"))
@json_option
@pass_cli_context
def tools(program: CliContext, *, as_json: bool) -> None:
    """
    List the tools of the agent: effect, what happens by default, and whose they are.

    The effect says what running a call twice does. By default a call runs, asks, or it is
    decided by the call; the rules of the settings come first.
    """
    settings = program.load_settings()
    found = [(owner, one, _name_effect(one)) for owner, one in _list_tools(settings)]
    if as_json:
        items = [
            {
                "name": one.name,
                "effect": effect,
                "default": one.default.value,
                "untrusted": one.untrusted,
                "feature": owner,
            }
            for owner, one, effect in found
        ]
        print_json({"items": items, "sandbox": settings.sandbox.level})
        return
    out, notes = get_outputs()
    rows = [(one.name, effect or "-", one.default.value, owner) for owner, one, effect in found]
    for line in format_table(("TOOL", "EFFECT", "DEFAULT", "FROM"), rows):
        out.write(line + "\n")
    notes.print_dim(f"commands run at the sandbox level {settings.sandbox.level}")


def _name_effect(tool: ListedTool) -> str | None:
    return None if tool.effect is None else tool.effect.value


def _list_tools(settings: Settings) -> list[tuple[str, ListedTool]]:
    """Return the tools of the agent and of features, each with its owner."""
    from clew.core.listed_tool import list_declared_tool  # noqa: PLC0415  (help needs none)
    from clew.core.tool_declaration import ToolDeclaration  # noqa: PLC0415  (help needs none)
    from clew.plugin.loading import get_features  # noqa: PLC0415  (help needs none)

    own = _list_own_tools(settings)
    if not settings.agent.uses_features:
        return own
    taken = {one.name for _, one in own}
    declared = get_features(settings).get(ToolDeclaration)
    listed = [(each.owner, list_declared_tool(each.value)) for each in declared]
    return [*own, *(pair for pair in listed if pair[1].name not in taken)]


def _list_own_tools(settings: Settings) -> list[tuple[str, ListedTool]]:
    """Return the tools of ``agent.object`` or ``tools.modules``, whose code is imported."""
    if settings.agent.object is None and not settings.tools.modules:
        return []
    from clew.agent.listed_tools import list_agent_tools  # noqa: PLC0415  (slow; only where there are any)
    from clew.runtime import make_agent  # noqa: PLC0415  (slow; only where there are any)

    owner = "tools.modules" if settings.agent.object is None else "agent.object"
    return [(owner, one) for one in list_agent_tools(make_agent(settings, ""))]
