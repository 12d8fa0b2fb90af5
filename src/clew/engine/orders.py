"""Orders: inputs of programs, which wait for the answer to each."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from clew.agent import messages
from clew.core import history as histories
from clew.core.base import InlineMessage
from clew.core.double_text import DoubleText
from clew.core.events import TurnStarted
from clew.core.history import HistoryMessage
from clew.core.inbox import NewInput
from clew.core.showing import size_error
from clew.core.text import sanitize_text
from clew.engine.checks import checked_text
from clew.engine.follow_input import follow_input
from clew.errors import UsageError
from clew.store.transactions import conversations, idempotency, inbox, orders, usage
from clew.store.transactions.files import FetchedFile, add_file_details
from clew.store.transactions.orders import IdempotencyKey, SubmitResult
from clew.store.transactions.usage import TokenUsage

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Sequence

    from clew.core.events import ConversationEvent, InputCompleted
    from clew.core.ids import ConversationId, InboxId
    from clew.core.inbox import AcceptResult
    from clew.core.route import Route
    from clew.core.turn import Turn
    from clew.engine.turns import Means
    from clew.store.contract import Tx

__all__ = ["History", "IdempotencyKey", "Orders", "SubmitResult", "TokenUsage", "key_for"]


@dataclass(frozen=True, kw_only=True, slots=True)
class History:
    """What a client that resends everything sent before its new message."""

    #: Whose it is: the same words of somebody else lead to another conversation.
    caller: str
    said: tuple[HistoryMessage, ...]


def key_for(*, caller: str, path: str, key: str, request: bytes) -> IdempotencyKey:
    """The key that a caller gave a request, which is told apart from others by its bytes."""
    return IdempotencyKey(
        key=idempotency.hash_idempotency_key(caller, path, key),
        body=hashlib.sha256(request).digest(),
    )


class Orders:
    """Takes the orders of programs, and tells what became of them."""

    def __init__(self, means: Means, kick: Callable[[ConversationId], None]) -> None:
        self._store, self._ids, self._policy = means.store, means.ids, means.reset
        self._session_ids, self._hub = means.session_ids, means.hub
        self._kick = kick

    async def place(
        self,
        text: str,
        *,
        target: Route | ConversationId | History,
        double_text: DoubleText = DoubleText.QUEUE,
        key: IdempotencyKey | None = None,
        files: Sequence[FetchedFile] = (),
    ) -> SubmitResult:
        """
        Accept a message: when this returns it is stored and will have an outcome.

        With a ``History`` it goes on in the conversation whose context that is, else in a new one
        that holds it. Repeating it with the same ``key`` stores nothing: the first order is
        returned, with its answer if that was kept.

        :raises UsageError: if the text is empty or too long
        :raises KeyReused: if the key stands for another request
        :raises NotFound: if the target is an id of nothing
        """
        item = NewInput(
            id=self._ids.new_inbox_id(),
            text=checked_text(text),
            double_text=double_text,
            payload=add_file_details("{}", files) if files else "{}",
        )
        placed = await self._placed(item, target, key, files)
        if placed.accepted.outcome is None:
            self._kick(placed.accepted.conversation_id)
        return placed

    async def _placed(
        self,
        item: NewInput,
        target: Route | ConversationId | History,
        key: IdempotencyKey | None,
        files: Sequence[FetchedFile],
    ) -> SubmitResult:
        if isinstance(target, History):
            return await self._store.write(
                orders.submit_with_history,
                item,
                resent=_resent(target, item.text),
                key=key,
                new_conversation=self._ids.new_conversation_id(),
                session_ids=self._session_ids,
            )
        return await self._store.write(
            orders.submit_input,
            item,
            target=target,
            key=key,
            new_conversation=self._ids.new_conversation_id(),
            session_ids=self._session_ids,
            policy=self._policy,
            files=files,
        )

    def file(self, *, name: str, media_type: str, content: bytes) -> FetchedFile:
        """
        A file that is to come with a message.

        :raises UsageError: if it is too large
        """
        if (refused := size_error(name, content)) is not None:
            raise UsageError(refused)
        return FetchedFile(
            id=self._ids.new_attachment_id(),
            name=sanitize_text(name),
            media_type=sanitize_text(media_type),
            content=content,
        )

    def follow(
        self, accepted: AcceptResult, *, live: bool
    ) -> AsyncGenerator[ConversationEvent | InputCompleted]:
        """What happens to an order, and last its end; without ``live`` no pieces of the answer."""
        return follow_input(
            self._store, self._hub, accepted.conversation_id, accepted.inbox_id, live=live
        )

    async def keep_answer(self, key: IdempotencyKey, *, status: int, answer: str) -> None:
        """Keep what a keyed order was answered, for those who repeat it; the first answer stays."""
        await self._store.write(idempotency.store_answer, key.key, status=status, answer=answer)

    async def abandon(self, inbox_id: InboxId) -> bool:
        """
        The caller who waited went away: take the input back, or have its turn cancelled.

        ``False`` if it has ended, or if others joined its turn and wait for it too.
        """
        return await self._store.write(orders.cancel_submission, inbox_id)

    async def begun(self, inbox_id: InboxId) -> TurnStarted | None:
        """The turn that answers an input, and the session it is in; ``None`` before it began."""
        return await self._store.read(_begun, inbox_id)

    async def used(self, turn: Turn | None) -> TokenUsage:
        """What the model requests of a turn cost."""
        if turn is None:
            return TokenUsage()
        return await self._store.read(usage.sum_usage, turn.conversation_id, turn=turn.id)


def _begun(t: Tx, inbox_id: InboxId) -> TurnStarted | None:
    turn = inbox.find_turn_of_item(t, inbox_id)
    if turn is None:
        return None
    session = conversations.get_conversation(t, turn.conversation_id).head
    return TurnStarted(turn=turn, session=session)


def _resent(history: History, text: str) -> orders.HistoryKey:
    said = histories.drop_blank_messages(history.said)
    before, answer = histories.split_last_answer(said)
    return orders.HistoryKey(
        before=histories.history_digest(history.caller, before),
        now=histories.history_digest(history.caller, [*said, HistoryMessage("user", text)]),
        answer=answer,
        base=_base(said),
    )


def _base(said: Sequence[HistoryMessage]) -> tuple[InlineMessage, ...]:
    now = datetime.now(UTC)
    return tuple(
        InlineMessage(
            format=messages.MESSAGE_FORMAT,
            message=messages.dump_message(messages.make_history_message(each, at=now)),
        )
        for each in said
    )
