"""
Every invariant of a store, as the product checks them, and what only a test can ask for.

``check`` is what the races ask when they are over, ``quick`` what the state machine asks after each
step.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, LiteralString

from clew.store.checks import registry

if TYPE_CHECKING:
    from clew.store.checks.check import Check, Violation
    from clew.store.contract import Tx

# By the time on the rows: where a clock may be put back they say nothing.
_BY_TIME: dict[LiteralString, LiteralString] = {
    "1: who has a successor has ended, before or when that one opened": """
        SELECT s.id FROM session s JOIN session n ON n.predecessor = s.id
        WHERE s.ended_at > n.opened_at
    """,
    "5: an entry was appended while its session was open": """
        SELECT e.id FROM entry e JOIN session s ON s.id = e.session_id
        WHERE e.created_at > s.ended_at
    """,
    "6: a turn begins after the one before has ended": """
        SELECT b.id FROM turn a JOIN turn b
          ON b.conversation_id = a.conversation_id AND b.first_seq > a.first_seq
        WHERE a.finished_at IS NULL OR a.finished_at > b.started_at
    """,
    "8: the entries of a turn stand between its begin and its end": """
        SELECT e.id FROM entry e JOIN turn t ON t.id = e.turn_id
        WHERE e.seq < t.first_seq OR e.created_at < t.started_at OR e.created_at > t.finished_at
    """,
}
_TIMES: LiteralString = " UNION ALL ".join(
    [f"SELECT '{text}', x.* FROM ({sql}) x" for text, sql in _BY_TIME.items()]
)


def check(t: Tx) -> list[str]:
    """Every violation of an invariant in the whole store, as sentences."""
    return [_sentence(*each) for each in registry.find_all(t)] + _times(t)


def quick(t: Tx) -> list[str]:
    """As ``check``, without what grows with all that was ever said: hashes, search."""
    return [_sentence(*each) for each in registry.find_fast(t)] + _times(t)


def _sentence(broken: Check, found: Violation) -> str:
    return f"{broken.name}: {found.conversation} {found.seq}: {found.detail}"


def _times(t: Tx) -> list[str]:
    return [f"{sentence}: not so for {name}" for sentence, name in t.fetch_all(_TIMES)]
