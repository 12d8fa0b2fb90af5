"""The chat command ``/goal``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.core.ids import new_session_id
from clew.errors import UsageError
from clew.features.goals import front, goals
from clew.features.goals.front import GoalLimits
from clew.features.goals.wording import format_goal
from clew.plugin.command_messages import describe_writer
from clew.store.transactions.conversations import open_route

if TYPE_CHECKING:
    from clew.core.ids import ConversationId
    from clew.features.goals.front import GoalRequest
    from clew.features.goals.goals import Goal
    from clew.features.goals.settings import GoalsSettings
    from clew.plugin import CommandCall
    from clew.store.contract import Tx

_NONE_YET = "There is no goal here: /goal TEXT sets one, towards which the agent goes on by itself."


def make_limits(settings: GoalsSettings) -> GoalLimits:
    """Return the limits of a new goal."""
    return GoalLimits(rounds=settings.rounds, budget=settings.budget)


async def run_goal_command(call: CommandCall, argument: str, limits: GoalLimits) -> str:
    """Show the goal of the conversation, set one, or change it."""
    store = call.services.store
    if not argument or argument in front.ACTIONS:
        if call.conversation_id is None:
            return _NONE_YET
        if not argument:
            return await store.read(_show, call.conversation_id)
        return await store.write(_change, call.conversation_id, argument, limits)
    request = front.GoalRequest(
        id=front.make_goal_id(call.services.ids.new_operation_id()),
        text=argument,
        limits=limits,
        route=None if call.route is None else call.route.key,
        payload=describe_writer(call),
    )
    return await store.write(_set, call, request, call.services.ids.new_conversation_id())


def _show(t: Tx, conversation: ConversationId) -> str:
    goal = goals.find_last_goal(t, conversation)
    return _NONE_YET if goal is None else _format(goal)


def _format(goal: Goal) -> str:
    told = format_goal(goal)
    return f"{told}\n/goal pause, resume, done or stop changes it." if goal.is_current else told


def _set(t: Tx, call: CommandCall, request: GoalRequest, new: ConversationId) -> str:
    conversation = call.conversation_id
    if conversation is None:
        if call.route is None:
            raise UsageError("there is no conversation here yet: write something first")
        conversation = open_route(t, call.route, new_conversation=new, session_ids=new_session_id)
    made = front.set_goal(t, conversation, request)
    return (
        f"The agent goes on by itself towards this goal, at most {made.max_rounds} rounds and "
        f"{made.budget:,} tokens. Your messages come first; /goal shows it, /goal pause stops it."
    )


def _change(t: Tx, conversation: ConversationId, action: str, limits: GoalLimits) -> str:
    goal = goals.find_last_goal(t, conversation)
    if goal is None:
        return _NONE_YET
    return format_goal(front.change_goal(t, goal.id, action, limits))
