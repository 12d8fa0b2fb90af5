"""What a database does for search; ``clew.store.search`` says what for."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, LiteralString, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from clew.core.scope import Scope
    from clew.store.contract import Row

#: Above every ``entry.n``.
FAR = 2**62

#: In one slice.
_CHARACTERS = 50_000
#: A message that may be what is looked for, from ``entry e`` and ``conversation c``.
COLUMNS: LiteralString = "e.n, e.conversation_id, e.seq, e.role, e.text, e.created_at, c.title"
#: Leaves out what is no message of a conversation that the scope ``$1`` may see.
VISIBLE: LiteralString = (
    "e.kind = 'message' AND c.deleting_at IS NULL AND ($1 = 'local' OR c.scope = $1)"
)


def scope_token(scope: Scope) -> str:
    """What the index holds for the scope of a message, beside the tokens of its text."""
    # Begins with a private character: in a text such a character is a token by itself.
    return "\ue000" + hashlib.sha256(scope.encode()).hexdigest()[:12]


def within_budget(messages: list[Row]) -> list[Row]:
    """The first of ``(n, scope, text)``: one at least, and what is quickly indexed."""
    left = _CHARACTERS
    for count, (_, _, text) in enumerate(messages):
        left -= len(text)
        if left < 0:
            return messages[: max(count, 1)]
    return messages


class SearchIndex(Protocol):
    """
    An inverted index from tokens to the ``n`` of messages.

    Rows are ``COLUMNS``, newest first, and lazy: whoever has enough stops. What turns out to be a
    damaged index raises ``SearchNotReady``.
    """

    def behind(self, most: int) -> int:
        """How many messages are not in the index; counts up to ``most``."""
        ...

    def tail(self, viewer: Scope, before: int) -> Iterator[Row]:
        """The messages with an ``n`` below ``before`` that are not in the index."""
        ...

    def find(self, tokens: Sequence[str], viewer: Scope, before: int) -> Iterator[Row]:
        """The messages with an ``n`` below ``before`` that the index has with all ``tokens``."""
        ...

    def take(self, limit: int) -> list[Row]:
        """The oldest messages not in the index, as ``(n, scope, text)``, to be added now."""
        ...

    def add(self, messages: Sequence[tuple[int, set[str]]]) -> None:
        """Add messages with their tokens."""
        ...

    def remove(self, messages: Sequence[tuple[int, set[str]]]) -> None:
        """Remove those that are in it, given the tokens that they were added with."""
        ...

    def faults(self) -> list[str]:
        """
        Where it is not what the messages and its own account of them say; reads all of it.

        Nothing where all is well.
        """
        ...

    def clear(self) -> None:
        """Begin with an empty index, whatever state it is in; no message counts as indexed."""
        ...

    def remains(self) -> list[LiteralString]:
        """What is left of earlier indexes."""
        ...

    def discard(self, remains: LiteralString) -> None:
        """Free the space of what is left; fails, and has to be left, where it is damaged."""
        ...
