"""Use cases of goals, for people, programs and the model on every front."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from clew.clock import from_millis
from clew.errors import NotFound, UsageError
from clew.features.goals import goals
from clew.features.goals.goals import Goal, GoalReason, GoalState
from clew.features.goals.wording import describe_reason
from clew.record import Record, replace
from clew.store.transactions.conversations import (
    get_visible_conversation,
    resolve_conversation,
)

if TYPE_CHECKING:
    from clew.core.ids import ConversationId
    from clew.core.route import RouteKey
    from clew.core.scope import Scope
    from clew.features.goals.goals import GoalRound
    from clew.store.contract import Tx

#: Characters of a goal.
MAX_TEXT: Final = 4_000
#: What people do with a goal.
ACTIONS: Final = ("pause", "resume", "done", "stop")


class GoalLimits(Record):
    """Rounds and tokens of a new goal, and what resuming adds."""

    rounds: int
    budget: int


class GoalRequest(Record):
    """A goal as it is set."""

    id: str
    text: str
    limits: GoalLimits
    #: Where it was set, which gets its answers.
    route: RouteKey | None = None
    #: JSON of who set it, as the payload of an input has it.
    payload: str = "{}"


def make_goal_id(operation: str) -> str:
    """Return the id of a new goal."""
    return f"gol_{operation.removeprefix('op_')}"


def set_goal(t: Tx, conversation: ConversationId, request: GoalRequest) -> Goal:
    """
    Store the goal of a conversation, in the place of the one before.

    :raises UsageError: if there is no text, or too much of it
    """
    text = request.text.strip()
    if not text:
        raise UsageError("a goal needs a text: what is to be reached")
    if len(text) > MAX_TEXT:
        raise UsageError(f"the goal has {len(text):,} characters, and {MAX_TEXT:,} may be")
    before = goals.find_current_goal(t, conversation)
    if before is not None:
        goals.end_goal(t, before, GoalState.STOPPED, GoalReason.REPLACED, told=True)
    made = Goal(
        id=request.id,
        conversation=conversation,
        text=text,
        state=GoalState.ACTIVE,
        reason=None,
        remark=None,
        rounds=0,
        max_rounds=request.limits.rounds,
        tokens=0,
        budget=request.limits.budget,
        failures=0,
        route=request.route,
        payload=request.payload,
        told=1,
        created_at=t.now,
        resumed_at=t.now,
        version=1,
    )
    goals.insert_goal(t, made)
    return made


def change_goal(t: Tx, goal_id: str, action: str, limits: GoalLimits) -> Goal:
    """
    Pause, resume, or end a goal by hand.

    :raises UsageError: if it has ended
    """
    goal = goals.lock_goal(t, goal_id)
    if goal is None:
        raise NotFound("goal", goal_id)
    if not goal.is_current:
        raise UsageError(f"this goal is {goal.state.value} already: set it again to go on")
    if action == "resume":
        return _resume(t, goal, limits)
    state = {"pause": GoalState.PAUSED, "done": GoalState.DONE, "stop": GoalState.STOPPED}[action]
    return goals.end_goal(t, goal, state, GoalReason.BY_HAND, told=True)


def _resume(t: Tx, goal: Goal, limits: GoalLimits) -> Goal:
    """Go on with a goal; what was used up is allowed again."""
    if goal.state is GoalState.ACTIVE:
        return goal
    rounds, budget = goal.max_rounds, goal.budget
    if goal.rounds >= rounds:
        rounds = goal.rounds + limits.rounds
    if goal.tokens >= budget:
        budget = goal.tokens + limits.budget
    resumed = replace(
        goal,
        state=GoalState.ACTIVE,
        reason=None,
        remark=None,
        max_rounds=rounds,
        budget=budget,
        failures=0,
        told=1,
        resumed_at=t.now,
    )
    return goals.save_goal(t, resumed)


def end_by_agent(t: Tx, conversation: ConversationId, state: str, reason: str) -> str:
    """Record what the agent says of the goal of its conversation; return the answer to it."""
    goal = goals.find_current_goal(t, conversation)
    if goal is None:
        last = goals.find_last_goal(t, conversation)
        if last is not None and (last.reason, last.remark) == (GoalReason.AGENT, reason):
            return "The goal counts as reached."  # the same call, after a crash
        return "This conversation has no goal."
    if state == "done":
        goals.end_goal(t, goal, GoalState.DONE, GoalReason.AGENT, remark=reason)
        return "The goal counts as reached."
    goals.end_goal(t, goal, GoalState.PAUSED, GoalReason.BLOCKED, remark=reason)
    return "The goal is paused until a person resumes it."


def find_goal(t: Tx, name: str, *, viewer: Scope) -> Goal:
    """
    Return the goal with an id, or the last one of the conversation with a name.

    :raises NotFound: if there is none that the viewer may see
    """
    if name.startswith("gol_"):
        return goals.get_goal(t, name, viewer=viewer)
    conversation = get_visible_conversation(
        t, resolve_conversation(t, name), viewer=viewer, name=name
    )
    found = goals.find_last_goal(t, conversation.id)
    if found is None:
        raise NotFound("goal", name)
    return found


def describe_goal(goal: Goal) -> dict[str, Any]:
    """Return a goal as programs get it."""
    return {
        "id": goal.id,
        "conversation": goal.conversation,
        "text": goal.text,
        "state": goal.state.value,
        "reason": describe_reason(goal),
        "rounds": goal.rounds,
        "max_rounds": goal.max_rounds,
        "tokens": goal.tokens,
        "budget": goal.budget,
        "failures": goal.failures,
        "route": goal.route,
        "created_at": from_millis(goal.created_at).isoformat(),
        "version": goal.version,
    }


def describe_round(one: GoalRound) -> dict[str, Any]:
    """Return a round as programs get it."""
    return {
        "n": one.n,
        "state": one.state.value,
        "reason": one.reason,
        "turn": one.turn,
        "tokens": one.tokens,
        "verdict": None if one.verdict is None else one.verdict.value,
        "remark": one.remark,
        "at": from_millis(one.at).isoformat(),
    }
