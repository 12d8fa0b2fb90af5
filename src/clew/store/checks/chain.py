"""
The hash chain: each entry carries the hash of itself and of the one before.

The whole log is walked through in the order in which it was stored, in stretches that several
processes can share; what looks wrong there is looked at again, conversation by conversation, in one
snapshot. So neither a turn nor a deletion that is under way is ever taken for a fault.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, LiteralString

from clew.core.entry import GENESIS, EntryKind, chain_hash
from clew.core.ids import ConversationId
from clew.store.checks.check import MOST, Check, Found

if TYPE_CHECKING:
    from collections.abc import Iterable

    from clew.store.contract import Row, Tx

#: Rows that are read at once.
_ROWS = 5_000
_MANY: LiteralString = "5000"

_COLUMNS: LiteralString = """
    SELECT e.conversation_id, e.seq, e.id, e.session_id, e.turn_id, e.kind, e.role, e.text,
           e.calls, e.answers, e.format, e.message, e.created_at, e.prev_hash, e.hash
    FROM entry e
"""
_STORED: LiteralString = f"{_COLUMNS} WHERE e.n > $1 AND e.n <= $2 ORDER BY e.n"
_SAID: LiteralString = f"""
    {_COLUMNS} JOIN lease l ON l.conversation_id = e.conversation_id
    WHERE e.conversation_id = $1 AND e.seq > $2 ORDER BY e.seq LIMIT {_MANY}
"""


_MESSAGE = EntryKind.MESSAGE.value
#: No message of the conversation yet.
_NOTHING = ""
_NONE = "[]"


#: What has to fit what stands before a part of a conversation, and what stands after it: the first
#: seq, the hash before it, the calls that the first message answers; the last seq, its hash, the
#: calls that the last message asks for.
Ends = tuple[int, bytes, str, int, bytes, str]

_BEGINNING: Ends = (0, b"", _NOTHING, 0, GENESIS, _NONE)


@dataclass(slots=True)
class Stretch:
    """What one walk over a part of the log has found."""

    ends: dict[str, Ends] = field(default_factory=dict[str, Ends])
    #: Conversations in which a hash does not fit.
    broken: set[str] = field(default_factory=set[str])
    #: Conversations in which a call is not answered by the next message.
    unpaired: set[str] = field(default_factory=set[str])


def last_stored(t: Tx) -> int:
    """The number of the newest entry, by the order in which they were stored."""
    row = t.one("SELECT max(n) FROM entry")
    return 0 if row is None or row[0] is None else row[0]


def walk(t: Tx, first: int, last: int) -> Stretch:
    """Look at the entries that were stored as ``first`` to ``last``, both included."""
    found = Stretch()
    for start in range(first - 1, last, _ROWS):
        _walk(t.all(_STORED, start, min(start + _ROWS, last)), found)
    return found


def _walk(rows: list[Row], found: Stretch) -> None:
    ends, broken, unpaired = found.ends, found.broken, found.unpaired
    for row in rows:
        conversation, seq, prev, own = row[0], row[1], row[13], row[14]
        if chain_hash(prev, row[:13]) != own:
            broken.add(conversation)
        before = ends.get(conversation)
        if before is None:
            answers, calls = (row[9], row[8]) if row[5] == _MESSAGE else (_NOTHING, _NOTHING)
            ends[conversation] = (seq, prev, answers, seq, own, calls)
            continue
        first, first_prev, answers, last, last_hash, calls = before
        if seq != last + 1 or prev != last_hash:
            broken.add(conversation)
        if row[5] == _MESSAGE:
            if answers is _NOTHING:
                answers = row[9]
            elif row[9] != calls:
                unpaired.add(conversation)
            calls = row[8]
        ends[conversation] = (first, first_prev, answers, seq, own, calls)


def joined(stretches: Iterable[Stretch]) -> Stretch:
    """Stretches in the order of the log, as one."""
    whole = Stretch()
    for stretch in stretches:
        whole.broken |= stretch.broken
        whole.unpaired |= stretch.unpaired
        for conversation, part in stretch.ends.items():
            first, first_prev, answers, last, last_hash, calls = part
            _, _, _, before, before_hash, asked = whole.ends.get(conversation, _BEGINNING)
            if first != before + 1 or first_prev != before_hash:
                whole.broken.add(conversation)
            if answers not in (_NOTHING, asked):
                whole.unpaired.add(conversation)
            kept = (first, first_prev, answers, last, last_hash, calls or asked)
            whole.ends[conversation] = kept
    # What waits for its result, or lacks it.
    whole.unpaired |= {name for name, ends in whole.ends.items() if ends[5] != _NONE}
    return whole


def broken(t: Tx, conversation: ConversationId) -> list[Found]:
    """Every entry of a conversation that was changed, or that does not follow the one before."""
    found: list[Found] = []
    seq, hashed = 0, GENESIS
    while rows := t.all(_SAID, conversation, seq):
        for row in rows:
            prev, own = bytes(row[13]), bytes(row[14])
            if chain_hash(prev, row[:13]) != own:
                found.append(_finding(row, "is not what was said: its hash is another one"))
            # A number that is missing is told by another check.
            elif row[1] == seq + 1 and prev != hashed:
                found.append(_finding(row, "does not follow the one before: that one was replaced"))
            seq, hashed = row[1], own
    return found


def _finding(row: Row, what: str) -> Found:
    return Found(
        conversation=ConversationId(row[0]),
        seq=row[1],
        subject=row[2],
        sure=False,
        detail=f"entry {row[2]} {what}",
    )


def _look(t: Tx, again: Found | None = None) -> list[Found]:
    if again is not None:
        return [] if again.conversation is None else broken(t, again.conversation)
    return confirmed(t, joined([walk(t, 1, last_stored(t))]).broken)


def confirmed(t: Tx, conversations: Iterable[str]) -> list[Found]:
    """What is wrong in those that looked so."""
    found: list[Found] = []
    for conversation in sorted(conversations):
        found += broken(t, ConversationId(conversation))
        if len(found) >= MOST:
            break
    return found


CHAIN = Check(
    name="hash-chain",
    says="Each entry carries the hash of itself and of the one before.",
    look=_look,
    decide="restore a backup from before the change; compare with an export (clew sessions verify)",
)
CHECKS: tuple[Check, ...] = (CHAIN,)
