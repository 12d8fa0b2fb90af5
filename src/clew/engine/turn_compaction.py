"""Compaction during a turn: before a request that is too long, or after a provider rejects it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.agent.provider_errors import FailureKind, refuses_images
from clew.core.compaction import LARGE_CONTEXT

if TYPE_CHECKING:
    from clew.agent.models import Model
    from clew.agent.provider_errors import ProviderFailure
    from clew.core.ids import SessionId
    from clew.core.lease import Lease
    from clew.core.turn import Turn
    from clew.engine.compaction import Compacted, CompactionService
    from clew.engine.protocols import WaitPermit
    from clew.engine.turn_hooks import TurnHooks


class TurnCompaction:
    """The protocol ``ContextCompactor`` for one turn."""

    def __init__(
        self,
        service: CompactionService,
        hooks: TurnHooks,
        permit: WaitPermit,
        *,
        lease: Lease,
        turn: Turn,
    ) -> None:
        self._service, self._hooks, self._permit = service, hooks, permit
        self._lease, self._turn = lease, turn

    async def compact_if_needed(
        self, tokens: int, model: Model, session: SessionId
    ) -> Compacted | None:
        if not await self._service.should_compact(tokens, model, session, self._turn.first_seq):
            return None
        return await self._compact_context(model)

    async def recover_from_overflow(
        self, failure: ProviderFailure, model: Model, session: SessionId, tokens: int
    ) -> Compacted | None:
        if failure.kind is FailureKind.TOO_LARGE:
            return await self._drop_images()
        if refuses_images(failure):
            return await self._drop_images(refused=True)
        if not _may_be_overflow(failure, tokens):
            return None
        if not await self._service.may_compact(session, self._turn.first_seq):
            return None
        done = await self._compact_context(model, overflowed=True)
        if done.busy:
            # The step cannot be repeated before that compaction ends: wait for it, then try again.
            with self._permit.lend_while_waiting():
                await self._service.wait_for_other_compaction(session)
            done = await self._compact_context(model, overflowed=True)
        return done

    async def _compact_context(self, model: Model, *, overflowed: bool = False) -> Compacted:
        return self._enter_successor(
            await self._service.compact(
                self._turn.conversation_id,
                owner=self._lease.owner,
                lease=self._lease,
                overflowed=overflowed,
                asked=model,
            )
        )

    async def _drop_images(self, *, refused: bool = False) -> Compacted:
        return self._enter_successor(
            await self._service.drop_images(
                self._turn.conversation_id,
                owner=self._lease.owner,
                lease=self._lease,
                turn_from=None if refused else self._turn.first_seq,
            )
        )

    def _enter_successor(self, done: Compacted) -> Compacted:
        if done.moved:
            self._hooks.enter_successor(done.session_id)
        return done


def _may_be_overflow(failure: ProviderFailure, tokens: int) -> bool:
    """Return whether it may be an overflow: some providers answer a long request with nothing."""
    if failure.kind is FailureKind.EMPTY:
        return tokens > LARGE_CONTEXT
    return failure.kind is FailureKind.OVERFLOW
