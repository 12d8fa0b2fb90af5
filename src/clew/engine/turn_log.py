"""One turn's part of the log, as the agent's loop writes it: every write names owner and fence."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from clew.agent import messages
from clew.agent.compactor import estimate_size, get_reported_tokens
from clew.agent.files import has_embedded_image
from clew.agent.ports import LoopContext
from clew.core.chat import split_file_parts
from clew.core.compaction import is_credible_count
from clew.core.delivery import DeliveryKind, OutboundText
from clew.core.entry import EntryKind, NewEntry, Role
from clew.core.events import Delta, DeltaKind, EntryAppended, Retracted
from clew.core.expired import read_notice
from clew.core.ids import EntryId, SessionId
from clew.core.model_changed import read_model_change
from clew.engine.lasting import to_its_end
from clew.engine.warm import context_tokens
from clew.errors import SessionEnded
from clew.store.transactions import entries, sessions, turns
from clew.store.transactions.usage import TokenUsage, UsageRecord, dollars_to_micros, record_usage

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence
    from contextlib import AbstractContextManager

    from clew.agent.messages import ModelMessage, ModelRequest, ModelResponse
    from clew.agent.ports import RequestInfo
    from clew.core.entry import Entry
    from clew.core.ids import IdGenerator, InboxId
    from clew.core.inbox import InboxItem
    from clew.core.lease import Lease
    from clew.core.turn import Turn
    from clew.engine.hub import Hub
    from clew.engine.lasting import Lasting
    from clew.engine.warm import Warm

T = TypeVar("T")

#: Entries that are no messages of the model: a notice to the person, a failed attempt.
NOTICE = "clew/notice"
ATTEMPT = "clew/attempt"


def entry_of(inbox_id: InboxId) -> EntryId:
    """The entry that an input becomes."""
    return EntryId(f"ent_{inbox_id.removeprefix('inb_')}")


def compose(item: InboxItem) -> NewEntry:
    """The user's message of an inbox item; its id follows from the item's, so it is stored once."""
    entry_id = entry_of(item.id)
    said = split_file_parts(item.text, item.payload)
    left = read_notice(item.payload)
    return messages.make_user_draft(
        entry_id,
        said,
        said_at=item.received_at,
        note=None if left is None else left.model_notice,
        preface=read_model_change(item.payload),
    )


async def _never(_: int) -> bool:
    return False


class TurnLog:
    """The port ``TurnLog`` over the store; tells the hub what is committed."""

    def __init__(
        self, store: Lasting, hub: Hub, ids: IdGenerator, warm: Warm, *, lease: Lease, turn: Turn
    ) -> None:
        self._store, self._hub, self._ids, self._warm = store, hub, ids, warm
        self._lease, self._turn = lease, turn
        self._session: SessionId | None = None
        self._instructions: str | None = None
        #: How the newest request was made.
        self._asked: RequestInfo | None = None
        self._shown: list[str] = []
        self._steps = turn.steps
        #: Of tools and answers, since the model that is asked now was asked first.
        self.retries: Mapping[str, int] = turn.retries
        #: Messages in the context when it was last read.
        self.messages = 0
        #: Told when a step is counted, before its calls run.
        self.on_step: Callable[[int], None] = lambda _: None
        #: Makes the context smaller if a request of so many tokens needs it; whether it did.
        self.make_fit: Callable[[int], Awaitable[bool]] = _never
        #: What a model is waited for in.
        self.wait_in: Callable[[], AbstractContextManager[None]] = nullcontext
        self._tokens = 0
        #: The newest entry that the loop knows of.
        self._last_seq = 0

    @property
    def steps(self) -> int:
        """Model requests of the turn that were answered."""
        return self._steps

    @property
    def tokens(self) -> int:
        """An estimate of what the context takes now."""
        return self._tokens

    @property
    def shown(self) -> str:
        """The text of the response that is being made, so far."""
        return "".join(self._shown)

    @property
    def session(self) -> SessionId | None:
        return self._session

    async def context(self) -> LoopContext:
        state = await self._warm.refresh(self._turn.conversation_id)
        self._session = state.session.id
        self._instructions = state.session.instructions
        self.messages = len(state.kept)
        self._tokens = context_tokens(state)
        self._last_seq = state.position.seq
        return LoopContext(
            messages=[kept.message for kept in state.kept],
            instructions=state.session.instructions,
            steps=self._steps,
            retries=self.retries,
        )

    async def shows_pictures(self) -> bool:
        """Whether the context holds a picture, which not every model takes."""
        state = await self._warm.refresh(self._turn.conversation_id)
        return any(has_embedded_image(kept.message) for kept in state.kept)

    async def fit(self) -> LoopContext | None:
        if await self.make_fit(self._tokens):
            return await self.context()
        return None

    def waiting(self) -> AbstractContextManager[None]:
        return self.wait_in()

    def asked(self, asked: RequestInfo) -> None:
        self._asked = asked

    def draft(self, message: ModelMessage) -> NewEntry:
        """A message as an entry; a response says how its model was asked."""
        if isinstance(message, messages.ModelResponse):
            message = messages.with_request_info(message, self._asked)
        return messages.message_to_draft(self._ids.new_entry_id(), message)

    async def store_response(self, response: ModelResponse, instructions: str | None) -> None:
        draft = self.draft(response)
        self._tokens += estimate_size(response).tokens
        reported = get_reported_tokens(response)
        if reported and is_credible_count(reported, estimated=self._tokens):
            self._tokens = reported
        step = self.step(response, instructions)
        await self._append(
            lambda session: self._store.bare.write(
                turns.store_step,
                self._lease,
                session,
                self._turn.id,
                [draft],
                step=step,
                said=self.said(DeliveryKind.TEXT, draft.text),
            )
        )
        self._steps += 1
        self.on_step(self._steps)

    async def store_request(self, request: ModelRequest, retries: Mapping[str, int]) -> None:
        self._tokens += estimate_size(request).tokens
        # What a tool shows beside its result looks as if a person had said it.
        draft = replace(
            messages.message_to_draft(self._ids.new_entry_id(), request), role=Role.TOOL
        )
        changed = None if retries == self.retries else retries
        await self._append(
            lambda session: self._store.bare.write(
                turns.store_request, self._lease, session, self._turn.id, draft, retries=changed
            )
        )
        self.retries = retries

    async def store_usage(self, response: ModelResponse) -> None:
        await self._store.write(
            record_usage,
            self._turn.conversation_id,
            self._request(response),
            turn=self._turn.id,
            step=self._steps + 1,
        )

    async def store_attempt(self, text: str) -> None:
        draft = self.aside(EntryKind.ATTEMPT, ATTEMPT, text)
        draft = replace(draft, message=messages.dump_attempt(self._asked))
        instructions = None if self._asked is None else self._asked.instructions
        await self._append(
            lambda session: self._store.bare.write(
                turns.store_attempt,
                self._lease,
                session,
                self._turn.id,
                draft,
                instructions=instructions if self._instructions is None else None,
            )
        )

    async def store_notice(self, text: str) -> None:
        """Append, outside the context, what the person is told."""
        draft = self.aside(EntryKind.EVENT, NOTICE, text)
        said = self.said(DeliveryKind.NOTICE, text, markup=False)
        await self._append(
            lambda session: self._store.bare.write(
                turns.store_notice, self._lease, session, self._turn.id, draft, said=said
            )
        )

    async def store_aside(self, text: str) -> None:
        """Append, outside the context, what only those who read the log are told."""
        await self._store_drafts([self.aside(EntryKind.EVENT, NOTICE, text)])

    def said(self, kind: DeliveryKind, text: str, *, markup: bool = True) -> OutboundText:
        """What is told to those whose inputs the turn answers, where they are on a channel."""
        return OutboundText(id=self._ids.new_delivery_id(), kind=kind, text=text, markup=markup)

    async def steered(self) -> Sequence[ModelMessage]:
        # A look first: most steps meet nobody, and a write would wait for the disk.
        if not await self._store.read(turns.may_steer, self._lease, after=self._last_seq):
            return ()
        joined = await self._append(
            lambda session: self._store.bare.write(
                turns.steer_turn,
                self._lease,
                session,
                self._turn.id,
                step=self._steps + 1,
                after=self._last_seq,
                compose=compose,
            )
        )
        steered = await self._warm.read([entry.message for entry in joined])
        self._tokens += sum(estimate_size(message).tokens for message in steered)
        return steered

    def say(self, kind: DeltaKind, text: str) -> None:
        if kind is DeltaKind.TEXT:
            self._shown.append(text)
        self._hub.publish(
            self._turn.conversation_id,
            Delta(
                conversation=self._turn.conversation_id,
                turn=self._turn.id,
                after=self._last_seq,
                kind=kind,
                text=text,
            ),
        )

    def retract(self, reason: str) -> None:
        self._shown.clear()
        self._hub.publish(
            self._turn.conversation_id,
            Retracted(
                conversation=self._turn.conversation_id,
                turn=self._turn.id,
                after=self._last_seq,
                reason=reason,
            ),
        )

    def aside(self, kind: EntryKind, form: str, text: str) -> NewEntry:
        """An entry outside the context, with nothing but its text."""
        return NewEntry(
            id=self._ids.new_entry_id(),
            kind=kind,
            role=None,
            text=text,
            format=form,
            message="null",
        )

    def step(self, response: ModelResponse, instructions: str | None) -> turns.StepRecord:
        """What is recorded with a response."""
        return turns.StepRecord(
            request=self._request(response),
            instructions=instructions if self._instructions is None else None,
        )

    def _request(self, response: ModelResponse) -> UsageRecord:
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

    async def in_head(self, write: Callable[[SessionId], Awaitable[T]]) -> T:
        """
        Run a write with the head session, and once more if the head has moved meanwhile.

        Who cancels the turn may go by what the store holds then: no write is still under way.
        """
        if self._session is None:
            # Not by way of the context: that one may be what cannot be read.
            self._session = (
                await self._store.read(sessions.get_head, self._turn.conversation_id)
            ).id
        session = self._session
        try:
            return await to_its_end(lambda: write(session))
        except SessionEnded as error:
            head = self._session = SessionId(error.head)
            return await to_its_end(lambda: write(head))

    async def _store_drafts(self, drafts: Sequence[NewEntry]) -> None:
        await self._append(
            lambda session: self._store.bare.write(
                entries.append_entries, self._lease, session, drafts, turn=self._turn.id
            )
        )

    async def _append(self, write: Callable[[SessionId], Awaitable[list[Entry]]]) -> list[Entry]:
        stored = await self.in_head(write)
        self.tell(stored)
        return stored

    def tell(self, stored: Sequence[Entry]) -> None:
        """Tell the hub what is committed."""
        for entry in stored:
            self._last_seq = max(self._last_seq, entry.seq)
            if entry.kind is EntryKind.MESSAGE:
                self._shown.clear()
            self._hub.publish(self._turn.conversation_id, EntryAppended(entry=entry))
