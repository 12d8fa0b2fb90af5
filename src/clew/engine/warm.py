"""
Warm state: the contexts that this process read last, so that a turn reads only what is newer.

Each is checked against the store in the read that fetches what is newer. Dropping one is safe.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from clew.agent.compactor import estimate_size, get_reported_tokens
from clew.agent.files import count_content_bytes
from clew.core.compaction import is_credible_count
from clew.engine.attached import read_messages
from clew.store.transactions import context

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clew.agent.messages import ModelMessage
    from clew.core.ids import ConversationId
    from clew.core.session import Session
    from clew.store.contract import Store
    from clew.store.transactions.context import ContextMessage, ContextPosition, ContextUpdate

#: Conversations, and bytes of their messages as JSON, that are kept.
MOST = 64
MOST_BYTES = 16_000_000


@dataclass(frozen=True, kw_only=True, slots=True)
class Kept:
    """One message of a context, ready to be sent."""

    seq: int | None
    message: ModelMessage
    #: Bytes as JSON, and of the files that it shows.
    size: int
    #: An estimate.
    tokens: int


class State:
    """
    One conversation's context as it was last read.

    The same object serves the conversation for as long as its session is the same.
    """

    def __init__(self, news: ContextUpdate, kept: Sequence[Kept]) -> None:
        self.session: Session = news.context.session
        self.position: ContextPosition = news.position
        self.kept: list[Kept] = list(kept)
        self.size = sum(kept.size for kept in self.kept)

    def extend(self, news: ContextUpdate, newer: Sequence[Kept]) -> None:
        """Add what is newer."""
        self.session, self.position = news.context.session, news.position
        self.kept += newer
        self.size += sum(kept.size for kept in newer)


class Warm:
    """The states of a process, the least recently used dropped first."""

    def __init__(
        self,
        store: Store,
        *,
        most: int = MOST,
        most_bytes: int = MOST_BYTES,
        pictures: bool = True,
    ) -> None:
        """Without ``pictures`` the model is told of them by name."""
        self._store, self._most, self._most_bytes = store, most, most_bytes
        self._pictures = pictures
        self._states: OrderedDict[ConversationId, State] = OrderedDict()

    def __contains__(self, conversation: ConversationId) -> bool:
        return conversation in self._states

    def get(self, conversation: ConversationId) -> State | None:
        """Return what is kept of a conversation, without a look at the store."""
        return self._states.get(conversation)

    def all(self) -> list[State]:
        """Return all that is kept, the least recently used first."""
        return list(self._states.values())

    async def refresh(self, conversation: ConversationId) -> State:
        """
        The conversation's state, true at the moment of the read.

        :raises NotFound: if there is no such conversation
        """
        state = self._states.get(conversation)
        known = None if state is None else state.position
        news = await self._store.read(context.read_context_update, conversation, known)
        newer = await self._kept(news.context.messages)
        if self._states.get(conversation) is not state or (state and state.position != known):
            # Built, refreshed or dropped while we read: what we have may be older than that.
            return await self.refresh(conversation)
        if state is None or not news.partial:
            state = self._states[conversation] = State(news, newer)
        else:
            state.extend(news, newer)
        self._states.move_to_end(conversation)
        self._shrink()
        return state

    async def read(self, stored: Sequence[str]) -> list[ModelMessage]:
        """Stored messages as the model reads them."""
        return await read_messages(self._store, stored, pictures=self._pictures)

    async def _kept(self, found: Sequence[ContextMessage]) -> list[Kept]:
        read = await self.read([stored.message for stored in found])
        return [
            Kept(
                seq=stored.seq,
                message=message,
                size=len(stored.message) + count_content_bytes(message),
                tokens=estimate_size(message).tokens,
            )
            for stored, message in zip(found, read, strict=True)
        ]

    def drop(self, conversation: ConversationId) -> None:
        """Forget a state; the next refresh reads everything."""
        self._states.pop(conversation, None)

    def _shrink(self) -> None:
        while len(self._states) > 1 and (
            len(self._states) > self._most
            or sum(state.size for state in self._states.values()) > self._most_bytes
        ):
            self._states.popitem(last=False)


def context_tokens(state: State) -> int:
    """
    What the provider counted for the newest response of this session, and an estimate of the rest.

    A response from before the session opened was counted with a context that is no more, and a
    count that cannot be true counts nothing.
    """
    tokens, before = 0, sum(kept.tokens for kept in state.kept)
    for kept in reversed(state.kept):
        own = kept.seq is not None and kept.seq > state.session.opened_seq
        reported = get_reported_tokens(kept.message) if own else 0
        if reported and is_credible_count(reported, estimated=before):
            return tokens + reported
        tokens += kept.tokens
        before -= kept.tokens
    return tokens
