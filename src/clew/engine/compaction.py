"""
Compaction: a session's context is made smaller and goes on in a successor.

One way for every caller: lock, summarise without a lease, rotate under the caller's lease or a
short one of its own. Whatever fails, nothing has changed.
"""

from __future__ import annotations

import asyncio
import functools
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypedDict

import structlog

from clew.agent import messages as codec
from clew.agent.compactor import estimate_size, get_model_context_window
from clew.agent.failures import classify_error
from clew.clock import to_millis
from clew.core import compaction as rules
from clew.core import session as reasons
from clew.core.context import NOTHING_TO_COMPACT
from clew.core.ids import new_session_id
from clew.core.session import Head
from clew.engine.compression_lock import CompressionLock, StoredLock
from clew.engine.plans import Plan, Plans, Policy
from clew.engine.uncancelled import uncancelled
from clew.errors import ClewError, LeaseLost, OperationRefused, StoreError
from clew.store.transactions import compactions, context, sessions
from clew.store.transactions.settings import get_setting, put_setting

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from clew.agent.compactor import Compactor
    from clew.agent.messages import ModelMessage
    from clew.agent.models import Model
    from clew.clock import Clock
    from clew.core.base import Base
    from clew.core.context import CompactionPreview
    from clew.core.ids import ConversationId, IdGenerator, OwnerId, SessionId, SessionIdFactory
    from clew.core.lease import Lease
    from clew.store.contract import Store
    from clew.store.transactions.context import Context

__all__ = ["Compacted", "Compactions", "Policy"]

log = structlog.get_logger(__name__)

#: Kept with the conversation: that the person was told.
_OFTEN_TOLD = "compaction.often_told"
_OFTEN = (
    "Long tool results keep filling the model's context, so it is compacted after almost every "
    "message. Results are shortened further from now on; asking for less at a time, or a model "
    "with a larger context window, helps."
)
_LIGHTER = (
    "The provider takes no request of this size, so older pictures of this conversation are not "
    "shown to the model any more; it still reads their names."
)
_OVERTAKEN = "the conversation went on meanwhile"
#: Seconds between two looks whether another compaction is over, and how often is looked.
_PAUSE, _LOOKS = 0.1, 6000


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
    #: Another compaction of the conversation was under way.
    busy: bool = False
    #: No summary came that is any good.
    failed: bool = False
    #: What the person should hear of a failure, the first time.
    alarm: str | None = None
    #: What the person should hear of a conversation that fills up again and again, once.
    remark: str | None = None
    #: For callers of ``Engine.compact``: the context to go on with.
    messages: Sequence[ModelMessage] = ()

    @property
    def notices(self) -> list[str]:
        """What the person of the conversation should hear of it."""
        alarm = self.alarm and f"The conversation could not be compacted: {self.alarm}"
        return [notice for notice in (alarm, self.remark) if notice]

    @property
    def told(self) -> str:
        """What the person who asked for it is told; without the full stop."""
        if not self.moved:
            return f"Nothing was compacted: {self.note}"
        return (
            f"Compacted: {self.messages_before} messages became {self.messages_after}, about "
            f"{self.tokens_before:,} tokens became {self.tokens_after:,}"
        )


class Compactions:
    """Compacts conversations; holds nothing between calls."""

    def __init__(  # noqa: PLR0913  (wired in one place)
        self,
        store: Store,
        ids: IdGenerator,
        clock: Clock,
        *,
        compactor: Compactor,
        model: Model,
        policy: Policy,
        apart: bool = False,
        standby: Model | None = None,
        lock: CompressionLock | None = None,
        session_ids: SessionIdFactory = new_session_id,
    ) -> None:
        """
        ``apart``: the model does nothing but summarise, and has a window of its own. Where it
        fails the ``standby`` writes the summary.
        """
        self._store, self._ids, self._clock = store, ids, clock
        self.plans = Plans(
            store,
            ids,
            compactor=compactor,
            model=model,
            policy=policy,
            apart=apart,
            standby=standby,
        )
        self._lock = lock or StoredLock(store)
        self._session_ids = session_ids

    @property
    def policy(self) -> Policy:
        """When and how far contexts are compacted; the plans hold it."""
        return self.plans.policy

    def window(self, model: Model) -> int | None:
        """The context window in tokens, where it is known."""
        return self.policy.window or get_model_context_window(model)

    async def needed(self, tokens: int, model: Model, session: SessionId, turn_from: int) -> bool:
        """Whether a context of this size is to be compacted by itself, and may be now."""
        window = self.window(model)
        if not self.policy.enabled or window is None:
            return False
        if not rules.exceeds_budget(tokens, window=window, threshold=self.policy.threshold):
            return False
        return await self.allowed(session, turn_from)

    async def allowed(self, session: SessionId, turn_from: int) -> bool:
        """Whether compaction may run by itself now."""
        state = await self._store.read(compactions.load_compaction_state, session)
        return self.policy.enabled and rules.may_compact(
            state, now=to_millis(self._clock.now()), turn_from=turn_from
        )

    async def compact(  # noqa: PLR0913  (a facade over one way for every caller)
        self,
        conversation: ConversationId,
        *,
        owner: OwnerId,
        lease: Lease | None = None,
        session: SessionId | None = None,
        focus: str | None = None,
        holder: str | None = None,
        on_demand: bool = False,
        overflowed: bool = False,
        asked: Model | None = None,
        operation: str | None = None,
    ) -> Compacted:
        """
        Compact the current session of a conversation, if it is still ``session``; once per
        ``operation``. It is to fit the model that is ``asked``, which may be another than the one
        that summarises. ``overflowed`` says that its context was too long for that model,
        whatever is known of the window.

        While another holds the compression lock nothing is summarised and nothing moves. A
        summary that is no good, a model that fails, or a head that moved meanwhile change nothing.

        :raises NotFound: if there is no such conversation
        """

        def planning(found: Context) -> Callable[..., Awaitable[Plan | None]]:
            return functools.partial(
                self.plans.plan,
                found,
                focus=focus,
                on_demand=on_demand,
                overflowed=overflowed,
                asked=asked,
            )

        operation = operation or self._ids.new_operation_id()
        work = _Work(owner=owner, lease=lease, operation=operation, planning=planning)
        holder = holder or f"{owner}:{operation}"
        return await self._under_lock(conversation, work, holder, session=session)

    async def lighten(
        self, conversation: ConversationId, *, owner: OwnerId, lease: Lease, turn_from: int
    ) -> Compacted:
        """
        Leave older pictures out of the context, where a request had too many bytes.

        ``turn_from`` is the first seq of the running turn, whose pictures stay.

        :raises NotFound: if there is no such conversation
        """

        def planning(found: Context) -> Callable[..., Awaitable[Plan | None]]:
            async def plan(*, hard: bool) -> Plan | None:
                return await self.plans.lighter(found, turn_from=turn_from)

            return plan

        operation = self._ids.new_operation_id()
        work = _Work(owner=owner, lease=lease, operation=operation, planning=planning)
        done = await self._under_lock(conversation, work, f"{owner}:{operation}")
        return replace(done, remark=_LIGHTER) if done.moved else done

    async def _under_lock(
        self,
        conversation: ConversationId,
        work: _Work,
        holder: str,
        *,
        session: SessionId | None = None,
    ) -> Compacted:
        head = await self._store.read(sessions.get_head, conversation)
        if not await self._locked(head.id, holder):
            found = await self._store.read(context.read_head_context, conversation)
            note = "another compaction of this conversation is under way"
            return replace(_unmoved(found, note), busy=True)
        try:
            # Read under the lock: whoever had it before may have moved the head.
            found = await self._store.read(context.read_head_context, conversation)
            done = await self._store.read(sessions.find_session_by_operation, work.operation)
            if done is not None or session not in (None, found.session.id):
                return _unmoved(found, "it was compacted already")
            # Begun only where it is waited for: a stop may come first.
            return await self._alone(found, work)
        finally:
            await self._unlock(head.id, holder)

    async def others_are_done(self, session: SessionId) -> None:
        """Wait until nobody compacts the session's conversation, but not for ever."""
        for _ in range(_LOOKS):
            if await self._lock.get_compression_lock_holder(session) is None:
                return
            await asyncio.sleep(_PAUSE)

    async def _alone(self, found: Context, work: _Work) -> Compacted:
        before = await self._store.read(compactions.load_compaction_state, found.session.id)
        often = rules.is_too_frequent(before, last_seq=found.last_seq)
        try:
            plan = await work.planning(found)(hard=often)
        except StoreError:
            raise
        except asyncio.CancelledError:
            # A stop or a drain is no failure of the summariser.
            await uncancelled(self._remember(found.session.id, before))
            raise
        except Exception as error:
            log.warning("compaction_failed", session=found.session.id, exc_info=True)
            note = _why(error)
            state = await self._failed(found.session.id, error)
            await self._remember(found.session.id, state)
            alarm = None if before.told else note
            return replace(_unmoved(found, note), failed=True, alarm=alarm)
        if plan is None:
            return _unmoved(found, NOTHING_TO_COMPACT)
        try:
            done = await self._rotate(found, plan, before, work)
            return await self._remarked(found, done) if often and plan.counts else done
        except OperationRefused as error:
            if work.lease is not None and isinstance(error, LeaseLost):
                raise
            log.info("compaction_overtaken", session=found.session.id, error=str(error))
            await self._remember(found.session.id, before)
            return _unmoved(found, _OVERTAKEN)

    async def _remarked(self, found: Context, done: Compacted) -> Compacted:
        """Tell the person, the first time in a conversation, that it fills up again and again."""
        conversation = found.session.conversation_id
        first = await self._store.read(get_setting, conversation, _OFTEN_TOLD) is None
        if not first:
            return done
        await self._store.write(put_setting, conversation, _OFTEN_TOLD, "true")
        return replace(done, remark=_OFTEN)

    async def preview(self, conversation: ConversationId) -> CompactionPreview:
        """
        What compacting on demand would do now; no model is asked and nothing changes.

        :raises NotFound: if there is no such conversation
        """
        return self.plans.preview(await self._store.read(context.read_head_context, conversation))

    async def _rotate(
        self, found: Context, plan: Plan, before: rules.CompactionState, work: _Work
    ) -> Compacted:
        rotation = _Rotation(
            operation=work.operation,
            expected=Head(session=found.session.id, last_seq=found.last_seq),
            base=plan.items,
            reason=reasons.COMPRESSION,
            state=await self._after(found, plan, before),
            session_ids=self._session_ids,
        )
        if work.lease is not None:
            session = await self._store.write(compactions.rotate_compacted, work.lease, **rotation)
        else:
            conversation = found.session.conversation_id
            session = await self._store.write(
                compactions.rotate_compacted_with_own_lease,
                conversation,
                owner=work.owner,
                **rotation,
            )
        log.info("session_compacted", session=session.id, predecessor=found.session.id)
        return Compacted(
            session_id=session.id,
            moved=True,
            messages_before=len(found.messages),
            messages_after=plan.messages_after,
            tokens_before=plan.tokens_before,
            tokens_after=plan.tokens_after,
            note=plan.summary,
            alarm=None if plan.failure is None or before.told else _why(plan.failure),
        )

    async def _after(
        self, found: Context, plan: Plan, before: rules.CompactionState
    ) -> rules.CompactionState:
        """What the successor is to remember."""
        if not plan.counts:
            return before
        if plan.failure is None:
            return rules.record_success(
                before, last_seq=found.last_seq, before=plan.tokens_before, after=plan.tokens_after
            )
        state = await self._failed(found.session.id, plan.failure)
        return replace(state, fired=(*state.fired[-9:], found.last_seq))

    async def _failed(self, session: SessionId, error: Exception) -> rules.CompactionState:
        """What is to be remembered of a failure."""
        state = await self._store.read(compactions.load_compaction_state, session)
        now, refused = to_millis(self._clock.now()), isinstance(error, OperationRefused)
        return rules.record_failure(state, now=now, refused=refused)

    async def _remember(self, session: SessionId, state: rules.CompactionState) -> None:
        await self._store.write(compactions.save_compaction_state, session, state)

    async def _locked(self, session: SessionId, holder: str) -> bool:
        try:
            return await self._lock.try_acquire_compression_lock(session, holder)
        except StoreError:
            raise
        except Exception:
            # The lock saves work; that there is one successor is a constraint of the store.
            log.warning("compression_lock_unusable", session=session, exc_info=True)
            return True

    async def _unlock(self, session: SessionId, holder: str) -> None:
        try:
            await self._lock.release_compression_lock(session, holder)
        except Exception:
            log.warning("compression_lock_unusable", session=session, exc_info=True)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Work:
    """One compaction: for whom, and how its plan is made."""

    owner: OwnerId
    lease: Lease | None
    operation: str
    planning: Callable[[Context], Callable[..., Awaitable[Plan | None]]]


class _Rotation(TypedDict):
    """What every rotation into a compacted base says, whoever holds the lease."""

    operation: str
    expected: Head
    base: Base
    reason: str
    state: rules.CompactionState
    session_ids: SessionIdFactory


def _why(error: Exception) -> str:
    said = str(error) if isinstance(error, ClewError) else classify_error(error).user_message
    return f"it could not be summarised: {said}"


def _unmoved(found: Context, note: str) -> Compacted:
    count, tokens = len(found.messages), _tokens(found)
    return Compacted(
        session_id=found.session.id,
        moved=False,
        messages_before=count,
        messages_after=count,
        tokens_before=tokens,
        tokens_after=tokens,
        note=note,
    )


def _tokens(found: Context) -> int:
    try:
        return sum(
            estimate_size(codec.load_message(message.message)).tokens for message in found.messages
        )
    except ValueError:  # a message that cannot be read, which may be why nothing was done
        return 0
