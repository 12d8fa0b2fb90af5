"""Responses: an input, the turn that answers it and its texts, read as one record."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.core.client_history import drop_blank_messages
from clew.core.ids import ConversationId, TurnId
from clew.engine.input_stream import read_input_result
from clew.engine.request_service import TokenUsage, build_base
from clew.errors import NotFound
from clew.record import Record, replace
from clew.store.transactions import (
    conversations,
    entries,
    inbox,
    responses,
    turn_queries,
    usage,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from clew.core.client_history import HistoryMessage
    from clew.core.events import InputCompleted
    from clew.core.ids import EntryId, InboxId, SessionIdFactory
    from clew.core.inbox import IdempotencyKey, InboxItem, NewInput
    from clew.core.scope import Scope
    from clew.core.session_base import Base
    from clew.core.turn import Turn
    from clew.engine.services import EngineServices
    from clew.store.contract import Tx


class ResponseRecord(Record):
    """An accepted input with everything that is stored of its answer."""

    item: InboxItem
    #: What its caller asked for besides the message.
    options: Mapping[str, object]
    turn: Turn | None
    #: The texts of the answer so far with their seqs, in order.
    texts: tuple[tuple[int, str], ...]
    #: ``None`` until it has ended.
    end: InputCompleted | None
    usage: TokenUsage


class ResponseService:
    """The responses of programs that come back for them."""

    def __init__(self, services: EngineServices) -> None:
        self._store, self._ids = services.store, services.ids
        self._session_ids = services.session_ids

    async def read(self, inbox_id: InboxId) -> ResponseRecord:
        """
        Return the state of a response, read at one moment.

        :raises NotFound: if there is no such input
        """
        return await self._store.read(_read_response, inbox_id)

    async def find_entry_seq(self, entry: EntryId) -> int | None:
        """Return the seq of an entry in its conversation, if there is such an entry."""
        return await self._store.read(entries.find_entry_seq, entry)

    async def find_output_seq(
        self, conversation: ConversationId, turn: str, position: int
    ) -> int | None:
        """Return the seq of one of the texts of a turn, if it has so many."""
        return await self._store.read(_find_output_seq, conversation, TurnId(turn), position)

    async def delete(self, inbox_id: InboxId) -> None:
        """
        Hide a response: what was said stays in its conversation.

        :raises NotFound: if there is no such input
        """
        await self._store.write(_hide_response, inbox_id)

    async def open_conversation(
        self,
        *,
        scope: Scope,
        history: Sequence[HistoryMessage],
        metadata: Mapping[str, str],
        key: IdempotencyKey | None,
    ) -> ConversationId:
        """Open a conversation without a route; the same key opens one."""
        # Derived from the key, the id is the same whenever the request is repeated.
        new = (
            self._ids.new_conversation_id()
            if key is None
            else ConversationId(f"cnv_{key.key.hex()[:28]}")
        )
        await self._store.write(
            _open_conversation,
            new,
            scope=scope,
            base=build_base(drop_blank_messages(history)),
            metadata=metadata,
            session_ids=self._session_ids,
        )
        return new

    async def get_metadata(self, conversation: ConversationId) -> Mapping[str, str]:
        """Return the metadata that a client keeps with a conversation."""
        return await self._store.read(responses.get_metadata, conversation)

    async def set_metadata(self, conversation: ConversationId, metadata: Mapping[str, str]) -> None:
        """Replace the metadata of a conversation."""
        await self._store.write(responses.put_metadata, conversation, metadata)


def with_options(message: NewInput, options: Mapping[str, object]) -> NewInput:
    """Return a message that keeps the options of its response."""
    return replace(message, payload=responses.write_options(message.payload, options))


def _read_response(t: Tx, inbox_id: InboxId) -> ResponseRecord:
    item = inbox.get_item(t, inbox_id)
    turn = inbox.find_turn_of_item(t, inbox_id)
    return ResponseRecord(
        item=item,
        options=responses.read_options(item.payload),
        turn=turn,
        texts=() if turn is None else tuple(responses.read_answer_texts(t, turn)),
        end=read_input_result(t, inbox_id),
        usage=TokenUsage()
        if turn is None
        else usage.sum_usage(t, turn.conversation_id, turn=turn.id),
    )


def _find_output_seq(
    t: Tx, conversation: ConversationId, turn: TurnId, position: int
) -> int | None:
    try:
        found = turn_queries.get_turn(t, turn)
    except NotFound:
        return None
    texts = responses.read_answer_texts(t, found)[position : position + 1]
    return texts[0][0] if texts and found.conversation_id == conversation else None


def _hide_response(t: Tx, inbox_id: InboxId) -> None:
    responses.update_options(t, inbox.get_item(t, inbox_id), {"deleted": True})


def _open_conversation(
    t: Tx,
    new: ConversationId,
    *,
    scope: Scope,
    base: Base,
    metadata: Mapping[str, str],
    session_ids: SessionIdFactory,
) -> None:
    conversations.open_conversation(t, new, scope=scope, base=base, session_ids=session_ids)
    if metadata:
        responses.put_metadata(t, new, metadata)
