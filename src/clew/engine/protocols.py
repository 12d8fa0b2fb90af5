"""Parts that a turn's log, journal and failover policy are given at their construction."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from clew.agent.models import Model
    from clew.agent.provider_errors import ProviderFailure
    from clew.core.ids import SessionId
    from clew.engine.compaction import Compacted


class WaitPermit(Protocol):
    """The permit of a running turn, which others may use during its long waits."""

    def lend_while_waiting(self, *, for_turns: bool = False) -> AbstractContextManager[None]:
        """
        Lend the permit while the block waits for a model, a tool or a retry.

        If it waits for other turns, the permit is lent at once.
        """
        ...

    def keep_while_working(self) -> AbstractContextManager[None]:
        """Keep the permit while a block within such a wait works itself."""
        ...


class StepCounter(Protocol):
    """The count of a turn's answered model requests."""

    @property
    def steps(self) -> int:
        """Return the number of the turn's answered model requests."""
        ...


class ContextCompactor(Protocol):
    """Compaction during a turn, under its lease; the caller stores the notices."""

    async def compact_if_needed(
        self, tokens: int, model: Model, session: SessionId
    ) -> Compacted | None:
        """Compact a context that is too long for the model; return ``None`` if it fits."""
        ...

    async def recover_from_overflow(
        self, failure: ProviderFailure, model: Model, session: SessionId, tokens: int
    ) -> Compacted | None:
        """Shrink a context that the provider rejects; return ``None`` if that cannot help."""
        ...
