"""Contexts of turns: the facts about the running turn for tools, hooks and features."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from clew.core.agent_profile import narrow_level
from clew.core.completion import count_hops, is_attended, read_task
from clew.core.ids import SessionId
from clew.engine.hook_dispatch import get_platform
from clew.plugin.turn_context import TurnContext
from clew.store.transactions.conversations import get_scope
from clew.store.transactions.settings import find_agent

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clew.core.agent_profile import AgentProfile
    from clew.core.ids import ConversationId, TurnId
    from clew.core.inbox import InboxItem
    from clew.core.route import RouteKey
    from clew.core.scope import Scope
    from clew.engine.services import EngineServices
    from clew.store.contract import Tx
    from clew.store.transactions.turns import StartedWork


def make_turn_context(services: EngineServices, started: StartedWork) -> TurnContext:
    """Return the context of a turn that begins or continues; its session is set when known."""
    assert started.turn is not None
    return build_turn_context(
        services,
        conversation=started.turn.conversation_id,
        turn=started.turn.id,
        route=started.route,
        scope=started.scope,
        payloads=started.payloads,
        profile=services.agents.find_profile(started.agent),
    )


def make_first_context(
    services: EngineServices, turn: TurnId, t: Tx, session: SessionId, items: Sequence[InboxItem]
) -> TurnContext:
    """Return the context of a turn that begins with these inputs, in its transaction."""
    conversation = items[0].conversation_id
    return build_turn_context(
        services,
        conversation=conversation,
        turn=turn,
        route=items[0].route,
        scope=get_scope(t, conversation),
        payloads=[item.payload for item in items],
        session=session,
        profile=services.agents.find_profile(find_agent(t, conversation)),
    )


def build_turn_context(  # noqa: PLR0913  (each is a field of the context)
    services: EngineServices,
    *,
    conversation: ConversationId,
    turn: TurnId,
    route: RouteKey | None,
    scope: Scope,
    payloads: Sequence[str],
    profile: AgentProfile | None,
    session: SessionId = SessionId(""),  # noqa: B008  (a string)
) -> TurnContext:
    """Return the context of a turn with these inputs."""
    inputs: list[dict[str, Any]] = [json.loads(payload) for payload in payloads]
    senders = [one["sender"]["id"] for one in inputs if "sender" in one]
    return TurnContext(
        conversation=conversation,
        session=session,
        turn=turn,
        route=route,
        scope=scope,
        people=tuple(dict.fromkeys(senders)),
        platform=get_platform(route),
        attended=is_attended(payloads),
        hops=count_hops(payloads),
        task=read_task(payloads),
        profile=profile,
        sandbox_level=narrow_level(
            services.feature_context.settings.sandbox.level, profile and profile.level
        ),
        services=services.feature_context,
    )
