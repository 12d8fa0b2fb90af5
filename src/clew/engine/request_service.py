"""Requests: inputs of programs that wait for the answer to each."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from clew import wording
from clew.agent import messages
from clew.core import client_history as histories
from clew.core.attachments import FetchedFile, find_exceeded_limit
from clew.core.client_history import HistoryMessage
from clew.core.events import TurnStarted
from clew.core.inbox import IdempotencyKey
from clew.core.session_base import InlineMessage
from clew.core.text import sanitize_text
from clew.errors import UsageError
from clew.record import Record
from clew.store.transactions import conversations, idempotency, inbox, submissions, usage
from clew.store.transactions.responses import EarlierInput
from clew.store.transactions.usage import TokenUsage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clew.core.ids import InboxId
    from clew.core.inbox import NewInput
    from clew.core.turn import Turn
    from clew.engine.services import EngineServices
    from clew.store.contract import Tx

__all__ = [
    "ClientHistory",
    "EarlierInput",
    "FetchedFile",
    "IdempotencyKey",
    "RequestService",
    "TokenUsage",
    "build_base",
    "build_history_key",
    "make_request_key",
]


class ClientHistory(Record):
    """The messages that a client which resends everything sent before the new one."""

    #: The caller: the same history of another caller leads to another conversation.
    caller: str
    messages: tuple[HistoryMessage, ...]


def make_request_key(
    *, caller: str, path: str, key: str, request: bytes, holds_target: bool = False
) -> IdempotencyKey:
    """
    Return the key of a request, which its bytes distinguish from others.

    With ``holds_target``, its target does so too, under any of its names.
    """
    return IdempotencyKey(
        key=idempotency.hash_idempotency_key(caller, path, key),
        body=hashlib.sha256(request).digest(),
        holds_target=holds_target,
    )


class RequestService:
    """The requests of programs and their results."""

    def __init__(self, services: EngineServices) -> None:
        self._store, self._ids = services.store, services.ids
        self._event_bus = services.event_bus

    def prepare_file(self, *, name: str, media_type: str, content: bytes) -> FetchedFile:
        """
        Return a file to attach to a message.

        :raises UsageError: if it is too large
        """
        if (most := find_exceeded_limit(content)) is not None:
            raise UsageError(wording.describe_oversized_file(name, len(content), most))
        return FetchedFile(
            id=self._ids.new_attachment_id(),
            name=sanitize_text(name),
            media_type=sanitize_text(media_type),
            content=content,
        )

    async def store_answer(self, key: IdempotencyKey, *, status: int, answer: str) -> None:
        """Store the answer to a keyed request for repetitions; the first answer stays."""
        await self._store.write(idempotency.store_answer, key.key, status=status, answer=answer)

    async def cancel_request(self, inbox_id: InboxId) -> bool:
        """
        Cancel the input of a caller that disconnected, or its turn.

        Returns ``False`` if it has ended, or if others joined its turn and wait for it too.
        """
        return await self._store.write(submissions.cancel_submission, inbox_id)

    async def get_started_turn(self, inbox_id: InboxId) -> TurnStarted | None:
        """Return the turn that answers an input, and its session; ``None`` before it started."""
        return await self._store.read(_read_started_turn, inbox_id)

    async def get_usage(self, turn: Turn | None) -> TokenUsage:
        """Return the usage and cost of a turn's model requests."""
        if turn is None:
            return TokenUsage()
        return await self._store.read(usage.sum_usage, turn.conversation_id, turn=turn.id)


def _read_started_turn(t: Tx, inbox_id: InboxId) -> TurnStarted | None:
    turn = inbox.find_turn_of_item(t, inbox_id)
    if turn is None:
        return None
    session = conversations.get_conversation(t, turn.conversation_id).head
    return TurnStarted(turn=turn, session=session)


def build_history_key(history: ClientHistory, item: NewInput) -> submissions.HistoryKey:
    """Return what the store needs to find the conversation of a history and a new message."""
    said = histories.drop_blank_messages(history.messages)
    new = HistoryMessage("user", item.text, tuple(item.files))
    before, answer = histories.split_last_answer(said)
    return submissions.HistoryKey(
        before=histories.history_digest(history.caller, before),
        now=histories.history_digest(history.caller, [*said, new]),
        answer=answer,
        has_answers=any(one.speaker == "assistant" for one in said),
        base=build_base(said),
        files=tuple(file for one in said for file in one.files),
    )


def build_base(said: Sequence[HistoryMessage]) -> tuple[InlineMessage, ...]:
    """Return the base of a conversation that begins with these messages."""
    now = datetime.now(UTC)
    return tuple(
        InlineMessage(
            format=messages.MESSAGE_FORMAT,
            message=messages.dump_message(messages.make_history_message(each, at=now)),
        )
        for each in said
    )
