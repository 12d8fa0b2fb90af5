"""The running turn, as the code of a feature sees it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.agent import turn_context
from clew.agent.turn_context import TurnIds, keep_permit

if TYPE_CHECKING:
    from clew.core.agent_profile import AgentProfile
    from clew.core.route import RouteKey
    from clew.core.scope import Scope
    from clew.plugin.context import FeatureContext

__all__ = ["TurnContext", "get_turn_context", "keep_permit"]


class TurnContext(TurnIds):
    """
    The running turn: its conversation, people and services.

    ``call_key`` (turn, step and call id) identifies the running tool call. It is the same when
    the call runs again after a restart, so an ``idempotent`` tool derives its ids from it.
    """

    #: The route of the turn's first message; ``None`` if it has none.
    route: RouteKey | None
    #: Whose conversation it is.
    scope: Scope
    #: The platform's user ids of those who wrote the messages that began the turn; empty on
    #: fronts where there is only the operator.
    people: tuple[str, ...] = ()
    #: Of the route: ``telegram``; ``local`` for CLI, HTTP and JSON-RPC.
    platform: str = "local"
    #: True if a person began the turn and can be asked; not a schedule or a program.
    attended: bool = True
    #: The number of turns without a person's message that led to this one, each by the next.
    hops: int = 0
    #: The task of another agent that it works on, as people know it.
    task: str | None = None
    #: What its agent is told and held to beside the settings; ``None`` for nothing.
    profile: AgentProfile | None = None
    #: The sandbox level of its commands, as the settings and the profile ask for it.
    sandbox_level: str
    services: FeatureContext


def get_turn_context() -> TurnContext | None:
    """
    Return the context of the calling turn; ``None`` outside of a turn.

    Tools and hooks may call it, also from threads and tasks that they start.
    """
    found = turn_context.get_turn_context()
    return found if isinstance(found, TurnContext) else None
