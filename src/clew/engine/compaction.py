"""
Compaction: a session's context is shortened and continues in a successor.

Every caller uses the same steps: lock, summarise without a lease, rotate under the caller's
lease or a short one of its own. A failure at any step changes nothing.
"""

from __future__ import annotations

import asyncio
import functools
from typing import TYPE_CHECKING, TypedDict

import structlog

from clew import wording
from clew.agent import messages as codec
from clew.agent.compactor import estimate_size, get_model_context_window
from clew.agent.provider_errors import classify_error
from clew.background import shield_until_done
from clew.clock import to_millis
from clew.core import compaction as rules
from clew.core import session as reasons
from clew.core.ids import new_session_id
from clew.core.session import Head
from clew.engine.compaction_planner import CompactionPlan, CompactionPlanner, CompactionPolicy
from clew.engine.compression_lock import CompressionLock, StoreCompressionLock
from clew.errors import ClewError, LeaseLost, OperationRefused, StoreError
from clew.record import Record, replace
from clew.store.transactions import compactions, context, sessions
from clew.store.transactions.settings import get_setting, put_setting

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from clew.agent.compactor import Compactor
    from clew.agent.messages import ModelMessage
    from clew.agent.models import Model
    from clew.clock import Clock
    from clew.core.context_view import CompactionPreview
    from clew.core.ids import ConversationId, IdGenerator, OwnerId, SessionId, SessionIdFactory
    from clew.core.lease import Lease
    from clew.core.session_base import Base
    from clew.store.contract import Store
    from clew.store.transactions.context import Context

__all__ = ["Compacted", "CompactionPolicy", "CompactionService"]

log = structlog.get_logger(__name__)

#: Setting of the conversation: the notice was sent.
_FREQUENT_NOTICE_SETTING = "compaction.often_told"
_FREQUENT_NOTICE = (
    "Long tool results keep filling the model's context, so it is compacted after almost every "
    "message. Results are shortened further from now on. Ask for less at a time, or use a model "
    "with a larger context window."
)
_IMAGES_DROPPED_NOTICE = (
    "The provider accepts no request of this size, so older pictures of this conversation are "
    "not shown to the model any more; it still reads their names."
)
_IMAGES_REFUSED_NOTICE = (
    "The model in use accepts no pictures, so those of this conversation are not shown to it; it "
    "reads their names. Set model.pictures to false, and model.picture_model to one that "
    "describes them."
)
_SUPERSEDED_NOTE = "the conversation has changed meanwhile"
#: Seconds between two checks for the end of another compaction, and their maximum number.
_POLL_INTERVAL, _MAX_POLLS = 0.1, 6000


class Compacted(Record):
    """The result of a compaction."""

    session_id: SessionId
    #: True if the conversation continues in another session.
    moved: bool
    messages_before: int
    messages_after: int
    tokens_before: int
    tokens_after: int
    #: The summary, or the reason why nothing was done.
    note: str
    #: Another compaction of the conversation was under way.
    busy: bool = False
    #: No usable summary was produced.
    failed: bool = False
    #: Notice to the person about a failure, the first time.
    alarm: str | None = None
    #: One-time notice to the person about a context that keeps filling up.
    remark: str | None = None
    #: For callers of ``Engine.compact``: the context to continue with.
    messages: Sequence[ModelMessage] = ()

    @property
    def notices(self) -> list[str]:
        """Return the notices for the person of the conversation."""
        alarm = self.alarm and f"The conversation could not be compacted: {self.alarm}"
        return [notice for notice in (alarm, self.remark) if notice]

    @property
    def outcome_text(self) -> str:
        """Return the outcome for the person who asked, without the final full stop."""
        if not self.moved:
            return f"Nothing was compacted: {self.note}"
        return (
            f"Compacted: {self.messages_before} messages became {self.messages_after}, about "
            f"{self.tokens_before:,} tokens became {self.tokens_after:,}"
        )


class CompactionService:
    """Compaction of conversations; keeps no state between calls."""

    def __init__(  # noqa: PLR0913  (wired in one place)
        self,
        store: Store,
        ids: IdGenerator,
        clock: Clock,
        *,
        compactor: Compactor,
        model: Model,
        policy: CompactionPolicy,
        apart: bool = False,
        standby: Model | None = None,
        lock: CompressionLock | None = None,
        session_ids: SessionIdFactory = new_session_id,
    ) -> None:
        """
        Wire the service.

        ``apart``: the model does nothing but summarise and has a context window of its own.
        If it fails, the ``standby`` writes the summary.
        """
        self._store, self._ids, self._clock = store, ids, clock
        self.planner = CompactionPlanner(
            store,
            ids,
            compactor=compactor,
            model=model,
            policy=policy,
            apart=apart,
            standby=standby,
        )
        self._lock = lock or StoreCompressionLock(store)
        self._session_ids = session_ids

    @property
    def policy(self) -> CompactionPolicy:
        """Return the settings for when and how far contexts are compacted."""
        return self.planner.policy

    def get_context_window(self, model: Model) -> int | None:
        """Return the model's context window in tokens, if known."""
        return self.policy.window or get_model_context_window(model)

    async def should_compact(
        self, tokens: int, model: Model, session: SessionId, turn_from: int
    ) -> bool:
        """Return whether a context of this size needs automatic compaction, allowed now."""
        window = self.get_context_window(model)
        if not self.policy.enabled or window is None:
            return False
        if not rules.exceeds_budget(tokens, window=window, threshold=self.policy.threshold):
            return False
        return await self.may_compact(session, turn_from)

    async def may_compact(self, session: SessionId, turn_from: int) -> bool:
        """Return whether automatic compaction may run now."""
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
        Compact the head session of a conversation, once per ``operation``.

        Nothing happens unless the head is still ``session``. The result must fit the model
        that is ``asked``, which may be another than the summarising one. ``overflowed``:
        the context was too long for that model, whatever its known window.

        While another holder has the compression lock nothing is summarised or moved. An
        unusable summary, a failing model or a head that moved meanwhile change nothing.

        :raises NotFound: if there is no such conversation
        """

        def bind_plan(found: Context) -> Callable[..., Awaitable[CompactionPlan | None]]:
            return functools.partial(
                self.planner.make_plan,
                found,
                focus=focus,
                on_demand=on_demand,
                overflowed=overflowed,
                asked=asked,
            )

        operation = operation or self._ids.new_operation_id()
        work = _CompactionJob(owner=owner, lease=lease, operation=operation, bind_plan=bind_plan)
        holder = holder or f"{owner}:{operation}"
        return await self._compact_under_lock(conversation, work, holder, session=session)

    async def drop_images(
        self, conversation: ConversationId, *, owner: OwnerId, lease: Lease, turn_from: int | None
    ) -> Compacted:
        """
        Replace older images in the context after a request with too many bytes.

        ``turn_from`` is the first seq of the running turn, whose images stay; ``None`` if the
        model takes no images at all.

        :raises NotFound: if there is no such conversation
        """

        def bind_plan(found: Context) -> Callable[..., Awaitable[CompactionPlan | None]]:
            async def make_plan(*, hard: bool) -> CompactionPlan | None:
                return await self.planner.plan_without_images(found, turn_from=turn_from)

            return make_plan

        operation = self._ids.new_operation_id()
        work = _CompactionJob(owner=owner, lease=lease, operation=operation, bind_plan=bind_plan)
        done = await self._compact_under_lock(conversation, work, f"{owner}:{operation}")
        notice = _IMAGES_REFUSED_NOTICE if turn_from is None else _IMAGES_DROPPED_NOTICE
        return replace(done, remark=notice) if done.moved else done

    async def _compact_under_lock(
        self,
        conversation: ConversationId,
        work: _CompactionJob,
        holder: str,
        *,
        session: SessionId | None = None,
    ) -> Compacted:
        head = await self._store.read(sessions.get_head, conversation)
        if not await self._acquire_lock(head.id, holder):
            found = await self._store.read(context.read_head_context, conversation)
            note = "another compaction of this conversation is under way"
            return replace(_build_unchanged_result(found, note), busy=True)
        try:
            # Read under the lock: its previous holder may have moved the head.
            found = await self._store.read(context.read_head_context, conversation)
            done = await self._store.read(sessions.find_session_by_operation, work.operation)
            if done is not None or session not in (None, found.session.id):
                return _build_unchanged_result(found, "it has just been compacted")
            # Created only where it is awaited: a stop may come first.
            return await self._plan_and_rotate(found, work)
        finally:
            await self._release_lock(head.id, holder)

    async def wait_for_other_compaction(self, session: SessionId) -> None:
        """Wait, with a limit, until no other compaction of the session's conversation runs."""
        for _ in range(_MAX_POLLS):
            if await self._lock.get_compression_lock_holder(session) is None:
                return
            await asyncio.sleep(_POLL_INTERVAL)

    async def _plan_and_rotate(self, found: Context, work: _CompactionJob) -> Compacted:
        before = await self._store.read(compactions.load_compaction_state, found.session.id)
        often = rules.is_too_frequent(before, last_seq=found.last_seq)
        try:
            plan = await work.bind_plan(found)(hard=often)
        except StoreError:
            raise
        except asyncio.CancelledError:
            # A stop or a drain is no failure of the summariser.
            await shield_until_done(self._store_state(found.session.id, before))
            raise
        except Exception as error:  # a compactor may be a plugin: the turn continues without it
            log.warning("compaction_failed", session=found.session.id, exc_info=True)
            note = _describe_failure(error)
            state = await self._get_failure_state(found.session.id, error)
            await self._store_state(found.session.id, state)
            alarm = None if before.told else note
            return replace(_build_unchanged_result(found, note), failed=True, alarm=alarm)
        if plan is None:
            return _build_unchanged_result(found, wording.NOTHING_TO_COMPACT)
        try:
            done = await self._rotate_session(found, plan, before, work)
            return await self._add_frequency_notice(found, done) if often and plan.counts else done
        except OperationRefused as error:
            if work.lease is not None and isinstance(error, LeaseLost):
                raise
            log.info("compaction_overtaken", session=found.session.id, error=str(error))
            await self._store_state(found.session.id, before)
            return _build_unchanged_result(found, _SUPERSEDED_NOTE)

    async def _add_frequency_notice(self, found: Context, done: Compacted) -> Compacted:
        """Add the notice about a context that keeps filling up, once per conversation."""
        conversation = found.session.conversation_id
        first = await self._store.read(get_setting, conversation, _FREQUENT_NOTICE_SETTING) is None
        if not first:
            return done
        await self._store.write(put_setting, conversation, _FREQUENT_NOTICE_SETTING, "true")
        return replace(done, remark=_FREQUENT_NOTICE)

    async def preview(self, conversation: ConversationId) -> CompactionPreview:
        """
        Return what compacting on demand would do; asks no model and changes nothing.

        :raises NotFound: if there is no such conversation
        """
        return self.planner.preview_plan(
            await self._store.read(context.read_head_context, conversation)
        )

    async def _rotate_session(
        self,
        found: Context,
        plan: CompactionPlan,
        before: rules.CompactionState,
        work: _CompactionJob,
    ) -> Compacted:
        rotation = _RotationArguments(
            operation=work.operation,
            expected=Head(session=found.session.id, last_seq=found.last_seq),
            base=plan.items,
            reason=reasons.COMPRESSION,
            state=await self._get_successor_state(found, plan, before),
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
            alarm=None if plan.failure is None or before.told else _describe_failure(plan.failure),
        )

    async def _get_successor_state(
        self, found: Context, plan: CompactionPlan, before: rules.CompactionState
    ) -> rules.CompactionState:
        """Return the compaction state for the successor."""
        if not plan.counts:
            return before
        if plan.failure is None:
            return rules.record_success(
                before, last_seq=found.last_seq, before=plan.tokens_before, after=plan.tokens_after
            )
        state = await self._get_failure_state(found.session.id, plan.failure)
        return replace(state, fired=(*state.fired[-9:], found.last_seq))

    async def _get_failure_state(
        self, session: SessionId, error: Exception
    ) -> rules.CompactionState:
        """Return the compaction state after a failure."""
        state = await self._store.read(compactions.load_compaction_state, session)
        now, refused = to_millis(self._clock.now()), isinstance(error, OperationRefused)
        return rules.record_failure(state, now=now, refused=refused)

    async def _store_state(self, session: SessionId, state: rules.CompactionState) -> None:
        await self._store.write(compactions.save_compaction_state, session, state)

    async def _acquire_lock(self, session: SessionId, holder: str) -> bool:
        try:
            return await self._lock.try_acquire_compression_lock(session, holder)
        except StoreError:
            raise
        except Exception:
            # The lock only saves work; the store's constraint guarantees a single successor.
            log.warning("compression_lock_unusable", session=session, exc_info=True)
            return True

    async def _release_lock(self, session: SessionId, holder: str) -> None:
        try:
            await self._lock.release_compression_lock(session, holder)
        except Exception:
            # The lock only saves work, and expires.
            log.warning("compression_lock_unusable", session=session, exc_info=True)


class _CompactionJob(Record):
    """One compaction: its owner and how its plan is made."""

    owner: OwnerId
    lease: Lease | None
    operation: str
    bind_plan: Callable[[Context], Callable[..., Awaitable[CompactionPlan | None]]]


class _RotationArguments(TypedDict):
    """Arguments of every rotation into a compacted base, with or without the caller's lease."""

    operation: str
    expected: Head
    base: Base
    reason: str
    state: rules.CompactionState
    session_ids: SessionIdFactory


def _describe_failure(error: Exception) -> str:
    said = str(error) if isinstance(error, ClewError) else classify_error(error).user_message
    return f"it could not be summarised: {said}"


def _build_unchanged_result(found: Context, note: str) -> Compacted:
    count, tokens = len(found.messages), _estimate_tokens(found)
    return Compacted(
        session_id=found.session.id,
        moved=False,
        messages_before=count,
        messages_after=count,
        tokens_before=tokens,
        tokens_after=tokens,
        note=note,
    )


def _estimate_tokens(found: Context) -> int:
    try:
        return sum(
            estimate_size(codec.load_message(message.message)).tokens for message in found.messages
        )
    except ValueError:  # an unreadable message, which may be why nothing was done
        return 0
