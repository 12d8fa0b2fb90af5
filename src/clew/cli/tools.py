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
    from clew.core.rule_effect import AppliedRule, RuleEffect


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
    found = [(owner, one, _name_effect(one)) for owner, one in _list_tools(settings)]
    rules = {one.name: _find_rules(settings, one) for _, one, _ in found}
    if as_json:
        items = [
            {
                "name": one.name,
                "effect": effect,
                "default": one.default.value,
                "rules": _rules_to_json(rules[one.name]),
                "untrusted": one.untrusted,
                "feature": owner,
            }
            for owner, one, effect in found
        ]
        print_json({"items": items, "sandbox": settings.sandbox.level})
        return
    out, notes = get_outputs()
    columns = ["TOOL", "EFFECT", "DEFAULT", "FROM"]
    rows = [[one.name, effect or "-", one.default.value, owner] for owner, one, effect in found]
    if settings.approvals.rule:
        columns.insert(3, "RULES")
        for row in rows:
            row.insert(3, _describe_rules(rules[row[0]]))
    for line in format_table(columns, rows):
        out.write(line + "\n")
    notes.print_dim(f"commands run at the sandbox level {settings.sandbox.level}")


def _find_rules(settings: Settings, tool: ListedTool) -> RuleEffect:
    from clew.core.listed_tool import ApprovalDefault  # noqa: PLC0415  (help needs none)
    from clew.core.rule_effect import find_rule_effect  # noqa: PLC0415  (help needs none)

    has_facts = tool.default is ApprovalDefault.BY_CALL
    return find_rule_effect(tool.name, settings.approvals.rule, has_facts=has_facts)


def _rules_to_json(found: RuleEffect) -> dict[str, object]:
    def show(rule: AppliedRule) -> dict[str, object]:
        return {"rule": rule.number, "then": rule.then.value}

    every = None if found.every is None else show(found.every)
    return {"every": every, "some": [show(one) for one in found.some]}


#: What happens to every call, and to some.
_EVERY: Final = {"allow": "runs", "ask": "asks", "deny": "denied"}
_SOME: Final = {"allow": "some run", "ask": "some ask", "deny": "some denied"}


def _describe_rules(found: RuleEffect) -> str:
    """Return what the rules do: ``asks (rule 2); some denied (rule 1)``."""
    said = [f"{_SOME[one.then.value]} (rule {one.number})" for one in found.some]
    if found.every is not None:
        said.insert(0, f"{_EVERY[found.every.then.value]} (rule {found.every.number})")
    return "; ".join(said) or "-"


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
    from clew.agent.tool_listing import list_agent_tools  # noqa: PLC0415  (slow; only where there are any)
    from clew.runtime import make_agent  # noqa: PLC0415  (slow; only where there are any)

    owner = "tools.modules" if settings.agent.object is None else "agent.object"
    return [(owner, one) for one in list_agent_tools(make_agent(settings, ""))]
