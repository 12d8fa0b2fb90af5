"""Goals: the agent goes on by itself until it says that the goal of a conversation is reached."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from clew.features.goals.settings import GoalsSettings
from clew.features.goals.tool import goal, make_facts
from clew.plugin import Command, sql_check

if TYPE_CHECKING:
    from clew.core.ids import ConversationId
    from clew.features.goals.service import GoalPursuit
    from clew.plugin import CommandCall, FeatureContext, Registry, SettingsSection

#: Operations of HTTP and JSON-RPC.
OPERATIONS: Final = (
    "goal.list", "goal.get", "goal.set", "goal.pause", "goal.resume", "goal.done", "goal.stop",
    "goal.rounds",
)  # fmt: skip

#: Invariants of goals and rounds.
CHECKS = (
    sql_check(
        "goals-rounds",
        "A goal has a row for each of its rounds, and each was accepted.",
        """
        SELECT g.conversation, NULL, g.id, 0, 'it has had other rounds than it says'
        FROM goals g WHERE g.rounds <> (SELECT count(*) FROM goals_round r WHERE r.goal = g.id)
            OR g.rounds <> (SELECT COALESCE(max(r.n), 0) FROM goals_round r WHERE r.goal = g.id)
            OR EXISTS (
                SELECT 1 FROM goals_round r JOIN head h ON h.conversation_id = r.conversation
                WHERE r.goal = g.id AND NOT EXISTS (SELECT 1 FROM inbox i WHERE i.id = r.input)
            )
        """,
        decide="/goal stop in its conversation ends it, and /goal TEXT sets it anew",
    ),
    sql_check(
        "goals-open-rounds",
        "At most the last round of a goal is open.",
        """
        SELECT r.conversation, NULL, r.goal, 0, 'a round before the last one has not ended'
        FROM goals_round r JOIN goals g ON g.id = r.goal
        WHERE r.state = 'started' AND r.n < g.rounds
        """,
        decide="/goal stop in its conversation ends it, and /goal TEXT sets it anew",
    ),
)


def register(registry: Registry) -> None:
    """Register the feature."""
    settings = registry.add_settings(GoalsSettings)
    registry.add_migrations(
        f"{__name__}.migrations",
        of_conversation={"goals": "conversation", "goals_round": "conversation"},
        of_route={"goals": "route"},
        checks=CHECKS,
    )
    pursuit = _Pursuits(settings)

    async def run_goals(context: FeatureContext) -> None:
        """Go on with goals whose turns ended elsewhere."""
        await pursuit.of(context).run()

    async def advance_goals(context: FeatureContext, conversation: ConversationId) -> None:
        """Go on with the goal of a conversation whose turn has ended."""
        await pursuit.of(context).advance_due(conversation)

    async def run_command(call: CommandCall, argument: str) -> str:
        """Show, set or change the goal of the conversation, and go on with it."""
        from clew.features.goals import chat_command  # noqa: PLC0415  (declared by every command, needed by few)

        limits = chat_command.make_limits(settings.get())
        reply = await chat_command.run_goal_command(call, argument, limits)
        await pursuit.of(call.services).advance_due(call.conversation_id)
        return reply

    registry.add_service("goals", run_goals)
    registry.add_after_turn("goals", advance_goals, every_end=True)
    registry.add_tool(goal, effect="idempotent", facts=make_facts)
    registry.add_command(
        Command(
            name="goal",
            help="set a goal towards which the agent goes on by itself, show it, or change it",
            run=run_command,
            arguments="[text|pause|resume|done|stop]",
        )
    )
    for name in OPERATIONS:
        registry.add_operation(name, partial(_make_operation, name, settings))


class _Pursuits:
    """The pursuit of this process, made when it is needed."""

    def __init__(self, settings: SettingsSection[GoalsSettings]) -> None:
        self._settings = settings
        self._made: GoalPursuit | None = None
        self._context: FeatureContext | None = None

    def of(self, context: FeatureContext) -> GoalPursuit:
        from clew.features.goals.service import GoalPursuit  # noqa: PLC0415  (heavy)

        if self._made is None or self._context is None or self._context.store is not context.store:
            self._made, self._context = GoalPursuit(context, self._settings.get()), context
        return self._made


def _make_operation(name: str, settings: SettingsSection[GoalsSettings]) -> object:
    from clew.features.goals import operations  # noqa: PLC0415  (only servers need them)

    return operations.find_operation(name, settings.get)
