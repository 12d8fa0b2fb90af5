"""The rules of the settings as far as they are about one tool, whatever its calls are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from clew.core.command_shape import matches_glob
from clew.core.policy_rule import Verdict
from clew.record import Record

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clew.core.policy_rule import PolicyRule

#: As the policy applies them.
_ORDER: Final = (Verdict.DENY, Verdict.ASK, Verdict.ALLOW)


class AppliedRule(Record, kw_only=False):
    """A rule that is about a tool."""

    #: Its place in the settings, from 1.
    number: int
    then: Verdict


class RuleEffect(Record):
    """Effect of the rules on the calls of a tool."""

    #: Decides every call that none of ``some`` decides first; ``None`` if no rule does.
    every: AppliedRule | None
    #: Rules about some of the calls: by command, host, path or person.
    some: tuple[AppliedRule, ...]


def find_rule_effect(tool: str, rules: Sequence[PolicyRule], *, has_facts: bool) -> RuleEffect:
    """Return what the rules make of a tool; one without facts has no commands, hosts or paths."""
    about = [
        (AppliedRule(number, rule.then), _is_partial(rule, tool, has_facts=has_facts))
        for number, rule in enumerate(rules, 1)
        if not rule.tools or any(matches_glob(one, tool) for one in rule.tools)
    ]
    known = [(applied, partial) for applied, partial in about if partial is not None]
    whole = sorted(
        (applied for applied, partial in known if not partial),
        key=lambda one: (_ORDER.index(one.then), one.number),
    )
    every = whole[0] if whole else None
    first = len(_ORDER) if every is None else _ORDER.index(every.then)
    some = [applied for applied, partial in known if partial and _ORDER.index(applied.then) < first]
    return RuleEffect(every=every, some=tuple(some))


def _is_partial(rule: PolicyRule, tool: str, *, has_facts: bool) -> bool | None:
    """Return whether a rule is about some calls only; ``None`` if it is about none."""
    if has_facts or not (rule.commands or rule.hosts or rule.paths):
        return bool(rule.who or rule.commands or rule.hosts or rule.paths)
    # What a rule that names the tool wants to know cannot be seen: it asks.
    if tool not in rule.tools or rule.then is Verdict.ALLOW:
        return None
    return True
