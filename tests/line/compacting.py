"""A compactor each of whose summaries is a point, and compactions that come when a test says."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.engine.compaction import CompactionPolicy

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pydantic_ai.messages import ModelMessage

    from clew.agent.compactor import RunUsage
    from clew.agent.models import Model
    from clew.engine.compaction import CompactionService
    from tests.line.points import Points

#: Shorter than whatever it replaces here, so that it is good.
_SUMMARY = "## Done\nwarm"
#: In tokens; with a threshold that any context is over.
_WINDOW, _THRESHOLD = 1_000_000, 1e-9
BEGINS, ENDS = "summary begins", "summary ends"


class Compacting:
    """Clears nothing, so that each compaction is a summary; counts them."""

    def __init__(self, points: Points) -> None:
        self._points = points
        self._compactions: CompactionService | None = None
        self.summaries = 0

    def bind(self, compactions: CompactionService) -> None:
        """The compactions that ``arm`` is about."""
        self._compactions = compactions

    def arm(self, *, keep: int = 0, overflow: bool = False) -> None:
        """
        Let the next request find its context too long, for which one summary is made.

        ``keep``: tokens of the tail, which is never less than what belongs to the last message.
        With ``overflow`` only what the provider refuses is too long.
        """
        window = None if overflow else _WINDOW
        self._set(CompactionPolicy(window=window, threshold=_THRESHOLD, keep_recent=keep / _WINDOW))

    def disarm(self) -> None:
        """Let every context fit."""
        self._set(CompactionPolicy(window=None))

    def _set(self, policy: CompactionPolicy) -> None:
        assert self._compactions is not None
        self._compactions.planner.policy = policy

    async def clear_results(
        self, messages: Sequence[ModelMessage], *, keep_from: int
    ) -> list[ModelMessage]:
        return list(messages)

    async def summarise_messages(
        self,
        messages: Sequence[ModelMessage],
        model: Model,
        *,
        window: int,
        focus: str | None,
        usage: RunUsage,
    ) -> str:
        self.disarm()
        self.summaries += 1
        await self._points.reach(BEGINS)
        await self._points.reach(ENDS)
        return _SUMMARY
