"""Compaction plans: they change nothing but the record of summaries."""

from __future__ import annotations

from typing import TYPE_CHECKING

import structlog

from clew import wording
from clew.agent import messages as codec
from clew.agent.attachments import has_image, replace_images
from clew.agent.compactor import (
    SUMMARY_HEADINGS,
    RunUsage,
    estimate_size,
    get_model_context_window,
    get_original_seq,
    make_summary_message,
    mark_results_cleared,
    truncate_results,
)
from clew.core import compaction as rules
from clew.core.context_view import CompactionPreview
from clew.core.session_base import EntryRange, InlineMessage, merge_ranges
from clew.engine.context_inspection import build_message_view
from clew.errors import OperationRefused, StoreError
from clew.record import Record, replace
from clew.store.transactions import compactions, entries
from clew.store.transactions.usage import TokenUsage, UsageRecord, dollars_to_micros, record_usage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clew.agent.compactor import Compactor
    from clew.agent.messages import ModelMessage
    from clew.agent.models import Model
    from clew.core.ids import ConversationId, IdGenerator
    from clew.core.session import Session
    from clew.core.session_base import BaseItem
    from clew.store.contract import Store
    from clew.store.transactions.context import Context, ContextMessage

log = structlog.get_logger(__name__)

#: Context window for a model of unknown size, when a person requests compaction.
DEFAULT_WINDOW = 100_000
#: Clearing old results is enough if it brings the context under this share of the budget.
_CLEARING_TARGET = 0.7


class CompactionPolicy(Record):
    """The settings of compaction."""

    enabled: bool = True
    #: Share of the context window at which a context is compacted.
    threshold: float = 0.75
    #: Share of the window that the newest messages keep.
    keep_recent: float = 0.2
    #: In tokens, if the provider does not report it.
    window: int | None = None


class CompactionPlan(Record):
    """The context that a compaction would produce."""

    items: tuple[BaseItem, ...]
    messages_after: int
    tokens_before: int
    tokens_after: int
    summary: str = ""
    #: True if it counts towards the limit of compactions.
    counts: bool = True
    #: The reason why a summary is missing: only the steps without a model were done.
    failure: Exception | None = None


class SummaryRejected(OperationRefused):
    """The summary is unusable; nothing was changed."""


class _ContextPart(Record):
    """One message of a context: as a base item, and as it is read."""

    item: BaseItem
    message: ModelMessage
    size: rules.MessageSize

    def with_reduced_results(self, message: ModelMessage, seq: int | None) -> _ContextPart:
        """Return the part with reduced results; the entry ``seq`` has the originals."""
        if message is self.message:
            return self
        marked = message if seq is None else mark_results_cleared(message, seq)
        literal = InlineMessage(format=codec.MESSAGE_FORMAT, message=codec.dump_message(marked))
        return _ContextPart(item=literal, message=marked, size=estimate_size(marked))


class _TokenTargets(Record):
    """The targets of a plan, in tokens."""

    #: The context window of the model that answers.
    window: int
    #: The size of the newest messages that stay.
    keep: int
    #: The maximum size of the next request.
    budget: int
    #: The context window of the model that summarises.
    summariser_window: int


class CompactionPlanner:
    """A planner of compactions; keeps no state between calls."""

    def __init__(
        self,
        store: Store,
        ids: IdGenerator,
        *,
        compactor: Compactor,
        model: Model,
        policy: CompactionPolicy,
        apart: bool,
        standby: Model | None = None,
    ) -> None:
        """Wire the planner; ``standby`` summarises if a model that only summarises fails."""
        self._store, self._ids = store, ids
        self._compactor, self._model = compactor, model
        self.policy, self._apart = policy, apart
        self._standby = standby

    def _get_window(self, model: Model) -> int | None:
        return self.policy.window or get_model_context_window(model)

    def _compute_targets(self, asked: Model | None, *, most: int | None = None) -> _TokenTargets:
        """Return the targets; with ``most`` tokens the context was too long for the model."""
        window = self._get_window(asked or self._model) or DEFAULT_WINDOW
        # The policy's window is that of the model that answers, not of a separate summariser.
        own = (
            get_model_context_window(self._model) if self._apart else self._get_window(self._model)
        )
        readable = own or DEFAULT_WINDOW
        if most is not None:
            # The true window is smaller than this, or the context would have fitted; and none is so
            # small that a summary would help a short conversation.
            window = min(window, max(most, rules.LARGE_CONTEXT))
            readable = readable if self._apart else min(window, readable)
        return _TokenTargets(
            window=window,
            keep=int(window * self.policy.keep_recent),
            budget=int(window * self.policy.threshold),
            summariser_window=readable,
        )

    def preview_plan(self, found: Context) -> CompactionPreview:
        """Return the result of compacting on demand without its summary; asks no model."""
        lines = [build_message_view(message) for message in found.messages]
        sizes = [part.size for part in _load_parts(found)]
        tail = rules.find_tail_start(sizes, keep=self._compute_targets(None).keep)
        kept = frozenset(rules.select_kept(sizes, tail))
        return CompactionPreview(
            session=found.session.id,
            lines=tuple(lines),
            kept=kept,
            note="" if len(kept) < len(lines) else wording.NOTHING_TO_COMPACT,
        )

    async def make_plan(
        self,
        found: Context,
        *,
        focus: str | None = None,
        on_demand: bool = True,
        overflowed: bool = False,
        asked: Model | None = None,
        hard: bool = False,
    ) -> CompactionPlan | None:
        """
        Return the result of compacting a context; ``None`` if nothing can be removed.

        It must fit the model that is ``asked``, which may be another than the summarising
        one. ``overflowed``: the context was too long for it, whatever its known window. On
        demand only a summary helps; otherwise the steps without a model are tried first,
        and remain if a summary fails. ``hard``: results keep filling the context, so they
        are truncated as far as possible before anything is summarised.

        :raises SummaryRejected: if the summary is unusable
        """
        parts = _load_parts(found)
        before = _count_tokens(parts)
        aim = self._compute_targets(asked, most=before if overflowed else None)
        sizes = [part.size for part in parts]
        tail = rules.find_tail_start(sizes, keep=aim.keep)
        kept = rules.select_kept(sizes, tail)
        if on_demand:
            if len(kept) == len(parts):
                return None
            return await self._plan_summary(found.session, parts, tail, kept, focus, aim)
        smaller = await self._reduce_results(found.messages, parts, tail, aim, hard=hard)
        progress = _count_tokens(smaller) <= before * (1 - rules.MIN_SAVED_SHARE)
        enough = aim.budget * (1.0 if hard else _CLEARING_TARGET)
        if progress and (_count_tokens(smaller) <= enough or len(kept) == len(parts)):
            return _build_plan(smaller, before)
        if len(kept) == len(parts):
            return None
        try:
            # Kept messages may be truncated; summarised ones are read in their original form.
            mixed = [smaller[n] if n in kept else part for n, part in enumerate(parts)]
            plan = await self._plan_summary(found.session, mixed, tail, kept, focus, aim)
            return replace(plan, tokens_before=before)
        except StoreError:
            raise
        except Exception as error:  # the progress so far is kept beside the failure
            if not progress:
                raise
            return replace(_build_plan(smaller, before), failure=error)

    async def plan_without_images(
        self, found: Context, *, turn_from: int | None
    ) -> CompactionPlan | None:
        """
        Return the context with a line for each older image; ``None`` if there is none.

        Without ``turn_from``, for a model that takes no images, of all of them.

        The newest message with images keeps them if the running turn began with it: a
        question about them could not be answered without.
        """
        parts = _load_parts(found)
        showing = [number for number, part in enumerate(parts) if has_image(part.message)]
        if showing and turn_from is not None:
            newest, seq = parts[showing[-1]], found.messages[showing[-1]].seq
            asked = newest.size.from_user and seq is not None and seq >= turn_from
            if asked or len(showing) > 1:
                showing.pop()
        if not showing:
            return None
        before = _count_tokens(parts)
        for number in showing:
            part, seq = parts[number], found.messages[number].seq
            original = get_original_seq(part.message) if seq is None else seq
            message = replace_images(part.message, refused=turn_from is None)
            parts[number] = part.with_reduced_results(message, original)
        return replace(_build_plan(parts, before), counts=False)

    async def _reduce_results(
        self,
        stored: Sequence[ContextMessage],
        parts: list[_ContextPart],
        tail: int,
        aim: _TokenTargets,
        *,
        hard: bool,
    ) -> list[_ContextPart]:
        """Clear old results; if the kept part is too large, truncate its largest results."""
        loaded = [part.message for part in parts]
        clear = await self._compactor.clear_results(loaded, keep_from=tail)
        if len(clear) != len(loaded):
            clear = loaded
        # A truncated result can be truncated further, or cleared: its entry has all of it.
        seqs = [
            get_original_seq(part.message) if message.seq is None else message.seq
            for message, part in zip(stored, parts, strict=True)
        ]
        smaller = [
            part if seq is None else part.with_reduced_results(message, seq)
            for part, message, seq in zip(parts, clear, seqs, strict=True)
        ]
        room = aim.keep if hard else aim.budget * _CLEARING_TARGET
        for cap in rules.truncation_limits():
            if _count_tokens(smaller[tail:]) <= room:
                break
            smaller[tail:] = [
                part.with_reduced_results(truncate_results(part.message, cap), seq)
                for part, seq in zip(smaller[tail:], seqs[tail:], strict=True)
            ]
        return smaller

    async def _plan_summary(
        self,
        session: Session,
        parts: Sequence[_ContextPart],
        tail: int,
        kept: Sequence[int],
        focus: str | None,
        aim: _TokenTargets,
    ) -> CompactionPlan:
        old = [
            await self._load_original(session.conversation_id, part.message)
            for part in parts[:tail]
        ]
        summary = await self._summarise_with_limit(session, old, focus, aim)
        message = make_summary_message(summary)
        literal = InlineMessage(format=codec.MESSAGE_FORMAT, message=codec.dump_message(message))
        first = _ContextPart(item=literal, message=message, size=estimate_size(message))
        plan = _build_plan([first, *(parts[index] for index in kept)], _count_tokens(parts))
        return replace(plan, summary=summary)

    async def _summarise_with_limit(
        self, session: Session, old: Sequence[ModelMessage], focus: str | None, aim: _TokenTargets
    ) -> str:
        """
        Return a usable summary; the attempt is stored before, its cost after.

        :raises SummaryRejected: if it is unusable, or the earlier attempts died with their
            process
        """
        before = await self._store.read(compactions.load_compaction_state, session.id)
        if rules.crashed_repeatedly(before):
            raise SummaryRejected(f"the process died {before.failures} times while it was made")
        state = rules.record_attempt(before)
        await self._store.write(compactions.save_compaction_state, session.id, state)
        try:
            return await self._request_summary(
                session, old, focus, self._model, aim.summariser_window
            )
        except StoreError:
            raise
        except Exception:  # any failure of the summariser: its standby is asked instead
            if self._standby is None:
                raise
            log.warning("summariser_failed", session=session.id, exc_info=True)
            window = self._get_window(self._standby) or DEFAULT_WINDOW
            return await self._request_summary(
                session, old, focus, self._standby, min(window, aim.window)
            )

    async def _request_summary(
        self,
        session: Session,
        old: Sequence[ModelMessage],
        focus: str | None,
        model: Model,
        window: int,
    ) -> str:
        usage = RunUsage()
        try:
            summary = await self._compactor.summarise_messages(
                old, model, window=window, focus=focus, usage=usage
            )
        finally:
            await self._record_usage(session.conversation_id, usage, model)
        replaced = sum(estimate_size(message).tokens for message in old)
        fault = rules.find_summary_fault(summary, replaces=replaced, headings=SUMMARY_HEADINGS)
        if fault is not None:
            raise SummaryRejected(wording.describe_summary_fault(fault, summary, replaced))
        return summary

    async def _record_usage(
        self, conversation: ConversationId, usage: RunUsage, model: Model
    ) -> None:
        if not usage.has_values():
            return
        used = TokenUsage(
            input_tokens=usage.input_tokens,
            cached_tokens=usage.cache_read_tokens,
            output_tokens=usage.output_tokens,
            cost_micros=dollars_to_micros(usage.cost),
        )
        request = UsageRecord(
            id=self._ids.new_usage_id(), used=used, model=model.model_name, purpose="summary"
        )
        await self._store.write(record_usage, conversation, request)

    async def _load_original(
        self, conversation: ConversationId, message: ModelMessage
    ) -> ModelMessage:
        """Return a message in its original form, also if the context has its results cleared."""
        seq = get_original_seq(message)
        if seq is None:
            return message
        stored = await self._store.read(entries.read_entries, conversation, first=seq, last=seq)
        return codec.load_message(stored[0].message) if stored else message


def _load_parts(found: Context) -> list[_ContextPart]:
    parts: list[_ContextPart] = []
    for stored in found.messages:
        message = codec.load_message(stored.message)
        parts.append(
            _ContextPart(
                item=_build_base_item(stored), message=message, size=estimate_size(message)
            )
        )
    return parts


def _build_base_item(message: ContextMessage) -> BaseItem:
    if message.seq is None:
        return InlineMessage(format=message.format, message=message.message)
    return EntryRange(first=message.seq, last=message.seq)


def _count_tokens(parts: Sequence[_ContextPart]) -> int:
    return sum(part.size.tokens for part in parts)


def _build_plan(parts: Sequence[_ContextPart], before: int) -> CompactionPlan:
    return CompactionPlan(
        items=merge_ranges(part.item for part in parts),
        messages_after=len(parts),
        tokens_before=before,
        tokens_after=_count_tokens(parts),
    )
