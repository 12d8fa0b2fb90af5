"""What comes after a round: decided from facts, without I/O."""

from __future__ import annotations

import enum
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from clew.features.goals.goals import GoalReason, GoalState, RoundState, RoundVerdict
from clew.record import Record

if TYPE_CHECKING:
    from clew.features.goals.goals import Goal, GoalRound

#: Rounds in a row that may fail.
MAX_FAILURES: Final = 3
_FIRST_PAUSE: Final = timedelta(seconds=5)


class Go(enum.Enum):
    """The goal is pursued."""

    JUDGE = "judge"  #: the judge is asked about the last round
    ROUND = "round"  #: the next round begins


class End(Record):
    """The goal is paused, or done."""

    state: GoalState
    reason: GoalReason
    remark: str | None = None


class GoalFacts(Record):
    """Facts about an active goal between two turns."""

    goal: Goal
    last: GoalRound | None
    #: A person stopped the last turn since the goal was set or resumed.
    is_stopped: bool
    #: Its chat leads to another conversation.
    is_moved: bool
    #: Whoever set it may not talk to the agent any more.
    is_shut_out: bool
    #: The tokens of today's turns that no person began are spent.
    is_day_spent: bool
    has_judge: bool


def plan_next(facts: GoalFacts) -> Go | End:
    """Return what comes next for an active goal whose conversation is idle."""
    goal, last = facts.goal, facts.last
    fresh = last.state if last is not None and last.at >= goal.resumed_at else None
    if facts.is_moved:
        return _pause(GoalReason.MOVED)
    if facts.is_stopped or fresh is RoundState.STOPPED:
        return _pause(GoalReason.STOPPED)
    if fresh is RoundState.HELD:
        return _pause(GoalReason.DAY)
    if last is not None and goal.failures >= MAX_FAILURES:
        return _pause(GoalReason.FAILURES, last.reason)
    if last is not None and last.state is RoundState.DONE and facts.has_judge:
        if last.verdict is None:
            return Go.JUDGE
        if last.verdict is RoundVerdict.REACHED:
            return End(state=GoalState.DONE, reason=GoalReason.JUDGE, remark=last.remark)
    return _plan_round(facts)


def _plan_round(facts: GoalFacts) -> Go | End:
    goal = facts.goal
    obstacles = {
        GoalReason.ROUNDS: goal.rounds >= goal.max_rounds,
        GoalReason.BUDGET: goal.tokens >= goal.budget,
        GoalReason.NO_ACCESS: facts.is_shut_out,
        GoalReason.DAY: facts.is_day_spent,
    }
    found = next((reason for reason, is_so in obstacles.items() if is_so), None)
    return Go.ROUND if found is None else _pause(found)


def _pause(reason: GoalReason, remark: str | None = None) -> End:
    return End(state=GoalState.PAUSED, reason=reason, remark=remark)


def pause_before(failures: int) -> timedelta:
    """Return how long a round waits that follows failures: 5 s, 30 s."""
    return timedelta() if failures == 0 else _FIRST_PAUSE * 6 ** (failures - 1)
