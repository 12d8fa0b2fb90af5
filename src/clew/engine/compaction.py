"""
Compaction: a session's context is made smaller and goes on in a successor.

One way for every caller: lock, summarise without a lease, rotate under the caller's lease or a
short one of its own. Whatever fails, nothing has changed.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING

import structlog

from clew.agent import messages as codec
from clew.agent.compactor import (
    HEADINGS,
    RunUsage,
    cleared,
    context_window,
    original_seq,
    sized,
    summary_message,
)
from clew.clock import to_millis
from clew.core import compaction as rules
from clew.core import session as reasons
from clew.core.base import Literal, Range, joined
from clew.core.ids import session_id
from clew.core.session import Head
from clew.errors import Refused, StoreError
from clew.store.transactions import compactions, context, entries, leases, locks, sessions

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clew.agent.compactor import Compactor
    from clew.agent.messages import ModelMessage
    from clew.agent.models import Model
    from clew.clock import Clock
    from clew.core.base import BaseItem
    from clew.core.ids import ConversationId, Ids, OwnerId, SessionId
    from clew.core.lease import Lease
    from clew.store.contract import Store
    from clew.store.transactions.context import Context, ContextMessage

log = structlog.get_logger(__name__)

#: A window for models that do not tell theirs, when a person asks for compaction.
ASSUMED_WINDOW = 100_000
#: Clearing old results is enough if it brings the context under this share of the budget.
_ENOUGH = 0.7
_SHORT_LEASE = timedelta(seconds=15)


@dataclass(frozen=True, kw_only=True, slots=True)
class Policy:
    """The settings of compaction."""

    enabled: bool = True
    #: Share of the context window at which a context is compacted.
    threshold: float = 0.75
    #: Share of the window that the newest messages keep.
    keep_recent: float = 0.2
    #: In tokens, where the provider does not say.
    window: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Compacted:
    """What came of a compaction."""

    session_id: SessionId
    #: Whether the conversation goes on in another session now.
    moved: bool
    messages_before: int
    messages_after: int
    tokens_before: int
    tokens_after: int
    #: Why nothing was done, or the summary.
    note: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """What a compaction would make of a context."""

    items: tuple[BaseItem, ...]
    messages_after: int
    tokens_before: int
    tokens_after: int
    summary: str


class Refusal(Refused):
    """The summary that came is no good; nothing was changed."""


class Compactions:
    """Compacts conversations; holds nothing between calls."""

    def __init__(
        self,
        store: Store,
        ids: Ids,
        clock: Clock,
        *,
        compactor: Compactor,
        model: Model,
        policy: Policy,
    ) -> None:
        self._store, self._ids, self._clock = store, ids, clock
        self._compactor, self._model = compactor, model
        self.policy = policy

    def window(self, model: Model) -> int | None:
        """The context window in tokens, where it is known."""
        return self.policy.window or context_window(model)

    async def needed(self, tokens: int, model: Model, session: SessionId, turn_from: int) -> bool:
        """Whether a context of this size is to be compacted by itself, and may be now."""
        window = self.window(model)
        if not self.policy.enabled or window is None:
            return False
        if not rules.over_budget(tokens, window=window, threshold=self.policy.threshold):
            return False
        return await self.allowed(session, turn_from)

    async def allowed(self, session: SessionId, turn_from: int) -> bool:
        """Whether compaction may run by itself now."""
        state = await self._store.read(compactions.compaction_state, session)
        return self.policy.enabled and rules.may_compact(
            state, now=to_millis(self._clock.now()), turn_from=turn_from
        )

    async def compact(
        self,
        conversation: ConversationId,
        *,
        owner: OwnerId,
        lease: Lease | None = None,
        focus: str | None = None,
        holder: str | None = None,
        on_demand: bool = False,
        operation: str | None = None,
    ) -> Compacted:
        """
        Compact the current session of a conversation; once per ``operation``.

        While another holds the compression lock nothing is summarised and nothing moves. A
        summary that is no good, a model that fails, or a head that moved meanwhile change nothing.

        :raises LeaseHeld: if no lease was given and another owner holds it
        """
        found = await self._store.read(context.head_context, conversation)
        operation = operation or self._ids.operation()
        if await self._store.read(sessions.opened_by_operation, operation) is not None:
            return _unmoved(found, "it was compacted already")
        holder = holder or operation
        if not await self._lock(found.session.id, holder):
            return _unmoved(found, "another compaction of this conversation is under way")
        try:
            return await self._locked(found, owner, lease, focus, operation, on_demand=on_demand)
        finally:
            await self._unlock(found.session.id, holder)

    async def _locked(
        self,
        found: Context,
        owner: OwnerId,
        lease: Lease | None,
        focus: str | None,
        operation: str,
        *,
        on_demand: bool,
    ) -> Compacted:
        try:
            plan = await self.plan(found, focus=focus, on_demand=on_demand)
        except StoreError:
            raise
        except Exception as error:
            log.warning("compaction_failed", session=found.session.id, exc_info=True)
            await self._failed(found.session.id)
            return _unmoved(found, f"it could not be summarised: {error}")
        if plan is None:
            return _unmoved(found, "there is nothing to compact yet")
        try:
            return await self._rotate(found, plan, owner, lease, operation)
        except Refused as error:
            log.info("compaction_overtaken", session=found.session.id, error=str(error))
            return _unmoved(found, "the conversation went on meanwhile")

    async def plan(
        self, found: Context, *, focus: str | None = None, on_demand: bool = True
    ) -> Plan | None:
        """
        What compacting would make of a context; ``None`` if nothing can go.

        :raises Refusal: if the summary is no good
        """
        window = self.window(self._model) or ASSUMED_WINDOW
        loaded = [codec.load(message.message) for message in found.messages]
        sizes = [sized(message) for message in loaded]
        tail = rules.cut(sizes, keep=int(window * self.policy.keep_recent))
        if tail == 0:
            return None
        before = sum(size.tokens for size in sizes)
        if not on_demand:
            smaller = await self._cleared(found.messages, loaded, tail)
            after = sum(sized(message).tokens for message, _ in smaller)
            if after < before and after <= window * self.policy.threshold * _ENOUGH:
                return _plan([item for _, item in smaller], len(smaller), before, after, "")
        return await self._summarised(found, loaded, sizes, tail, focus, window)

    async def _cleared(
        self, stored: Sequence[ContextMessage], loaded: list[ModelMessage], tail: int
    ) -> list[tuple[ModelMessage, BaseItem]]:
        smaller = await self._compactor.clear(loaded, keep_from=tail)
        if len(smaller) != len(loaded):
            return [(message, _item(entry)) for message, entry in zip(loaded, stored, strict=True)]
        return [
            (new, _item(entry) if new is old or entry.seq is None else _shortened(new, entry.seq))
            for new, old, entry in zip(smaller, loaded, stored, strict=True)
        ]

    async def _summarised(
        self,
        found: Context,
        loaded: list[ModelMessage],
        sizes: list[rules.Sized],
        tail: int,
        focus: str | None,
        window: int,
    ) -> Plan:
        old = [await self._whole(found, message) for message in loaded[:tail]]
        usage = RunUsage()
        summary = await self._compactor.summarise(
            old, self._model, window=window, focus=focus, usage=usage
        )
        replaced = sum(sized(message).tokens for message in old)
        if why := rules.refusal(summary, replaces=replaced, headings=HEADINGS):
            raise Refusal(why)
        kept = list(range(tail, len(loaded)))
        last = rules.last_user(sizes)
        if last is not None and last < tail:
            # The newest request is never left to a summary.
            kept.insert(0, last)
        message = summary_message(summary)
        items = [Literal(format=codec.FORMAT, message=codec.dump(message))]
        after = sized(message).tokens + sum(sizes[index].tokens for index in kept)
        return _plan(
            [*items, *(_item(found.messages[index]) for index in kept)],
            len(kept) + 1,
            sum(size.tokens for size in sizes),
            after,
            summary,
        )

    async def _whole(self, found: Context, message: ModelMessage) -> ModelMessage:
        """A message as it was said, also where its results were cleared from the context."""
        seq = original_seq(message)
        if seq is None:
            return message
        stored = await self._store.read(
            entries.entries_between, found.session.conversation_id, first=seq, last=seq
        )
        return codec.load(stored[0].message) if stored else message

    async def _rotate(
        self, found: Context, plan: Plan, owner: OwnerId, lease: Lease | None, operation: str
    ) -> Compacted:
        own = None if lease else await self._short_lease(found.session.conversation_id, owner)
        state = await self._store.read(compactions.compaction_state, found.session.id)
        try:
            session = await self._store.write(
                compactions.compress,
                lease or own,  # pyright: ignore[reportArgumentType]  (one of them is there)
                operation=operation,
                expected=Head(session=found.session.id, last_seq=found.last_seq),
                base=plan.items,
                reason=reasons.COMPRESSION,
                state=rules.after_success(
                    state,
                    last_seq=found.last_seq,
                    before=plan.tokens_before,
                    after=plan.tokens_after,
                ),
                session_ids=session_id,
            )
        finally:
            if own is not None:
                await self._store.write(leases.release, own)
        log.info("session_compacted", session=session.id, predecessor=found.session.id)
        return Compacted(
            session_id=session.id,
            moved=True,
            messages_before=len(found.messages),
            messages_after=plan.messages_after,
            tokens_before=plan.tokens_before,
            tokens_after=plan.tokens_after,
            note=plan.summary,
        )

    async def _short_lease(self, conversation: ConversationId, owner: OwnerId) -> Lease:
        acquired = await self._store.write(
            leases.acquire, conversation, owner=owner, duration=_SHORT_LEASE
        )
        return acquired.lease

    async def _failed(self, session: SessionId) -> None:
        state = await self._store.read(compactions.compaction_state, session)
        state = rules.after_failure(state, now=to_millis(self._clock.now()))
        await self._store.write(compactions.remember_compaction, session, state)

    async def _lock(self, session: SessionId, holder: str) -> bool:
        try:
            return await self._store.write(locks.try_acquire_compression_lock, session, holder)
        except StoreError:
            raise
        except Exception:
            # The lock saves work; that there is one successor is a constraint of the store.
            log.warning("compression_lock_unusable", session=session, exc_info=True)
            return True

    async def _unlock(self, session: SessionId, holder: str) -> None:
        try:
            await self._store.write(locks.release_compression_lock, session, holder)
        except Exception:
            log.warning("compression_lock_unusable", session=session, exc_info=True)


def _plan(items: Sequence[BaseItem], messages: int, before: int, after: int, summary: str) -> Plan:
    return Plan(
        items=joined(items),
        messages_after=messages,
        tokens_before=before,
        tokens_after=after,
        summary=summary,
    )


def _item(message: ContextMessage) -> BaseItem:
    if message.seq is None:
        return Literal(format=message.format, message=message.message)
    return Range(first=message.seq, last=message.seq)


def _shortened(message: ModelMessage, seq: int) -> Literal:
    return Literal(format=codec.FORMAT, message=codec.dump(cleared(message, seq)))


def _unmoved(found: Context, note: str) -> Compacted:
    count = len(found.messages)
    return Compacted(
        session_id=found.session.id,
        moved=False,
        messages_before=count,
        messages_after=count,
        tokens_before=0,
        tokens_after=0,
        note=note,
    )
