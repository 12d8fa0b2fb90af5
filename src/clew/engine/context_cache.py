"""
Context cache: recently read contexts, so that a turn reads only newer messages.

Each context is checked against the store in the read that fetches newer messages. Dropping
one is safe.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING

from clew.agent.attachments import count_content_bytes
from clew.agent.compactor import estimate_size, get_reported_tokens
from clew.core.compaction import is_credible_count
from clew.core.session_prefix import SessionPrefix
from clew.engine.attachments import load_messages
from clew.record import Record
from clew.store.transactions import context, session_prefixes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clew.agent.messages import ModelMessage
    from clew.core.ids import ConversationId
    from clew.core.session import Session
    from clew.store.contract import Store
    from clew.store.transactions.context import ContextMessage, ContextPosition, ContextUpdate

#: Maximum number of cached conversations, and of bytes of their messages as JSON.
MAX_CONVERSATIONS = 64
MAX_BYTES = 16_000_000
#: Maximum number of cached lists of tools.
MAX_TOOLSETS = 32


class CachedMessage(Record):
    """One message of a context, ready to be sent."""

    seq: int | None
    message: ModelMessage
    #: Bytes as JSON, including those of its files.
    size: int
    #: Estimated.
    tokens: int


class CachedContext:
    """
    The context of one conversation as last read.

    The same object serves the conversation as long as its session is the same.
    """

    def __init__(self, news: ContextUpdate, kept: Sequence[CachedMessage]) -> None:
        self.session: Session = news.context.session
        self.position: ContextPosition = news.position
        self.messages: list[CachedMessage] = list(kept)
        self.size = sum(kept.size for kept in self.messages)

    def extend(self, news: ContextUpdate, newer: Sequence[CachedMessage]) -> None:
        """Add newer messages."""
        self.session, self.position = news.context.session, news.position
        self.messages += newer
        self.size += sum(kept.size for kept in newer)


class ContextCache:
    """The cached contexts of a process; the least recently used is dropped first."""

    def __init__(
        self,
        store: Store,
        *,
        most: int = MAX_CONVERSATIONS,
        most_bytes: int = MAX_BYTES,
        pictures: bool = True,
    ) -> None:
        """Set the limits; without ``pictures`` the model gets only the names of images."""
        self._store, self._most, self._most_bytes = store, most, most_bytes
        self._pictures = pictures
        self._contexts: OrderedDict[ConversationId, CachedContext] = OrderedDict()
        #: Definitions of tools by digest: they never change.
        self._tools: OrderedDict[str, str | None] = OrderedDict()

    def __contains__(self, conversation: ConversationId) -> bool:
        return conversation in self._contexts

    def get(self, conversation: ConversationId) -> CachedContext | None:
        """Return the cached context of a conversation, without reading the store."""
        return self._contexts.get(conversation)

    def list_contexts(self) -> list[CachedContext]:
        """Return all cached contexts, the least recently used first."""
        return list(self._contexts.values())

    async def refresh_context(self, conversation: ConversationId) -> CachedContext:
        """
        Return the conversation's context, current at the moment of the read.

        :raises NotFound: if there is no such conversation
        """
        state = self._contexts.get(conversation)
        known = None if state is None else state.position
        news = await self._store.read(context.read_context_update, conversation, known)
        newer = await self._load_cached_messages(news.context.messages)
        if self._contexts.get(conversation) is not state or (state and state.position != known):
            # Built, refreshed or dropped while we read: our result may be older than that.
            return await self.refresh_context(conversation)
        if state is None or not news.partial:
            state = self._contexts[conversation] = CachedContext(news, newer)
        else:
            state.extend(news, newer)
        self._contexts.move_to_end(conversation)
        self._evict_excess()
        return state

    async def load_prefix(self, session: Session) -> SessionPrefix | None:
        """Return the instructions and tools of a session; ``None`` before its first request."""
        if session.instructions is None:
            return None
        if (digest := session.tools) is not None and digest not in self._tools:
            self._tools[digest] = await self._store.read(session_prefixes.read_tools, digest)
            while len(self._tools) > MAX_TOOLSETS:
                self._tools.popitem(last=False)
        return SessionPrefix(
            instructions=session.instructions,
            tools=None if digest is None else self._tools[digest],
        )

    async def load_messages(self, stored: Sequence[str]) -> list[ModelMessage]:
        """Return stored messages as the model reads them."""
        return await load_messages(self._store, stored, pictures=self._pictures)

    async def _load_cached_messages(self, found: Sequence[ContextMessage]) -> list[CachedMessage]:
        read = await self.load_messages([stored.message for stored in found])
        return [
            CachedMessage(
                seq=stored.seq,
                message=message,
                size=len(stored.message) + count_content_bytes(message),
                tokens=estimate_size(message).tokens,
            )
            for stored, message in zip(found, read, strict=True)
        ]

    def drop_context(self, conversation: ConversationId) -> None:
        """Drop a context; the next refresh reads everything."""
        self._contexts.pop(conversation, None)

    def _evict_excess(self) -> None:
        while len(self._contexts) > 1 and (
            len(self._contexts) > self._most
            or sum(state.size for state in self._contexts.values()) > self._most_bytes
        ):
            self._contexts.popitem(last=False)


def estimate_context_tokens(state: CachedContext) -> int:
    """
    Return the provider's count for the newest response of this session, plus an estimate.

    The estimate covers the newer messages. A response from before the session opened was
    counted with an older context, and an impossible count is ignored.
    """
    tokens, before = 0, sum(kept.tokens for kept in state.messages)
    for kept in reversed(state.messages):
        own = kept.seq is not None and kept.seq > state.session.opened_seq
        reported = get_reported_tokens(kept.message) if own else 0
        if reported and is_credible_count(reported, estimated=before):
            return tokens + reported
        tokens += kept.tokens
        before -= kept.tokens
    return tokens
