"""``clew tools``: the tools that the model is offered."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

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
    from clew.core.rule_effect import RuleEffect


@click.command(epilog=format_examples("clew tools", "clew tools --json"))
@json_option
@pass_cli_context
def tools(program: CliContext, *, as_json: bool) -> None:
    """
    List the tools of the agent: effect, what happens by default, and whose they are.

    The effect says what running a call twice does. By default a call runs, asks, or it is
    decided by the call; the rules of the settings, which come first, are in a column of their own.
    """
    settings = program.load_settings()
    from clew.plugin.tool_listing import list_tools  # noqa: PLC0415  (help needs none)

    found = list_tools(settings, _list_own_tools(settings))
    if as_json:
        items = [one.fields for one in found]
        print_json({"items": items, "sandbox": settings.sandbox.level})
        return
    out, notes = get_outputs()
    columns = ["TOOL", "EFFECT", "DEFAULT", "FROM"]
    rows = [[one.tool.name, one.effect or "-", one.tool.default.value, one.owner] for one in found]
    if settings.approvals.rule:
        columns.insert(3, "RULES")
        for row, one in zip(rows, found, strict=True):
            row.insert(3, _describe_rules(one.rules))
    for line in format_table(columns, rows):
        out.write(line + "\n")
    notes.print_dim(f"commands run at the sandbox level {settings.sandbox.level}")


#: What happens to every call, and to some.
_EVERY: Final = {"allow": "runs", "ask": "asks", "deny": "denied"}
_SOME: Final = {"allow": "some run", "ask": "some ask", "deny": "some denied"}


def _describe_rules(found: RuleEffect) -> str:
    """Return what the rules do: ``asks (rule 2); some denied (rule 1)``."""
    said = [f"{_SOME[one.then.value]} (rule {one.number})" for one in found.some]
    if found.every is not None:
        said.insert(0, f"{_EVERY[found.every.then.value]} (rule {found.every.number})")
    return "; ".join(said) or "-"


def _list_own_tools(settings: Settings) -> list[ListedTool]:
    """Return the tools of ``agent.object`` or ``tools.modules``, whose code is imported."""
    if settings.agent.object is None and not settings.tools.modules:
        return []
    from clew.agent.tool_listing import list_agent_tools  # noqa: PLC0415  (slow; only where there are any)
    from clew.runtime import make_agent  # noqa: PLC0415  (slow; only where there are any)

    return list_agent_tools(make_agent(settings, ""))
