"""The turn's part of the log, as the agent's loop writes it under owner and fence."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

from clew import wording
from clew.agent import messages
from clew.agent.attachments import has_embedded_image
from clew.agent.compactor import estimate_size, get_reported_tokens
from clew.agent.protocols import LoopContext, ModelWait
from clew.core.channel_events import split_file_parts
from clew.core.compaction import is_credible_count
from clew.core.completion import read_cause
from clew.core.delivery import DeliveryKind, OutboundText
from clew.core.entry import NOTICE_FORMAT, EntryKind, NewEntry, Role
from clew.core.events import Delta, DeltaKind, EntryAppended, Retracted
from clew.core.expiry_notice import read_notice
from clew.core.ids import SessionId, make_entry_id
from clew.core.inbox import InboxKind
from clew.core.model_changed import read_model_change
from clew.engine.context_cache import estimate_context_tokens
from clew.engine.store_retry import retry_shielded
from clew.errors import SessionEnded
from clew.plugin.turn_context import get_turn_context
from clew.record import replace
from clew.store.transactions import attachments, entries, session_prefixes, sessions, turns
from clew.store.transactions.usage import TokenUsage, UsageRecord, dollars_to_micros, record_usage

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Generator, Mapping, Sequence

    from clew.agent.messages import ModelMessage, ModelRequest, ModelResponse
    from clew.agent.models import Model
    from clew.agent.protocols import RequestInfo
    from clew.core.entry import Entry
    from clew.core.inbox import InboxItem
    from clew.core.lease import Lease
    from clew.core.sent_files import SentFile
    from clew.core.session_prefix import SessionPrefix
    from clew.core.turn import Turn
    from clew.engine.protocols import ContextCompactor, WaitPermit
    from clew.engine.services import EngineServices
    from clew.engine.store_retry import RetryingStore
    from clew.engine.turn_tracing import TracedTurn

T = TypeVar("T")

#: Format of the entry of a failed attempt.
ATTEMPT_FORMAT = "clew/attempt"


def compose_user_message(item: InboxItem) -> NewEntry:
    """Return the user message of an inbox item; its id follows from the item's."""
    entry_id = make_entry_id(item.id)
    changed = read_model_change(item.payload)
    preface = None if changed is None else wording.format_model_change(*changed)
    cause = read_cause(item.payload) if item.kind is InboxKind.COMPLETION else None
    if cause is not None:
        told = wording.format_completion_for_model(cause, item.text)
        told = told if preface is None else f"{preface}\n{told}"
        return messages.make_completion_draft(
            entry_id, item.text, told, cause=cause, said_at=item.received_at
        )
    said = split_file_parts(item.text, item.payload)
    left = read_notice(item.payload)
    return messages.make_user_draft(
        entry_id,
        said,
        said_at=item.received_at,
        note=None if left is None else wording.format_expiry_for_model(left),
        preface=preface,
    )


class StoreTurnLog:
    """The protocol ``TurnLog`` over the store; publishes each commit to the event bus."""

    def __init__(  # noqa: PLR0913  (made in one place)
        self,
        store: RetryingStore,
        services: EngineServices,
        permit: WaitPermit,
        compactor: ContextCompactor,
        *,
        lease: Lease,
        turn: Turn,
        trace: TracedTurn,
        tools: Collection[str] | None = None,
    ) -> None:
        #: Names of the tools that the agent of the conversation is held to.
        self._tools = tools
        self._store, self._event_bus, self._ids = store, services.event_bus, services.ids
        self._context_cache, self._notes = services.context_cache, services.notes
        self._observers = services.observers
        self._permit, self._compactor = permit, compactor
        self._lease, self._turn, self._trace = lease, turn, trace
        self._session: SessionId | None = None
        #: The parameters of the newest request.
        self._request_info: RequestInfo | None = None
        self._partial_chunks: list[str] = []
        self._steps = turn.steps
        #: Retries of tools and answers since the current model was first asked.
        self._retries: Mapping[str, int] = turn.retries
        #: Messages in the context when it was last read.
        self.message_count = 0
        self._tokens = 0
        #: The newest entry known to the loop.
        self._last_seq = 0

    @property
    def steps(self) -> int:
        """Return the number of the turn's answered model requests."""
        return self._steps

    @property
    def tokens(self) -> int:
        """Return an estimate of the current context size in tokens."""
        return self._tokens

    @property
    def partial_text(self) -> str:
        """Return the text so far of the response in progress."""
        return "".join(self._partial_chunks)

    @property
    def session(self) -> SessionId | None:
        return self._session

    async def read_context(self) -> LoopContext:
        state = await self._context_cache.refresh_context(self._turn.conversation_id)
        self._session = state.session.id
        self.message_count = len(state.messages)
        self._tokens = estimate_context_tokens(state)
        self._last_seq = state.position.seq
        return LoopContext(
            messages=[kept.message for kept in state.messages],
            prefix=await self._context_cache.load_prefix(state.session),
            steps=self._steps,
            retries=self._retries,
            tools=self._tools,
        )

    async def has_images(self) -> bool:
        """Return whether the context contains an image, which not every model accepts."""
        state = await self._context_cache.refresh_context(self._turn.conversation_id)
        return any(has_embedded_image(kept.message) for kept in state.messages)

    def reset_retries(self) -> None:
        """Begin a count of retries for another model."""
        self._retries = {}

    async def compact_if_needed(self, model: Model) -> LoopContext | None:
        assert self._session is not None
        done = await self._compactor.compact_if_needed(self._tokens, model, self._session)
        if done is None:
            return None
        await self.store_notices(done.notices)
        return await self.read_context() if done.moved else None

    @contextmanager
    def waiting_for_model(self, asked: RequestInfo) -> Generator[ModelWait]:
        wait = ModelWait()
        with self._permit.lend_while_waiting(), self._trace.request(asked, self._steps + 1, wait):
            yield wait

    def record_request(self, asked: RequestInfo) -> None:
        self._request_info = asked

    def make_draft(self, message: ModelMessage) -> NewEntry:
        """Return a message as an entry; a response records its request parameters."""
        if isinstance(message, messages.ModelResponse):
            message = messages.with_request_info(message, self._request_info)
        return messages.message_to_draft(self._ids.new_entry_id(), message)

    async def store_prefix(self, prefix: SessionPrefix) -> None:
        await self.write_to_head(
            lambda session: self._store.once.write(
                session_prefixes.store_prefix, self._lease, session, prefix
            )
        )

    async def store_response(self, response: ModelResponse) -> None:
        draft = self.make_draft(response)
        self._tokens += estimate_size(response).tokens
        reported = get_reported_tokens(response)
        if reported and is_credible_count(reported, estimated=self._tokens):
            self._tokens = reported
        step = self.make_step(response)
        await self._append_entries(
            lambda session: self._store.once.write(
                turns.store_step,
                self._lease,
                session,
                self._turn.id,
                [draft],
                step=step,
                said=self.make_outbound_text(DeliveryKind.TEXT, draft.text),
                observe=self._observers.on_step,
            )
        )
        self._steps += 1

    async def store_request(self, request: ModelRequest, retries: Mapping[str, int]) -> None:
        self._tokens += estimate_size(request).tokens
        # Content that a tool adds beside its result looks like a user message.
        draft = replace(
            messages.message_to_draft(self._ids.new_entry_id(), request), role=Role.TOOL
        )
        changed = None if retries == self._retries else retries
        await self._append_entries(
            lambda session: self._store.once.write(
                turns.store_request, self._lease, session, self._turn.id, draft, retries=changed
            )
        )
        self._retries = retries

    async def store_usage(self, response: ModelResponse) -> None:
        await self._store.write(
            record_usage,
            self._turn.conversation_id,
            self._build_usage_record(response),
            turn=self._turn.id,
            step=self._steps + 1,
        )

    async def store_attempt(self, text: str) -> None:
        draft = self.make_notice_draft(EntryKind.ATTEMPT, ATTEMPT_FORMAT, text)
        draft = replace(draft, message=messages.dump_attempt(self._request_info))
        await self._append_entries(
            lambda session: self._store.once.write(
                turns.store_attempt,
                self._lease,
                session,
                self._turn.id,
                draft,
            )
        )

    async def store_notices(self, texts: Sequence[str]) -> None:
        """Append notices to the person, outside the context."""
        for text in texts:
            await self._store_notice(text)

    async def _store_notice(self, text: str) -> None:
        draft = self.make_notice_draft(EntryKind.EVENT, NOTICE_FORMAT, text)
        said = self.make_outbound_text(DeliveryKind.NOTICE, text, markup=False)
        await self._append_entries(
            lambda session: self._store.once.write(
                turns.store_notice, self._lease, session, self._turn.id, draft, said=said
            )
        )

    async def store_log_notice(self, text: str) -> None:
        """Append a notice only for readers of the log, outside the context."""
        await self._store_drafts([self.make_notice_draft(EntryKind.EVENT, NOTICE_FORMAT, text)])

    def make_outbound_text(
        self,
        kind: DeliveryKind,
        text: str,
        *,
        markup: bool = True,
        files: Sequence[SentFile] = (),
    ) -> OutboundText:
        """Return a text for the channels whose inputs the turn answers, with its files."""
        id = self._ids.new_delivery_id()
        return OutboundText(id=id, kind=kind, text=text, markup=markup, files=tuple(files))

    async def list_sent_files(self) -> Sequence[SentFile]:
        """Return the files that the turn's calls have stored to be sent with its answer."""
        if not self._steps:
            return ()  # no call without a step
        return await self._store.read(attachments.list_sent_files, self._turn.id)

    async def take_steering_messages(self) -> Sequence[ModelMessage]:
        # Reads first: most steps find no message, and a write would wait for the disk.
        if not await self._store.read(turns.may_steer, self._lease, after=self._last_seq):
            return ()
        running = get_turn_context()
        annotate = (
            None
            if running is None
            else self._notes.bind(lambda _, session, __: replace(running, session=session))
        )
        joined = await self._append_entries(
            lambda session: self._store.once.write(
                turns.steer_turn,
                self._lease,
                session,
                self._turn.id,
                step=self._steps + 1,
                after=self._last_seq,
                compose=compose_user_message,
                annotate=annotate,
            )
        )
        steered = await self._context_cache.load_messages([entry.message for entry in joined])
        self._tokens += sum(estimate_size(message).tokens for message in steered)
        return steered

    def emit_delta(self, kind: DeltaKind, text: str) -> None:
        if kind is DeltaKind.TEXT:
            self._partial_chunks.append(text)
        self._event_bus.publish(
            self._turn.conversation_id,
            Delta(
                conversation=self._turn.conversation_id,
                turn=self._turn.id,
                after=self._last_seq,
                kind=kind,
                text=text,
            ),
        )

    def retract_deltas(self, reason: str) -> None:
        self._partial_chunks.clear()
        self._event_bus.publish(
            self._turn.conversation_id,
            Retracted(
                conversation=self._turn.conversation_id,
                turn=self._turn.id,
                after=self._last_seq,
                reason=reason,
            ),
        )

    def make_notice_draft(self, kind: EntryKind, form: str, text: str) -> NewEntry:
        """Return an entry outside the context that has only a text."""
        return NewEntry(
            id=self._ids.new_entry_id(),
            kind=kind,
            role=None,
            text=text,
            format=form,
            message="null",
        )

    def make_step(self, response: ModelResponse) -> turns.StepRecord:
        """Return the record that is stored with a response."""
        return turns.StepRecord(request=self._build_usage_record(response))

    def _build_usage_record(self, response: ModelResponse) -> UsageRecord:
        usage = response.usage
        used = TokenUsage(
            input_tokens=usage.input_tokens,
            cached_tokens=usage.cache_read_tokens,
            output_tokens=usage.output_tokens,
            cost_micros=dollars_to_micros(usage.cost),
        )
        return UsageRecord(
            id=self._ids.new_usage_id(), used=used, model=response.model_name or "unknown"
        )

    async def write_to_head(self, write: Callable[[SessionId], Awaitable[T]]) -> T:
        """
        Run a write with the head session, and once more if the head has moved meanwhile.

        After a cancellation no write is still running, so the caller may rely on the store.
        """
        if self._session is None:
            # Not through the context, which may be unreadable.
            self._session = (
                await self._store.read(sessions.get_head, self._turn.conversation_id)
            ).id
        session = self._session
        try:
            return await retry_shielded(lambda: write(session))
        except SessionEnded as error:
            head = self._session = SessionId(error.head)
            return await retry_shielded(lambda: write(head))

    async def _store_drafts(self, drafts: Sequence[NewEntry]) -> None:
        await self._append_entries(
            lambda session: self._store.once.write(
                entries.append_entries, self._lease, session, drafts, turn=self._turn.id
            )
        )

    async def _append_entries(
        self, write: Callable[[SessionId], Awaitable[list[Entry]]]
    ) -> list[Entry]:
        stored = await self.write_to_head(write)
        self.publish_entries(stored)
        return stored

    def publish_entries(self, stored: Sequence[Entry]) -> None:
        """Publish committed entries to the event bus."""
        for entry in stored:
            self._last_seq = max(self._last_seq, entry.seq)
            if entry.kind is EntryKind.MESSAGE:
                self._partial_chunks.clear()
            self._event_bus.publish(self._turn.conversation_id, EntryAppended(entry=entry))
