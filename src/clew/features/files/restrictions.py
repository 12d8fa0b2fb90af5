"""Files that a search or a listing leaves out, because a rule denies or asks about them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from clew.core.call_policy import JudgedTurn, restricts_path
from clew.core.policy_rule import Verdict
from clew.features.files.turn_workspace import require_context

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeAlias

    from clew.features.files.turn_workspace import LocatedPath

    #: Tells of a path below the place whether it is left out.
    Restriction: TypeAlias = Callable[[str], bool]


def find_restriction(tool: str, place: LocatedPath) -> Restriction:
    """Return what tells of a path below a place whether the running turn may not see it."""
    context = require_context()
    rules = [
        rule
        for rule in context.services.settings.approvals.rule
        if rule.paths and rule.then is not Verdict.ALLOW
    ]
    if not rules:
        return lambda _: False
    people = tuple(f"{context.platform}:{user}" for user in context.people)
    turn = JudgedTurn(scope=context.scope, people=people)
    root = place.workspace.root
    return lambda path: restricts_path(rules, tool, os.path.realpath(root / path), turn)


def describe_left_out(count: int) -> list[str]:
    """Return the line about files that were left out."""
    return [f"[a rule leaves out {count:,}]"] if count else []
