"""Delegation: agents that work for others, in conversations of their own."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Final

from clew.features.delegation.kinds import (
    SECTION,
    TaskTerms,
    describe_kinds,
    find_problems,
    make_named_agents,
)
from clew.features.delegation.settings import AgentKind, DelegationSettings
from clew.features.delegation.tool import make_agents, make_delegate
from clew.plugin import Command, ToolFacts, sql_check

if TYPE_CHECKING:
    from collections.abc import Callable

    from clew.core.ids import ConversationId
    from clew.core.turn import Turn
    from clew.plugin import CommandCall, FeatureContext, Registry, TurnContext
    from clew.store.contract import Tx

#: The limit of a call is ``delegation.wait``, first for a place, then for the answer.
_LONGER_THAN_ALL: Final = timedelta(days=1)

#: Operations of HTTP and JSON-RPC.
OPERATIONS: Final = ("agent.list", "agent.get", "agent.read", "agent.stop", "agent.tell")

#: Invariants of children and their answers.
CHECKS = (
    sql_check(
        "delegation-answer",
        "The answer of each task that has ended is in the conversation that asked, or there is a "
        "reason why not.",
        """
        SELECT c.parent_conversation, CAST(NULL AS BIGINT), c.conversation_id, 0,
               'the answer of ' || c.conversation_id || ' is nowhere'
        FROM delegation_child c
        WHERE c.state <> 'running' AND c.reason IS NULL
          AND EXISTS (SELECT 1 FROM head h WHERE h.conversation_id = c.parent_conversation)
          AND NOT EXISTS (SELECT 1 FROM inbox i WHERE i.id = c.woken)
          AND NOT (c.background = 0 AND (
              EXISTS (
                  SELECT 1 FROM journal j WHERE j.turn_id = c.parent_turn
                  AND j.step = c.parent_step AND j.call_id = c.parent_call AND j.status IS NOT NULL
              ) OR EXISTS (
                  SELECT 1 FROM turn n WHERE n.id = c.parent_turn AND n.state <> 'done'
              )
          ))
        """,
        decide="read the conversation of the task: its answer is the last message",
    ),
    sql_check(
        "delegation-call",
        "A task belongs to a call of the conversation that asked for it.",
        """
        SELECT c.parent_conversation, CAST(NULL AS BIGINT), c.conversation_id, 0,
               'the call that has asked for ' || c.conversation_id || ' is not there'
        FROM delegation_child c
        WHERE EXISTS (SELECT 1 FROM head h WHERE h.conversation_id = c.parent_conversation)
          AND NOT EXISTS (
              SELECT 1 FROM journal j WHERE j.turn_id = c.parent_turn AND j.step = c.parent_step
              AND j.call_id = c.parent_call AND j.conversation_id = c.parent_conversation
          )
        """,
        decide="leave it: the task can be read and deleted as every conversation",
    ),
)


def register(registry: Registry) -> None:
    """Register the feature."""
    settings = registry.add_settings(DelegationSettings)
    kinds = registry.add_named_settings(SECTION, AgentKind)
    registry.add_settings_check("agents", partial(find_problems, registry))
    registry.add_agents("agents", lambda: make_named_agents(kinds.get()))
    registry.add_instructions("agent-kind", render_kind)
    registry.add_migrations(
        f"{__name__}.migrations",
        of_conversation={"delegation_child": "conversation_id", "delegation_tree": "root"},
        checks=CHECKS,
    )
    registry.add_tool(
        make_delegate(lambda: TaskTerms(limits=settings.get(), kinds=kinds.get())),
        effect="idempotent",
        # What the task does is decided about then.
        facts=lambda _: ToolFacts(internal=True),
        timeout=_LONGER_THAN_ALL,
        awaits_turns=True,
        choices={"kind": lambda: describe_kinds(kinds.get())},
    )
    registry.add_tool(
        make_agents(settings.get),
        effect="idempotent",
        facts=lambda _: ToolFacts(internal=True),
    )
    registry.add_command(
        Command(
            name="agents",
            help="list the tasks that other agents work on, show one, or stop, tell or read it",
            run=partial(run_agents_command, settings.get),
            arguments="[id|stop id|tell id text|read id]",
        )
    )
    for name in OPERATIONS:
        registry.add_operation(name, partial(_make_operation, name, settings.get))
    registry.add_turn_watch("delegation", on_step=end_step, on_end=end_turn, on_stop=stop_work)
    registry.add_service("delegation", run_service, where="leader")


def render_kind(context: TurnContext | None) -> str | None:
    """Return the instructions of the kind of agent that a conversation has."""
    return context and context.profile and context.profile.instructions


async def run_agents_command(
    get_settings: Callable[[], DelegationSettings], call: CommandCall, argument: str
) -> str:
    """List the tasks of a conversation, show one, or stop or tell it."""
    from clew.features.delegation import chat_command  # noqa: PLC0415  (declared by every command, needed by few)

    return await chat_command.run_agents_command(call, argument, get_settings())


def _make_operation(name: str, get_settings: Callable[[], DelegationSettings]) -> object:
    from clew.features.delegation import operations  # noqa: PLC0415  (only servers need them)

    return operations.find_operation(name, get_settings)


def end_step(t: Tx, turn: Turn) -> None:
    """Look at the budget of a child."""
    from clew.features.delegation.budgets import on_turn_step  # noqa: PLC0415  (only where turns run)

    on_turn_step(t, turn)


def end_turn(t: Tx, turn: Turn) -> None:
    """Settle the child whose turn ends."""
    from clew.features.delegation.ending import on_turn_end  # noqa: PLC0415  (only where turns run)

    on_turn_end(t, turn)


def stop_work(t: Tx, conversation: ConversationId) -> bool:
    """Stop everything that works for a conversation."""
    from clew.features.delegation.ending import stop_below  # noqa: PLC0415  (only where turns run)

    return stop_below(t, conversation)


async def run_service(context: FeatureContext) -> None:
    """Settle the children whose end no turn tells."""
    from clew.features.delegation.service import watch_children  # noqa: PLC0415  (only in gateways)

    await watch_children(context)
