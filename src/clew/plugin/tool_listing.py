"""The tools of the agent as they are listed for people: effect, default, rules, and whose."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.core.listed_tool import ApprovalDefault, list_declared_tool
from clew.core.rule_effect import RuleEffect, find_rule_effect
from clew.core.tool_declaration import ToolDeclaration
from clew.plugin.loading import get_features
from clew.record import Record

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clew.config.settings import Settings
    from clew.core.listed_tool import ListedTool
    from clew.core.rule_effect import AppliedRule


class OwnedTool(Record):
    """A tool, its owner, and what the rules of the settings make of its calls."""

    owner: str
    tool: ListedTool
    rules: RuleEffect

    @property
    def effect(self) -> str | None:
        return None if self.tool.effect is None else self.tool.effect.value

    @property
    def fields(self) -> dict[str, object]:
        """Return the tool as programs get it."""
        return {
            "name": self.tool.name,
            "effect": self.effect,
            "default": self.tool.default.value,
            "rules": _describe_rules(self.rules),
            "untrusted": self.tool.untrusted,
            "feature": self.owner,
        }


def list_tools(settings: Settings, own: Sequence[ListedTool]) -> list[OwnedTool]:
    """Return the agent's ``own`` tools, then those of features; of two with one name, the first."""
    owner = "tools.modules" if settings.agent.object is None else "agent.object"
    found = [(owner, one) for one in own]
    if settings.agent.uses_features:
        taken = {one.name for one in own}
        features = get_features(settings)
        features.finish()
        declared = features.get(ToolDeclaration)
        listed = [(each.owner, list_declared_tool(each.value)) for each in declared]
        found += [pair for pair in listed if pair[1].name not in taken]
    return [
        OwnedTool(owner=name, tool=one, rules=_find_rules(settings, one)) for name, one in found
    ]


def _find_rules(settings: Settings, tool: ListedTool) -> RuleEffect:
    has_facts = tool.default is ApprovalDefault.BY_CALL
    return find_rule_effect(tool.name, settings.approvals.rule, has_facts=has_facts)


def _describe_rules(found: RuleEffect) -> dict[str, object]:
    def show(rule: AppliedRule) -> dict[str, object]:
        return {"rule": rule.number, "then": rule.then.value}

    every = None if found.every is None else show(found.every)
    return {"every": every, "some": [show(one) for one in found.some]}
