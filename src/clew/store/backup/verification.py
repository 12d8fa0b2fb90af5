"""Whether a file is a whole store: its pages, its references, the ends of its chains."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.core.entry import GENESIS, chain_hash
from clew.errors import StoreDamaged
from clew.store.sqlite.integrity import integrity_check

if TYPE_CHECKING:
    from clew.store.contract import Row, Tx
    from clew.store.copying.copy import Tell
    from clew.store.direct import Direct

#: Complaints that are told.
_TOLD = 3
# The last two entries of each conversation that is not being deleted.
_ENDS = """
    SELECT e.conversation_id, e.seq, e.id, e.session_id, e.turn_id, e.kind, e.role, e.text, e.calls,
           e.answers, e.format, e.message, e.created_at, e.prev_hash, e.hash, b.hash, l.last_seq,
           l.conversation_id
    FROM lease l
    LEFT JOIN entry e ON e.conversation_id = l.conversation_id
      AND e.seq = (SELECT max(seq) FROM entry m WHERE m.conversation_id = l.conversation_id)
    LEFT JOIN entry b ON b.conversation_id = e.conversation_id AND b.seq = e.seq - 1
    WHERE l.conversation_id > $1 ORDER BY l.conversation_id LIMIT $2
"""
_SLICE = 500


def verify(file: Direct, *, tell: Tell) -> None:
    """
    Return if the file can be restored.

    :raises StoreDamaged: if something in it is not as it was written; says what
    """
    tell(f"verifying {file.name}", 0, 0)
    found = file.read(integrity_check) or file.read(broken_chains)
    if found:
        more = f" and {len(found) - _TOLD} more" if len(found) > _TOLD else ""
        raise StoreDamaged(f"{'; '.join(found[:_TOLD])}{more}")


def broken_chains(t: Tx) -> list[str]:
    """What is wrong with the last entry of each conversation."""
    found: list[str] = []
    after = ""
    while rows := t.all(_ENDS, after, _SLICE):
        found += [complaint for row in rows if (complaint := _complaint(row)) is not None]
        after = rows[-1][17]
    return found


def _complaint(row: Row) -> str | None:
    """
    What is wrong with the end of a conversation's log; ``row`` as ``_ENDS`` has it.

    Only the end: one look per conversation, whatever was said. The whole chain is for ``fsck``.
    """
    conversation, last_seq = row[17], row[16]
    seq = row[1] or 0
    if seq != last_seq:
        return f"conversation {conversation} has entries up to {seq}, and should have {last_seq}"
    if seq == 0:
        return None
    before = GENESIS if seq == 1 else bytes(row[15] or b"")
    if bytes(row[13]) == before and bytes(row[14]) == chain_hash(before, row[:13]):
        return None
    return f"entry {seq} of conversation {conversation} is not as it was written"
