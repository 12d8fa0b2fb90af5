"""
The invariants of the design, read from the tables: one query per sentence, each finds violations.

``check`` is what the races ask when they are over, ``quick`` what the state machine asks after each
step.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, LiteralString

from clew.agent import messages
from clew.core.entry import GENESIS, chain_hash

if TYPE_CHECKING:
    from clew.store.contract import Row, Tx

# Each SELECT yields names of what violates the sentence. A conversation that is being deleted has
# no lease row, and is left out where rows may be missing already.
_SENTENCES: dict[LiteralString, LiteralString] = {
    "1: one session at most is open": """
        SELECT conversation_id FROM session WHERE ended_at IS NULL
        GROUP BY conversation_id HAVING count(*) > 1
    """,
    "1: an open session is the head": """
        SELECT s.id FROM session s JOIN lease l ON l.conversation_id = s.conversation_id
        LEFT JOIN head h ON h.session_id = s.id WHERE s.ended_at IS NULL AND h.session_id IS NULL
    """,
    "1: a conversation has a head, a lease row and one first session": """
        SELECT c.id FROM conversation c LEFT JOIN head h ON h.conversation_id = c.id
        LEFT JOIN lease l ON l.conversation_id = c.id
        LEFT JOIN session s ON s.conversation_id = c.id AND s.predecessor IS NULL
        WHERE c.deleting_at IS NULL
          AND (h.session_id IS NULL OR l.conversation_id IS NULL OR s.id IS NULL)
    """,
    "1: the head is the one end of the chain": """
        SELECT s.id FROM session s JOIN head h ON h.conversation_id = s.conversation_id
        LEFT JOIN session n ON n.predecessor = s.id
        WHERE (n.id IS NULL) <> (h.session_id = s.id)
    """,
    "1: a session has one successor at most": """
        SELECT predecessor FROM session WHERE predecessor IS NOT NULL
        GROUP BY predecessor HAVING count(*) > 1
    """,
    "1: who has a successor has ended, before or when that one opened": """
        SELECT s.id FROM session s JOIN session n ON n.predecessor = s.id
        WHERE s.ended_at IS NULL OR s.ended_at > n.opened_at
          OR n.conversation_id <> s.conversation_id OR n.opened_seq < s.opened_seq
    """,
    "2: seq is contiguous, and the lease counts it": """
        SELECT l.conversation_id FROM lease l LEFT JOIN entry e
          ON e.conversation_id = l.conversation_id
        GROUP BY l.conversation_id, l.last_seq
        HAVING count(e.seq) <> l.last_seq OR COALESCE(max(e.seq), 0) <> l.last_seq
          OR COALESCE(min(e.seq), 1) <> 1
    """,
    "3: a session begins at a number that was given": """
        SELECT s.id FROM session s JOIN lease l ON l.conversation_id = s.conversation_id
        WHERE s.opened_seq > l.last_seq
    """,
    "3: a base names what was said before its session": """
        SELECT b.session_id FROM base_item b JOIN session s ON s.id = b.session_id
        WHERE b.last_seq > s.opened_seq
    """,
    "3: no range stands twice in a base": """
        SELECT a.session_id FROM base_item a JOIN base_item b
          ON b.session_id = a.session_id AND b.position > a.position
        WHERE a.first_seq <= b.last_seq AND b.first_seq <= a.last_seq
    """,
    "4: a lease has an owner and a fence, or neither owner nor end": """
        SELECT conversation_id FROM lease
        WHERE (owner IS NULL) <> (expires_at IS NULL) OR (owner IS NOT NULL AND fence = 0)
    """,
    "5: an entry was appended while its session was the open head": """
        SELECT e.id FROM entry e JOIN session s ON s.id = e.session_id
        LEFT JOIN session n ON n.predecessor = s.id
        WHERE e.seq <= s.opened_seq OR e.seq > n.opened_seq OR e.created_at > s.ended_at
    """,
    "6: one turn at most is unfinished": """
        SELECT conversation_id FROM turn WHERE state <> 'done'
        GROUP BY conversation_id HAVING count(*) > 1
    """,
    "6: a turn begins after the one before has ended": """
        SELECT b.id FROM turn a JOIN turn b
          ON b.conversation_id = a.conversation_id AND b.first_seq > a.first_seq
        WHERE a.finished_at IS NULL OR a.finished_at > b.started_at
    """,
    "7: an event that was acknowledged is stored, unless it was deleted": """
        SELECT d.inbox_id FROM dedupe d LEFT JOIN inbox i ON i.id = d.inbox_id
        WHERE i.id IS NULL AND d.expires_at IS NULL
    """,
    "8: a turn's first entry is what its person said": """
        SELECT t.id FROM turn t JOIN lease l ON l.conversation_id = t.conversation_id
        LEFT JOIN entry e ON e.conversation_id = t.conversation_id AND e.seq = t.first_seq
        WHERE e.turn_id IS NULL OR e.turn_id <> t.id OR e.role <> 'user'
    """,
    "8: the entries of a turn stand between its begin and its end": """
        SELECT e.id FROM entry e JOIN turn t ON t.id = e.turn_id
        WHERE e.seq < t.first_seq OR e.created_at < t.started_at OR e.created_at > t.finished_at
    """,
    "8: a turn has as many messages of its person as it consumed inputs": """
        SELECT t.id FROM turn t JOIN lease l ON l.conversation_id = t.conversation_id
        WHERE (SELECT count(*) FROM entry e WHERE e.turn_id = t.id AND e.role = 'user')
           <> (SELECT count(*) FROM inbox i WHERE i.turn_id = t.id)
    """,
    "8: a delivery carries an entry that is stored": """
        SELECT d.id FROM delivery d JOIN lease l ON l.conversation_id = d.conversation_id
        LEFT JOIN entry e ON e.conversation_id = d.conversation_id AND e.seq = d.seq
        WHERE d.seq IS NOT NULL AND e.seq IS NULL
    """,
    "9: an input has one outcome, and what belongs to it": """
        SELECT id FROM inbox
        WHERE (outcome IS NULL) <> (resolved_at IS NULL)
           OR (COALESCE(outcome, '') IN ('turn', 'merged', 'steered')) <> (turn_id IS NOT NULL)
           OR (COALESCE(outcome, '') = 'steered') <> (step IS NOT NULL)
    """,
    "9: a turn was begun by one input": """
        SELECT t.id FROM turn t JOIN lease l ON l.conversation_id = t.conversation_id
        LEFT JOIN inbox i ON i.turn_id = t.id AND i.outcome = 'turn'
        GROUP BY t.id HAVING count(i.id) <> 1
    """,
    "9: only messages lead to turns, only the rest is executed": """
        SELECT id FROM inbox WHERE (kind = 'message' AND outcome = 'executed')
           OR (kind <> 'message' AND outcome IN ('turn', 'merged', 'steered', 'rejected'))
    """,
    "10: a call that was begun belongs to a step that was stored": """
        SELECT j.call_id FROM journal j JOIN turn t ON t.id = j.turn_id WHERE j.step > t.steps
    """,
    "10: a call is run again only where that is harmless, or the person was asked": """
        SELECT call_id FROM journal WHERE runs > 1 AND effect = 'once'
    """,
    "deleted: what is gone can be neither reached nor written": """
        SELECT c.id FROM conversation c
        LEFT JOIN route r ON r.conversation_id = c.id
        LEFT JOIN head h ON h.conversation_id = c.id
        LEFT JOIN lease l ON l.conversation_id = c.id
        WHERE c.deleting_at IS NOT NULL AND (r.key IS NOT NULL OR h.session_id IS NOT NULL
          OR l.conversation_id IS NOT NULL)
    """,
    "deleted: a tombstone stays": """
        SELECT c.id FROM conversation c LEFT JOIN tombstone b ON b.conversation_id = c.id
        WHERE c.deleting_at IS NOT NULL AND b.conversation_id IS NULL
    """,
    "deleted: nothing is left open": """
        SELECT c.id FROM conversation c WHERE c.deleting_at IS NOT NULL AND (
          EXISTS (SELECT 1 FROM inbox i WHERE i.conversation_id = c.id AND i.outcome IS NULL)
          OR EXISTS (SELECT 1 FROM turn t WHERE t.conversation_id = c.id AND t.state <> 'done')
          OR EXISTS (SELECT 1 FROM approval a WHERE a.conversation_id = c.id AND a.state = 'open')
          OR EXISTS (SELECT 1 FROM delivery d WHERE d.conversation_id = c.id
                     AND d.state IN ('pending', 'sending', 'unknown')))
    """,
}


def _quoted(sentence: LiteralString) -> LiteralString:
    return sentence.replace("'", "''")


_TABLES: LiteralString = " UNION ALL ".join(
    [f"SELECT '{_quoted(text)}', x.* FROM ({sql}) x" for text, sql in _SENTENCES.items()]
)
_CONTEXT: LiteralString = """
    SELECT h.conversation_id, b.position, e.seq, e.calls, e.answers, NULL
    FROM head h JOIN base_item b ON b.session_id = h.session_id JOIN entry e
      ON e.conversation_id = h.conversation_id AND e.seq BETWEEN b.first_seq AND b.last_seq
    WHERE e.kind = 'message'
    UNION ALL
    SELECT h.conversation_id, b.position, 0, NULL, NULL, b.message
    FROM head h JOIN base_item b ON b.session_id = h.session_id
    WHERE b.format = 'pydantic-ai/2'
    UNION ALL
    SELECT h.conversation_id, 1000000, e.seq, e.calls, e.answers, NULL
    FROM head h JOIN session s ON s.id = h.session_id JOIN entry e
      ON e.conversation_id = h.conversation_id AND e.seq > s.opened_seq
    WHERE e.kind = 'message'
    ORDER BY 1, 2, 3
"""
_LOG: LiteralString = """
    SELECT e.conversation_id, e.seq, e.id, e.session_id, e.turn_id, e.kind, e.role, e.text, e.calls,
           e.answers, e.format, e.message, e.created_at, e.prev_hash, e.hash
    FROM entry e JOIN lease l ON l.conversation_id = e.conversation_id
    ORDER BY e.conversation_id, e.seq
"""


def check(t: Tx) -> list[str]:
    """Every violation of an invariant in the whole store, as sentences."""
    return quick(t) + chains(t)


def quick(t: Tx) -> list[str]:
    """As ``check``, without the hashes, which grow with what was ever said."""
    return [f"{sentence}: not so for {name}" for sentence, name in t.all(_TABLES)] + pairs(t)


def pairs(t: Tx) -> list[str]:
    """10: each call of a context has one result, right after it; only the last may wait for its."""
    found: list[str] = []
    before: tuple[str, list[str]] | None = None
    for conversation, _, seq, *pair, literal in t.all(_CONTEXT):
        calls, answers = map(json.loads, pair) if literal is None else _of_literal(literal)
        asked = before[1] if before is not None and before[0] == conversation else []
        if answers != asked:
            found.append(f"10: {conversation} {seq} answers {answers}, asked was {asked}")
        before = (conversation, calls)
    return found


def _of_literal(message: str) -> tuple[list[str], list[str]]:
    """What a message asks for and answers that stands in a base as it is: a shortened result."""
    loaded = messages.load(message)
    return list(messages.call_ids(loaded)), list(messages.answered_ids(loaded))


def chains(t: Tx) -> list[str]:
    """2: each entry carries the hash of itself and of the one before."""
    found: list[str] = []
    conversation, prev_hash = "", GENESIS
    for row in t.all(_LOG):
        if row[0] != conversation:
            conversation, prev_hash = row[0], GENESIS
        found += _link(row, prev_hash)
        prev_hash = bytes(row[14])
    return found


def _link(row: Row, prev_hash: bytes) -> list[str]:
    if bytes(row[13]) == prev_hash and bytes(row[14]) == chain_hash(prev_hash, row[:13]):
        return []
    return [f"2: {row[0]} {row[1]} was changed, or its place in the log was"]
