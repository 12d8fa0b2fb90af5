"""What people are told of a goal: an entry of the log, and a message to its chat."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.features.goals import goals
from clew.features.goals.wording import format_notice
from clew.record import replace
from clew.store.transactions import chat_notices

if TYPE_CHECKING:
    from clew.core.ids import OwnerId
    from clew.features.goals.goals import Goal
    from clew.store.contract import Tx


def tell_people(t: Tx, goal: Goal, *, owner: OwnerId) -> None:
    """
    Tell of the state of a locked goal, once, in its conversation and in its chat.

    :raises LeaseHeld: if somebody works on the conversation
    """
    text = format_notice(goal)
    told = goals.save_goal(t, replace(goal, told=1))
    chat_notices.tell_people(
        t, goal.conversation, text, name=f"{told.id}_{told.version}", owner=owner, route=goal.route
    )
