"""Going on with goals: after each turn here, and again and again for what others left."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

import structlog

from clew.errors import LeaseHeld, StoreError
from clew.features.goals import goals, judging
from clew.features.goals.goals import GoalReason, GoalState
from clew.features.goals.rounds import GoalRules, advance_goal

if TYPE_CHECKING:
    from clew.core.ids import ConversationId
    from clew.features.goals.rounds import JudgeRequest
    from clew.features.goals.settings import GoalsSettings
    from clew.plugin import FeatureContext
    from clew.store.contract import Tx

log = structlog.get_logger(__name__)

#: Seconds between two looks at the goals: their turns may have ended in processes that died.
POLL_INTERVAL: Final = 2.0
#: Goals of one look.
_BATCH: Final = 50


class GoalPursuit:
    """The rounds of goals, begun by one process."""

    def __init__(self, context: FeatureContext, settings: GoalsSettings) -> None:
        self._context, self._store, self._settings = context, context.store, settings
        self._rules = GoalRules(
            has_judge=settings.judge is not None,
            tokens=context.settings.agent.unattended_tokens,
            owner=context.ids.new_owner_id(),
        )
        #: Goals whose judge is asked here.
        self._judging: set[str] = set()

    async def run(self) -> None:
        """Go on with all goals, for ever."""
        while True:
            await self.advance_due()
            await asyncio.sleep(POLL_INTERVAL)

    async def advance_due(self, conversation: ConversationId | None = None) -> None:
        """Go on with the goals whose conversation is idle: of one conversation, or of all."""
        due = await self._store.read(goals.list_due_goals, limit=_BATCH, conversation=conversation)
        if not due:
            return
        # Its claims hold while it is alive.
        await self._store.register_owner(self._rules.owner)
        async with asyncio.TaskGroup() as tasks:
            for goal in due:
                tasks.create_task(self._advance(goal), name=f"goal:{goal}")

    async def _advance(self, goal: str) -> None:
        try:
            while request := await self._begin_next(goal):
                await self._ask_judge(request)
        except LeaseHeld:
            pass  # somebody works on the conversation: after that
        except StoreError:
            raise
        except Exception as error:  # one goal must not keep others from going on
            log.exception("goal_failed", goal=goal)
            await self._store.write(_pause_broken, goal, str(error) or type(error).__name__)

    async def _begin_next(self, goal: str) -> JudgeRequest | None:
        return await self._store.write(
            advance_goal, goal, self._rules, is_judging=goal in self._judging
        )

    async def _ask_judge(self, request: JudgeRequest) -> None:
        assert self._settings.judge is not None
        self._judging.add(request.goal.id)
        try:
            answer = await self._context.ask_model(
                self._settings.judge,
                judging.write_prompt(request),
                setting="goals.judge",
                max_tokens=judging.MAX_TOKENS,
                seconds=judging.JUDGE_TIMEOUT,
            )
        except Exception as error:  # noqa: BLE001  (whatever a provider raises: the goal is paused)
            log.warning("judge_failed", goal=request.goal.id, error=repr(error))
            reason = str(error) or type(error).__name__
            await self._store.write(judging.store_failure, request, reason)
        else:
            usage = self._context.ids.new_usage_id()
            await self._store.write(judging.store_verdict, request, answer, usage)
        finally:
            self._judging.discard(request.goal.id)


def _pause_broken(t: Tx, goal_id: str, error: str) -> None:
    goal = goals.lock_goal(t, goal_id)
    if goal is not None and goal.state is GoalState.ACTIVE:
        goals.end_goal(t, goal, GoalState.PAUSED, GoalReason.BROKEN, remark=error)
