"""
Hash chain: each entry carries its own hash and that of the previous entry.

The whole log is read in the order in which it was stored, in segments that several
processes can share. Conversations that look wrong are checked again, one by one, in one
snapshot, so that a running turn or deletion is never taken for a fault.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, LiteralString

from clew.core.entry import GENESIS, EntryKind, chain_hash
from clew.core.ids import ConversationId
from clew.store.checks.check import MAX_VIOLATIONS, Check, Violation

if TYPE_CHECKING:
    from collections.abc import Iterable

    from clew.store.contract import Row, Tx

#: Rows that are read in one statement.
_ROWS = 5_000
_ROW_LIMIT: LiteralString = "5000"

_COLUMNS: LiteralString = """
    SELECT e.conversation_id, e.seq, e.id, e.session_id, e.turn_id, e.kind, e.role, e.text,
           e.calls, e.answers, e.format, e.message, e.created_at, e.prev_hash, e.hash
    FROM entry e
"""
#: The hashed columns.
_HASHED = slice(0, -2)
_BY_STORAGE_ORDER: LiteralString = f"{_COLUMNS} WHERE e.n > $1 AND e.n <= $2 ORDER BY e.n"
_BY_CONVERSATION: LiteralString = f"""
    {_COLUMNS} JOIN lease l ON l.conversation_id = e.conversation_id
    WHERE e.conversation_id = $1 AND e.seq > $2 ORDER BY e.seq LIMIT {_ROW_LIMIT}
"""


_MESSAGE = EntryKind.MESSAGE.value
#: The part has no message yet.
_NO_MESSAGE = ""
_NO_CALLS = "[]"


#: Both ends of a part of a conversation, to compare with its neighbours: the first seq, the hash
#: before it, the calls that the first message answers; the last seq, its hash, the calls that the
#: last message requests.
SegmentEnds = tuple[int, bytes, str, int, bytes, str]

_LOG_START: SegmentEnds = (0, b"", _NO_MESSAGE, 0, GENESIS, _NO_CALLS)


@dataclass(slots=True)
class LogSegment:
    """Result of reading one part of the log."""

    ends: dict[str, SegmentEnds] = field(default_factory=dict[str, SegmentEnds])
    #: Conversations with a wrong hash.
    broken: set[str] = field(default_factory=set[str])
    #: Conversations with a call that the next message does not answer.
    unpaired: set[str] = field(default_factory=set[str])


def last_entry_number(t: Tx) -> int:
    """Return the number of the newest entry, in storage order."""
    return t.fetch_value("SELECT max(n) FROM entry") or 0


def walk_segment(t: Tx, first: int, last: int) -> LogSegment:
    """Check the entries with the numbers ``first`` to ``last``, both included."""
    found = LogSegment()
    for start in range(first - 1, last, _ROWS):
        _walk_rows(t.fetch_all(_BY_STORAGE_ORDER, start, min(start + _ROWS, last)), found)
    return found


def _walk_rows(rows: list[Row], found: LogSegment) -> None:
    ends, broken, unpaired = found.ends, found.broken, found.unpaired
    for row in rows:
        conversation, seq, _, _, _, kind, _, _, asked, answered, _, _, _, prev, own = row
        if chain_hash(prev, row[_HASHED]) != own:
            broken.add(conversation)
        before = ends.get(conversation)
        if before is None:
            answers, calls = (answered, asked) if kind == _MESSAGE else (_NO_MESSAGE, _NO_MESSAGE)
            ends[conversation] = (seq, prev, answers, seq, own, calls)
            continue
        first, first_prev, answers, last, last_hash, calls = before
        if seq != last + 1 or prev != last_hash:
            broken.add(conversation)
        if kind == _MESSAGE:
            if answers is _NO_MESSAGE:
                answers = answered
            elif answered != calls:
                unpaired.add(conversation)
            calls = asked
        ends[conversation] = (first, first_prev, answers, seq, own, calls)


def join_segments(stretches: Iterable[LogSegment]) -> LogSegment:
    """Merge segments, given in the order of the log, into one."""
    whole = LogSegment()
    for stretch in stretches:
        whole.broken |= stretch.broken
        whole.unpaired |= stretch.unpaired
        for conversation, part in stretch.ends.items():
            first, first_prev, answers, last, last_hash, calls = part
            _, _, _, before, before_hash, asked = whole.ends.get(conversation, _LOG_START)
            if first != before + 1 or first_prev != before_hash:
                whole.broken.add(conversation)
            if answers not in (_NO_MESSAGE, asked):
                whole.unpaired.add(conversation)
            kept = (first, first_prev, answers, last, last_hash, calls or asked)
            whole.ends[conversation] = kept
    # Calls that wait for their result, or lack it.
    whole.unpaired |= {name for name, (*_, calls) in whole.ends.items() if calls != _NO_CALLS}
    return whole


def find_broken_entries(t: Tx, conversation: ConversationId) -> list[Violation]:
    """Return every changed entry of a conversation, and every break of its chain."""
    found: list[Violation] = []
    seq, hashed = 0, GENESIS
    while rows := t.fetch_all(_BY_CONVERSATION, conversation, seq):
        for row in rows:
            _, number, *_, prev, own = row
            prev, own = bytes(prev), bytes(own)
            if chain_hash(prev, row[_HASHED]) != own:
                found.append(_entry_violation(row, "was changed: its hash does not match"))
            # A missing number is reported by another check.
            elif number == seq + 1 and prev != hashed:
                found.append(
                    _entry_violation(row, "does not follow the previous entry, which was replaced")
                )
            seq, hashed = number, own
    return found


def _entry_violation(row: Row, what: str) -> Violation:
    conversation, seq, entry, *_ = row
    return Violation(
        conversation=ConversationId(conversation),
        seq=seq,
        subject=entry,
        repairable=False,
        detail=f"entry {entry} {what}",
    )


def _find_broken_chains(t: Tx, again: Violation | None = None) -> list[Violation]:
    if again is not None:
        return [] if again.conversation is None else find_broken_entries(t, again.conversation)
    return confirm_broken(t, join_segments([walk_segment(t, 1, last_entry_number(t))]).broken)


def confirm_broken(t: Tx, conversations: Iterable[str]) -> list[Violation]:
    """Return what is actually wrong in the suspected conversations."""
    found: list[Violation] = []
    for conversation in sorted(conversations):
        found += find_broken_entries(t, ConversationId(conversation))
        if len(found) >= MAX_VIOLATIONS:
            break
    return found


HASH_CHAIN = Check(
    name="hash-chain",
    description="Each entry carries the hash of itself and of the one before.",
    find=_find_broken_chains,
    manual_fix=(
        "restore a backup from before the change; compare with an export (clew sessions verify)"
    ),
)
CHECKS: tuple[Check, ...] = (HASH_CHAIN,)
