"""Interface of a database's search index, used by ``clew.store.search``."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any, LiteralString, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from clew.core.ids import ConversationId
    from clew.core.scope import Scope

#: Above every ``entry.n``.
MAX_ENTRY_NUMBER = 2**62

#: In one batch.
_MAX_BATCH_CHARACTERS = 50_000
#: Columns of a ``CandidateMessage``, from ``entry e`` and ``conversation c``.
MESSAGE_COLUMNS: LiteralString = (
    "e.n, e.conversation_id, e.seq, e.role, e.text, e.created_at, c.title"
)
#: Only messages of conversations that the scope ``$1`` may see.
VISIBLE_CONDITION: LiteralString = (
    "e.kind = 'message' AND c.deleting_at IS NULL AND ($1 = 'local' OR c.scope = $1)"
)


class CandidateMessage(NamedTuple):
    """Message that may match a query."""

    n: int
    conversation_id: ConversationId
    seq: int
    role: str
    text: str
    created_at: int
    title: str | None


class UnindexedMessage(NamedTuple):
    """Message to be indexed."""

    n: int
    scope: Scope
    text: str


def scope_token(scope: Scope) -> str:
    """Return the token that marks a message's scope in the index."""
    # Starts with a private-use character, which is a token of its own in any text.
    return "\ue000" + hashlib.sha256(scope.encode()).hexdigest()[:12]


def take_within_budget(rows: list[tuple[Any, ...]]) -> list[UnindexedMessage]:
    """Return the first messages that are quick to index, at least one."""
    messages = [UnindexedMessage(*row) for row in rows]
    left = _MAX_BATCH_CHARACTERS
    for count, message in enumerate(messages):
        left -= len(message.text)
        if left < 0:
            return messages[: max(count, 1)]
    return messages


class SearchIndex(Protocol):
    """
    Inverted index from tokens to the ``n`` of messages.

    Messages are found newest first, and lazily: callers stop when they have enough. A
    damaged index raises ``SearchNotReady``.
    """

    def count_unindexed(self, most: int) -> int:
        """Return how many messages are not indexed, counting up to ``most``."""
        ...

    def iter_unindexed(self, viewer: Scope, before: int) -> Iterator[CandidateMessage]:
        """Iterate over the unindexed messages with an ``n`` below ``before``."""
        ...

    def iter_matches(
        self, tokens: Sequence[str], viewer: Scope, before: int
    ) -> Iterator[CandidateMessage]:
        """Iterate over the indexed messages below ``before`` that have all ``tokens``."""
        ...

    def claim_unindexed(self, limit: int) -> list[UnindexedMessage]:
        """Return the oldest unindexed messages, to be added now."""
        ...

    def add_messages(self, messages: Sequence[tuple[int, set[str]]]) -> None:
        """Add messages with their tokens."""
        ...

    def remove_messages(self, messages: Sequence[tuple[int, set[str]]]) -> None:
        """Remove those that are indexed, given the tokens that they were added with."""
        ...

    def find_faults(self) -> list[str]:
        """
        Return where the index disagrees with the messages or its own state.

        Reads the whole index. Empty if it is intact.
        """
        ...

    def clear(self) -> None:
        """Start with an empty index, whatever its state; no message counts as indexed."""
        ...

    def find_leftover_tables(self) -> list[LiteralString]:
        """Return the leftover tables of earlier indexes."""
        ...

    def drop_leftover_table(self, remains: LiteralString) -> None:
        """Free the space of a leftover table; fails, leaving it, where it is damaged."""
        ...
