"""Texts about goals, for people and for the model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from clew.core.text import truncate_text
from clew.features.goals.goals import GoalReason, GoalState, RoundState

if TYPE_CHECKING:
    from clew.features.goals.goals import Goal, GoalRound

#: Characters of a goal where it is named, and of a remark.
_MAX_NAMED, _MAX_REMARK = 100, 500
_REASONS: Final = {
    GoalReason.BY_HAND: "by hand",
    GoalReason.REPLACED: "another goal took its place",
    GoalReason.AGENT: "says the agent",
    GoalReason.BLOCKED: "the agent needs you",
    GoalReason.JUDGE: "says the judge",
    GoalReason.JUDGE_FAILED: "the judge gave no verdict",
    GoalReason.ROUNDS: "its rounds are used up",
    GoalReason.BUDGET: "its tokens are spent",
    GoalReason.DAY: "the tokens of the day are spent (agent.unattended_tokens)",
    GoalReason.FAILURES: "three rounds in a row failed",
    GoalReason.STOPPED: "somebody stopped the answer",
    GoalReason.MOVED: "this chat has moved to another conversation",
    GoalReason.NO_ACCESS: "whoever set it has no access any more",
    GoalReason.BROKEN: "an error of Clew",
}
_STATES: Final = {
    GoalState.ACTIVE: "The goal is pursued",
    GoalState.PAUSED: "The goal is paused",
    GoalState.DONE: "The goal is reached",
    GoalState.STOPPED: "The goal is given up",
}


def describe_reason(goal: Goal) -> str | None:
    """Return why a goal is in its state, in words."""
    if goal.reason is None:
        return None
    remark = "" if goal.remark is None else f": {truncate_text(goal.remark, _MAX_REMARK)}"
    return f"{_REASONS[goal.reason]}{remark}"


def format_notice(goal: Goal) -> str:
    """Return what people are told once about a goal that was paused or has ended."""
    lines = [f"{format_state(goal)}\n{_name(goal)}, {format_use(goal)}."]
    if goal.state is GoalState.PAUSED:
        lines.append(_say_how_to_resume(goal))
    return "\n".join(lines)


def _say_how_to_resume(goal: Goal) -> str:
    if goal.reason is GoalReason.MOVED:
        return f"/resume {goal.conversation} and then /goal resume goes on with it."
    return "/goal resume goes on with it; /goal done and /goal stop end it."


def format_state(goal: Goal) -> str:
    """Return the state of a goal with its reason, as a sentence."""
    why = describe_reason(goal)
    return _STATES[goal.state] + ("." if why is None else f", {why.rstrip('.')}.")


def _name(goal: Goal) -> str:
    return truncate_text(" ".join(goal.text.split()), _MAX_NAMED)


def format_use(goal: Goal) -> str:
    """Return what a goal has used of what it may use."""
    return f"round {goal.rounds} of {goal.max_rounds}, {goal.tokens:,} of {goal.budget:,} tokens"


def format_goal(goal: Goal) -> str:
    """Return a goal for people, in full."""
    return f"{format_state(goal)}\n{goal.text}\nSo far: {format_use(goal)}."


def format_round(goal: Goal, n: int, last: GoalRound | None) -> str:
    """Return the input of a round, for the model; the goal is restated in full."""
    task = (
        "No message of a person has come: go on by yourself with the next step, and do not ask "
        "whether to go on. Once the goal is reached, call the tool goal with done; if only a "
        "person can help, call it with blocked. Then answer in a few sentences."
    )
    lines = [
        f"Round {n} of {goal.max_rounds} towards the goal that a person set for this conversation:",
        "",
        goal.text,
        "",
        task,
    ]
    if last is not None and last.state is RoundState.FAILED:
        lines.append("The round before failed; what it had done is above.")
    if last is not None and last.remark:
        lines.append(f"A judge says that the goal is still open: {last.remark}")
    return "\n".join(lines)
