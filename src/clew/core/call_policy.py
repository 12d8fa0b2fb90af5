"""
Policy: decides whether a tool call runs, needs approval or is denied, with the reason.

The first that applies decides: a ``deny`` rule, an ``ask`` rule, a narrowing, taint, a grant, an
``allow`` rule, the tool's default; otherwise the call needs approval.
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Final

from clew.core.command_shape import CommandPattern, matches_glob
from clew.core.effect import Effect
from clew.core.grant import covers_command, make_pattern, matches_path, may_match_below
from clew.core.policy_rule import CallNarrowing, PolicyRule, Verdict
from clew.core.steered_programs import find_instruction
from clew.core.tool_facts import PathFact, ToolFacts
from clew.record import Record, replace

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from clew.core.command_shape import ParsedCommand
    from clew.core.grant import Grant, GrantPattern
    from clew.core.ids import GrantId
    from clew.core.scope import Scope


class UnknownFacts(Record):
    """Facts that a tool declares and that could not be made."""

    why: str


class JudgedCall(Record):
    """The properties of a tool call that decide about it."""

    tool: str
    effect: Effect
    #: ``None`` for a tool that declares none.
    facts: ToolFacts | UnknownFacts | None = None
    #: Of the command in the facts.
    shape: ParsedCommand | None = None
    #: The tool itself asks for approval.
    asks: bool = False
    #: A plugin asks for approval of this call.
    plugin_asks: bool = False
    #: Its result will hold text that strangers may have written.
    untrusted: bool = False


class JudgedTurn(Record):
    """The properties of a turn that decide about its calls."""

    scope: Scope
    #: As ``PLATFORM:ID``.
    people: tuple[str, ...] = ()
    #: Its context holds text that strangers may have written.
    tainted: bool = False
    #: Files of the workspace that were written without being seen; empty text for any.
    unseen: tuple[str, ...] = ()
    #: Each holds for every call.
    narrowings: tuple[CallNarrowing, ...] = ()
    #: The reason why nobody can be asked; ``None`` if somebody can.
    no_answer: str | None = None


class Decision(Record):
    """Outcome of the policy for a call."""

    verdict: Verdict
    #: Stored with the call, for people.
    why: str
    #: The grant that allows it.
    grant: GrantId | None = None
    #: The pattern that a person may allow for longer than this call; ``None`` if there is none.
    offer: GrantPattern | None = None
    #: No rule and no grant applies to it.
    is_default: bool = False


#: Levels of the sandbox without isolation.
_HOST: Final = "host"
_OPEN: Final = "it runs outside of the sandbox"


def decide(
    call: JudgedCall, rules: Sequence[PolicyRule], grants: Sequence[Grant], turn: JudgedTurn
) -> Decision:
    """Decide about a call."""
    decision = _decide(call, rules, grants, turn)
    if decision.verdict is Verdict.ASK and turn.no_answer is not None:
        return Decision(verdict=Verdict.DENY, why=turn.no_answer)
    if decision.verdict is Verdict.ASK and runs_open(call.facts) and _OPEN not in decision.why:
        # Whoever answers is told, whatever made it ask.
        return replace(decision, why=f"{decision.why}; {_OPEN}")
    return decision


def runs_open(facts: ToolFacts | UnknownFacts | None) -> bool:
    """Return whether a call runs a command outside of the sandbox."""
    return isinstance(facts, ToolFacts) and (
        facts.sandbox == _HOST or (facts.command is not None and facts.sandbox is None)
    )


def _decide(
    call: JudgedCall, rules: Sequence[PolicyRule], grants: Sequence[Grant], turn: JudgedTurn
) -> Decision:
    if (restricted := _apply_restrictions(call, rules, turn)) is not None:
        return restricted
    # A pattern is about what a command says. Files that nobody saw may make something else of it.
    steered = find_instruction(call.shape, turn.unseen) if runs_open(call.facts) else None
    permitted = _find_permission(call, rules, grants, turn, by_command=steered is None)
    if permitted is not None:
        return permitted
    if steered is not None and _find_permission(call, rules, grants, turn, by_command=True):
        return _ask(steered)
    return _apply_default(call)


def _find_permission(
    call: JudgedCall,
    rules: Sequence[PolicyRule],
    grants: Sequence[Grant],
    turn: JudgedTurn,
    *,
    by_command: bool,
) -> Decision | None:
    """Return the permission of a grant or rule; patterns of commands count if ``by_command``."""
    assert not isinstance(call.facts, UnknownFacts)
    for grant in grants:
        if (by_command or not grant.pattern.commands) and grant.pattern.covers(
            call.tool, call.facts, call.shape
        ):
            why = f"grant {grant.id}: {grant.pattern.says}"
            return Decision(verdict=Verdict.ALLOW, why=why, grant=grant.id)
    for number, rule in enumerate(rules, 1):
        if (
            rule.then is Verdict.ALLOW
            and (by_command or not rule.commands)
            and _match(rule, call, turn) is _Match.YES
        ):
            return Decision(verdict=Verdict.ALLOW, why=f"rule {number} allows it")
    return None


def _apply_restrictions(
    call: JudgedCall, rules: Sequence[PolicyRule], turn: JudgedTurn
) -> Decision | None:
    """Return the decision that no grant changes: of rules, narrowings and taint."""
    matches = [(n, rule, _match(rule, call, turn)) for n, rule in enumerate(rules, 1)]
    for number, rule, match in matches:
        if rule.then is Verdict.DENY and match is _Match.YES:
            return Decision(verdict=Verdict.DENY, why=f"rule {number} denies it")
    if isinstance(call.facts, UnknownFacts):
        return _ask(f"nobody knows what it does: {call.facts.why}")
    for number, rule, match in matches:
        if rule.then is Verdict.ASK and match is _Match.YES:
            return _ask(f"rule {number} asks")
        if rule.then is not Verdict.ALLOW and match is _Match.MAYBE:
            return _ask(f"rule {number} may be about it, which cannot be seen")
    if call.plugin_asks:
        return _ask("a plugin asks")
    why = _find_narrowing(call, turn) or (_find_taint(call.facts) if turn.tainted else None)
    return None if why is None else _ask(why)


def _find_narrowing(call: JudgedCall, turn: JudgedTurn) -> str | None:
    return next(
        (f"{one.says} does not list it" for one in turn.narrowings if not _is_listed(call, one)),
        None,
    )


def _is_listed(call: JudgedCall, narrowing: CallNarrowing) -> bool:
    listed = narrowing.calls
    patterns = tuple(pattern for tool, pattern in listed if tool == call.tool and pattern)
    if (call.tool, None) in listed:
        return True
    if not patterns or not isinstance(call.facts, ToolFacts):
        return False
    return covers_command(patterns, call.facts, call.shape)


def _find_taint(facts: ToolFacts | None) -> str | None:
    if facts is not None and facts.outward:
        return "it reaches outside, after the conversation has read text of strangers"
    if facts is not None and facts.lasting:
        return "later sessions read it, and the conversation has read text of strangers"
    return None


def _ask(why: str, offer: GrantPattern | None = None) -> Decision:
    return Decision(verdict=Verdict.ASK, why=why, offer=offer)


def _apply_default(call: JudgedCall) -> Decision:
    facts = call.facts
    assert not isinstance(facts, UnknownFacts)
    why = None if call.asks else _find_default_reason(call.effect, facts)
    if why is not None:
        return Decision(verdict=Verdict.ALLOW, why=f"by default: {why}", is_default=True)
    asked = "the tool asks" if call.asks else _describe_reach(facts)
    # One that reaches outside and reads text of strangers asks from then on: nothing would hold.
    once = facts is not None and facts.outward and (call.untrusted or facts.untrusted_result)
    offer = None if once else make_pattern(call.tool, facts, call.shape)
    return _ask(f"by default: {asked}", offer)


def _find_default_reason(effect: Effect, facts: ToolFacts | None) -> str | None:
    """Return why a call may run without a rule or grant; ``None`` if it may not."""
    if facts is None:
        return "the tool does not ask"
    confined = facts.sandbox is not None and facts.sandbox != _HOST and not facts.network
    if facts.command is not None:
        return "it runs in the sandbox, without a network" if confined else None
    if not all(one.inside for one in facts.paths) or facts.cost_micros:
        return None
    if effect is Effect.PURE:
        return "it changes nothing"
    if facts.trusted:
        return "the operator trusts it"
    if facts.outward or facts.hosts:
        return None
    if facts.paths:
        return "it stays in the workspace"
    if facts.internal:
        return "it changes only what Clew keeps"
    return "it runs in the sandbox, without a network" if confined else None


def _describe_reach(facts: ToolFacts | None) -> str:
    assert facts is not None
    if runs_open(facts):
        return _OPEN
    if facts.network:
        return "it has the network"
    if outside := [one.path for one in facts.paths if not one.inside]:
        return f"{outside[0]} is outside of the workspace"
    if facts.cost_micros:
        return "it costs money"
    return "it reaches outside" if facts.outward or facts.hosts else "it changes something"


class _Match(enum.Enum):
    YES = "yes"
    NO = "no"
    MAYBE = "maybe"


def _match(rule: PolicyRule, call: JudgedCall, turn: JudgedTurn) -> _Match:
    """Return whether a rule applies to a call; one that allows must apply to all of it."""
    every = rule.then is Verdict.ALLOW
    if rule.tools and not _any_fits(rule.tools, call.tool):
        return _Match.NO
    if rule.who and not _fits_people(rule.who, turn, every=every):
        return _Match.NO
    if not (rule.commands or rule.hosts or rule.paths):
        return _Match.YES
    if not isinstance(call.facts, ToolFacts):
        # A rule that names the tool means it; another one is about tools that have such facts.
        return _Match.MAYBE if call.tool in rule.tools else _Match.NO
    parts = [
        *([_match_command(rule.commands, call, every=every)] if rule.commands else []),
        *([_match_hosts(rule.hosts, call.facts, every=every)] if rule.hosts else []),
        *([_match_paths(rule.paths, call.facts, every=every)] if rule.paths else []),
    ]
    if _Match.NO in parts:
        return _Match.NO
    return _Match.MAYBE if _Match.MAYBE in parts else _Match.YES


def _any_fits(patterns: Iterable[str], text: str) -> bool:
    return any(matches_glob(one, text) for one in patterns)


def _fits_people(patterns: Sequence[str], turn: JudgedTurn, *, every: bool) -> bool:
    if _any_fits(patterns, turn.scope):
        return True
    fits = [_any_fits(patterns, one) for one in turn.people]
    return bool(fits) and (all(fits) if every else any(fits))


def _match_command(patterns: tuple[str, ...], call: JudgedCall, *, every: bool) -> _Match:
    assert isinstance(call.facts, ToolFacts)
    if call.facts.command is None:
        return _Match.NO
    if every:
        covered = covers_command(patterns, call.facts, call.shape)
        return _Match.YES if covered else _Match.NO
    if call.shape is None or call.shape.problem is not None:
        return _Match.MAYBE
    parsed = [CommandPattern.parse(one) for one in patterns]
    found = any(one.matches(command) for one in parsed for command in call.shape.commands)
    return _Match.YES if found else _Match.NO


def _match_hosts(patterns: tuple[str, ...], facts: ToolFacts, *, every: bool) -> _Match:
    fits = [_any_fits(patterns, host) for host in facts.hosts]
    return _Match.YES if fits and (all(fits) if every else any(fits)) else _Match.NO


def restricts_path(rules: Sequence[PolicyRule], tool: str, path: str, turn: JudgedTurn) -> bool:
    """Return whether a rule denies, or asks about, the use of one path by a tool."""
    fact = PathFact(path=path, inside=True)
    call = JudgedCall(tool=tool, effect=Effect.PURE, facts=ToolFacts(paths=(fact,)))
    return any(
        rule.then is not Verdict.ALLOW and _match(rule, call, turn) is _Match.YES
        for rule in rules
        if rule.paths
    )


def _fits_path(pattern: str, fact: PathFact, *, every: bool) -> bool:
    """
    Return whether a pattern is about a path.

    To deny a folder denies what is in it. What is allowed relative to the workspace is there.
    """
    if every:
        inside = fact.inside or pattern.startswith("/")
        return inside and matches_path(pattern, fact.path)
    return matches_path(pattern, fact.path) or matches_path(f"{pattern}/*", fact.path)


def _match_paths(patterns: tuple[str, ...], facts: ToolFacts, *, every: bool) -> _Match:
    fits = [any(_fits_path(one, each, every=every) for one in patterns) for each in facts.paths]
    if fits and (all(fits) if every else any(fits)):
        return _Match.YES
    trees = [one.path for one in facts.paths if one.extent == "tree" and not one.leaves_out]
    hidden = any(may_match_below(one, path) for one in patterns for path in trees)
    return _Match.MAYBE if hidden and not every else _Match.NO
