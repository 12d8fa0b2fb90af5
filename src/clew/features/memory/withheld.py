"""Texts that were forgotten, known by their digests: what the log has of them is not recalled."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.features.memory.facts import SHARED
from clew.features.memory.words import hash_words, list_words
from clew.record import Record

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from clew.core.scope import Scope
    from clew.store.contract import Tx
    from clew.store.search import SearchHit


class WithheldTexts(Record, kw_only=False):
    """The forgotten texts of a scope: by how many words they have, and digest, when."""

    texts: Mapping[int, Mapping[str, int]]

    def are_in(self, text: str, said_at: int) -> bool:
        """Return whether a text has one that was forgotten after it was said."""
        words = list_words(text)
        return any(
            said_at <= digests.get(hash_words(words[at : at + length]), -1)
            for length, digests in self.texts.items()
            for at in range(len(words) - length + 1)
        )


def withhold(t: Tx, texts: Iterable[str], scopes: Sequence[Scope]) -> None:
    """Recall messages of these scopes no more that have one of the texts until now."""
    for words in map(list_words, texts):
        for scope in scopes if words else ():
            t.execute(
                """
                INSERT INTO memory_withheld (scope, words, hash, forgotten_at)
                VALUES ($1, $2, $3, $4)
                ON CONFLICT (scope, words, hash) DO UPDATE SET forgotten_at = excluded.forgotten_at
                """,
                scope,
                len(words),
                hash_words(words),
                t.now,
            )


def read_withheld(t: Tx, scope: Scope) -> WithheldTexts:
    """Return what is not recalled from messages of a scope."""
    texts: dict[int, dict[str, int]] = {}
    for length, digest, forgotten_at in t.fetch_all(
        "SELECT words, hash, max(forgotten_at) FROM memory_withheld WHERE scope IN ($1, $2)"
        " GROUP BY words, hash",
        scope,
        SHARED,
    ):
        texts.setdefault(length, {})[digest] = forgotten_at
    return WithheldTexts(texts)


def is_withheld(t: Tx, hit: SearchHit, withheld: WithheldTexts) -> bool:
    """Return whether a message has a forgotten text, or is what a forgotten fact came from."""
    if not withheld.texts:
        return False
    text, said_at = t.fetch_one(
        "SELECT text, created_at FROM entry WHERE conversation_id = $1 AND seq = $2",
        hit.conversation_id,
        hit.seq,
    ) or ("", 0)
    return withheld.are_in(text, said_at) or t.exists(
        "SELECT 1 FROM memory_fact WHERE conversation = $1 AND seq = $2 AND state = 'forgotten'",
        hit.conversation_id,
        hit.seq,
    )
