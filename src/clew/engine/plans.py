"""Plans: what a compaction makes of a context. They change nothing but the account of summaries."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import structlog

from clew.agent import messages as codec
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
from clew.agent.files import has_image, replace_images
from clew.core import compaction as rules
from clew.core.base import EntryRange, InlineMessage, merge_ranges
from clew.core.context import CompactionPreview
from clew.engine.contexts import line_of
from clew.errors import OperationRefused, StoreError
from clew.store.transactions import compactions, entries
from clew.store.transactions.usage import TokenUsage, UsageRecord, dollars_to_micros, record_usage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clew.agent.compactor import Compactor
    from clew.agent.messages import ModelMessage
    from clew.agent.models import Model
    from clew.core.base import BaseItem
    from clew.core.ids import ConversationId, IdGenerator
    from clew.core.session import Session
    from clew.store.contract import Store
    from clew.store.transactions.context import Context, ContextMessage

log = structlog.get_logger(__name__)

#: A window for models that do not tell theirs, when a person asks for compaction.
ASSUMED_WINDOW = 100_000
#: Clearing old results is enough if it brings the context under this share of the budget.
_ENOUGH = 0.7


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
class Plan:
    """What a compaction would make of a context."""

    items: tuple[BaseItem, ...]
    messages_after: int
    tokens_before: int
    tokens_after: int
    summary: str = ""
    #: Whether it counts as a compaction, of which there may not be too many.
    counts: bool = True
    #: Why there is no summary although one was wanted: only what needs no model was done.
    failure: Exception | None = None


class Refusal(OperationRefused):
    """The summary that came is no good; nothing was changed."""


@dataclass(frozen=True, kw_only=True, slots=True)
class _Part:
    """One message of a context: as it stands in a base, and as it is read."""

    item: BaseItem
    message: ModelMessage
    size: rules.MessageSize

    def smaller(self, message: ModelMessage, seq: int | None) -> _Part:
        """The same with its results cleared or shortened; ``seq`` is the entry that has them."""
        if message is self.message:
            return self
        marked = message if seq is None else mark_results_cleared(message, seq)
        literal = InlineMessage(format=codec.MESSAGE_FORMAT, message=codec.dump_message(marked))
        return _Part(item=literal, message=marked, size=estimate_size(marked))


@dataclass(frozen=True, kw_only=True, slots=True)
class _Aim:
    """What a plan is to reach, in tokens."""

    #: Of the model that is asked.
    window: int
    #: What the newest messages keep.
    keep: int
    #: What the next request may take.
    budget: int
    #: Of the model that summarises.
    readable: int


class Plans:
    """Makes plans; holds nothing between calls."""

    def __init__(
        self,
        store: Store,
        ids: IdGenerator,
        *,
        compactor: Compactor,
        model: Model,
        policy: Policy,
        apart: bool,
        standby: Model | None = None,
    ) -> None:
        """``standby`` summarises where a model that does nothing else fails."""
        self._store, self._ids = store, ids
        self._compactor, self._model = compactor, model
        self.policy, self._apart = policy, apart
        self._standby = standby

    def _window(self, model: Model) -> int | None:
        return self.policy.window or get_model_context_window(model)

    def _aim(self, asked: Model | None, *, most: int | None = None) -> _Aim:
        """``most``: the context had so many tokens, and was too long for the model."""
        window = self._window(asked or self._model) or ASSUMED_WINDOW
        # The policy's window is that of the model that is asked, which a summariser apart is not.
        own = get_model_context_window(self._model) if self._apart else self._window(self._model)
        readable = own or ASSUMED_WINDOW
        if most is not None:
            # The true window is smaller than this, or there would have been room; and none is so
            # small that a summary would help a short conversation.
            window = min(window, max(most, rules.LARGE_CONTEXT))
            readable = readable if self._apart else min(window, readable)
        return _Aim(
            window=window,
            keep=int(window * self.policy.keep_recent),
            budget=int(window * self.policy.threshold),
            readable=readable,
        )

    def preview(self, found: Context) -> CompactionPreview:
        """What compacting on demand would do, but for the summary; no model is asked."""
        lines = [line_of(message) for message in found.messages]
        sizes = [part.size for part in _parts(found)]
        tail = rules.find_tail_start(sizes, keep=self._aim(None).keep)
        return CompactionPreview(
            session=found.session.id,
            lines=tuple(lines),
            kept=frozenset(rules.select_kept(sizes, tail)),
        )

    async def plan(
        self,
        found: Context,
        *,
        focus: str | None = None,
        on_demand: bool = True,
        overflowed: bool = False,
        asked: Model | None = None,
        hard: bool = False,
    ) -> Plan | None:
        """
        What compacting would make of a context; ``None`` if nothing can go.

        It is to fit the model that is ``asked``, which may be another than the one that
        summarises. ``overflowed`` says that the context was too long for it, whatever is known of
        its window. On demand only a summary helps; else what needs no model is tried first, and is
        what is left where a summary fails. ``hard``: results fill the context again and again, so
        they are shortened as far as may be before anything is summarised.

        :raises Refusal: if the summary is no good
        """
        parts = _parts(found)
        before = _tokens(parts)
        aim = self._aim(asked, most=before if overflowed else None)
        sizes = [part.size for part in parts]
        tail = rules.find_tail_start(sizes, keep=aim.keep)
        kept = rules.select_kept(sizes, tail)
        if on_demand:
            if len(kept) == len(parts):
                return None
            return await self._summarised(found.session, parts, tail, kept, focus, aim)
        smaller = await self._without_model(found.messages, parts, tail, aim, hard=hard)
        progress = _tokens(smaller) <= before * (1 - rules.MIN_SAVED_SHARE)
        enough = aim.budget * (1.0 if hard else _ENOUGH)
        if progress and (_tokens(smaller) <= enough or len(kept) == len(parts)):
            return _plan(smaller, before)
        if len(kept) == len(parts):
            return None
        try:
            # What stays may have been shortened; what goes is read as it was said.
            mixed = [smaller[n] if n in kept else part for n, part in enumerate(parts)]
            plan = await self._summarised(found.session, mixed, tail, kept, focus, aim)
            return replace(plan, tokens_before=before)
        except StoreError:
            raise
        except Exception as error:
            if not progress:
                raise
            return replace(_plan(smaller, before), failure=error)

    async def lighter(self, found: Context, *, turn_from: int) -> Plan | None:
        """
        Return the context with a line in place of each older picture; ``None`` if there is none.

        The newest message that shows any keeps them, if the running turn began with it: what was
        asked about them cannot be answered without.
        """
        parts = _parts(found)
        showing = [number for number, part in enumerate(parts) if has_image(part.message)]
        if showing:
            newest, seq = parts[showing[-1]], found.messages[showing[-1]].seq
            asked = newest.size.from_user and seq is not None and seq >= turn_from
            if asked or len(showing) > 1:
                showing.pop()
        if not showing:
            return None
        before = _tokens(parts)
        for number in showing:
            part, seq = parts[number], found.messages[number].seq
            original = get_original_seq(part.message) if seq is None else seq
            parts[number] = part.smaller(replace_images(part.message), original)
        return replace(_plan(parts, before), counts=False)

    async def _without_model(
        self,
        stored: Sequence[ContextMessage],
        parts: list[_Part],
        tail: int,
        aim: _Aim,
        *,
        hard: bool,
    ) -> list[_Part]:
        """Old results cleared; if what must stay is too much, the largest of its results cut."""
        loaded = [part.message for part in parts]
        clear = await self._compactor.clear_results(loaded, keep_from=tail)
        if len(clear) != len(loaded):
            clear = loaded
        # What was shortened before can be shortened further, or cleared: its entry has all of it.
        seqs = [
            get_original_seq(part.message) if message.seq is None else message.seq
            for message, part in zip(stored, parts, strict=True)
        ]
        smaller = [
            part if seq is None else part.smaller(message, seq)
            for part, message, seq in zip(parts, clear, seqs, strict=True)
        ]
        room = aim.keep if hard else aim.budget * _ENOUGH
        for cap in rules.truncation_limits():
            if _tokens(smaller[tail:]) <= room:
                break
            smaller[tail:] = [
                part.smaller(truncate_results(part.message, cap), seq)
                for part, seq in zip(smaller[tail:], seqs[tail:], strict=True)
            ]
        return smaller

    async def _summarised(
        self,
        session: Session,
        parts: Sequence[_Part],
        tail: int,
        kept: Sequence[int],
        focus: str | None,
        aim: _Aim,
    ) -> Plan:
        old = [await self._whole(session.conversation_id, part.message) for part in parts[:tail]]
        summary = await self._counted(session, old, focus, aim)
        message = make_summary_message(summary)
        literal = InlineMessage(format=codec.MESSAGE_FORMAT, message=codec.dump_message(message))
        first = _Part(item=literal, message=message, size=estimate_size(message))
        plan = _plan([first, *(parts[index] for index in kept)], _tokens(parts))
        return replace(plan, summary=summary)

    async def _counted(
        self, session: Session, old: Sequence[ModelMessage], focus: str | None, aim: _Aim
    ) -> str:
        """
        A summary that is good; that it was tried is stored before, and what it cost after.

        :raises Refusal: if the attempts before died with their process, or it is no good
        """
        before = await self._store.read(compactions.load_compaction_state, session.id)
        if rules.crashed_repeatedly(before):
            raise Refusal(f"the process died {before.failures} times while it was made")
        state = rules.record_attempt(before)
        await self._store.write(compactions.save_compaction_state, session.id, state)
        try:
            return await self._good(session, old, focus, self._model, aim.readable)
        except StoreError:
            raise
        except Exception:
            if self._standby is None:
                raise
            log.warning("summariser_failed", session=session.id, exc_info=True)
            window = self._window(self._standby) or ASSUMED_WINDOW
            return await self._good(session, old, focus, self._standby, min(window, aim.window))

    async def _good(
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
            await self._count(session.conversation_id, usage, model)
        replaced = sum(estimate_size(message).tokens for message in old)
        if why := rules.rejection_reason(summary, replaces=replaced, headings=SUMMARY_HEADINGS):
            raise Refusal(why)
        return summary

    async def _count(self, conversation: ConversationId, usage: RunUsage, model: Model) -> None:
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

    async def _whole(self, conversation: ConversationId, message: ModelMessage) -> ModelMessage:
        """A message as it was said, also where its results were cleared from the context."""
        seq = get_original_seq(message)
        if seq is None:
            return message
        stored = await self._store.read(entries.read_entries, conversation, first=seq, last=seq)
        return codec.load_message(stored[0].message) if stored else message


def _parts(found: Context) -> list[_Part]:
    parts: list[_Part] = []
    for stored in found.messages:
        message = codec.load_message(stored.message)
        parts.append(_Part(item=_item(stored), message=message, size=estimate_size(message)))
    return parts


def _item(message: ContextMessage) -> BaseItem:
    if message.seq is None:
        return InlineMessage(format=message.format, message=message.message)
    return EntryRange(first=message.seq, last=message.seq)


def _tokens(parts: Sequence[_Part]) -> int:
    return sum(part.size.tokens for part in parts)


def _plan(parts: Sequence[_Part], before: int) -> Plan:
    return Plan(
        items=merge_ranges(part.item for part in parts),
        messages_after=len(parts),
        tokens_before=before,
        tokens_after=_tokens(parts),
    )
