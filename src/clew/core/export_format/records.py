"""Records of one exported conversation, in chronological order."""

from __future__ import annotations

from collections import defaultdict, deque
from typing import TYPE_CHECKING, TypeAlias

from clew.record import Record

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from clew.core.export_format.schema import ExportRecord

#: The type of a line and its record.
TypedRecord: TypeAlias = "tuple[str, ExportRecord]"


class ConversationExport(Record):
    """Stored records of a conversation at one moment, except entries and blobs."""

    conversation: ExportRecord
    last_hash: bytes
    #: In the order of their chain, each with its ``base``.
    sessions: Sequence[ExportRecord]
    #: In the order of their first entries.
    turns: Sequence[ExportRecord]
    #: Those with an outcome, in order of acceptance.
    inputs: Sequence[ExportRecord]
    usage: Sequence[ExportRecord]
    attachments: Sequence[ExportRecord]


class RecordInterleaver:
    """
    Interleaver of a conversation's records with its entries.

    Each record precedes the first entry that depends on it, so that every prefix of the
    lines is a complete conversation: a session before its messages, a turn before its first
    entry, an input before its message.
    """

    def __init__(self, book: ConversationExport) -> None:
        self._book = book
        self._sessions, self._turns = deque(book.sessions), deque(book.turns)
        self._consumed: defaultdict[str, deque[ExportRecord]] = defaultdict(deque)
        self._others: list[ExportRecord] = []
        for item in book.inputs:
            if item["turn"] is None:
                self._others.append(item)
            else:
                self._consumed[item["turn"]].append(item)

    def records_before(self, entry: ExportRecord) -> Iterator[TypedRecord]:
        """Yield the records that precede an entry; call it for each entry, in order."""
        while self._sessions and self._sessions[0]["opened_seq"] < entry["seq"]:
            yield "session", self._sessions.popleft()
        while self._turns and self._turns[0]["first_seq"] <= entry["seq"]:
            yield "turn", self._turns.popleft()
        waiting = self._consumed.get(entry["turn"] or "")
        if entry["role"] == "user" and waiting:
            yield "input", waiting.popleft()

    def remaining_records(self) -> Iterator[TypedRecord]:
        """Yield the records that follow the last entry."""
        yield from (("session", one) for one in self._sessions)
        yield from (("turn", one) for one in self._turns)
        left = [one for turn in self._book.turns for one in self._consumed.get(turn["id"], ())]
        yield from (("input", one) for one in [*left, *self._others])
        yield from (("usage", one) for one in self._book.usage)

    def end_record(self) -> TypedRecord:
        book = self._book
        return "end", {
            "conversation": book.conversation["id"],
            "entries": book.conversation["entries"],
            "sessions": len(book.sessions),
            "turns": len(book.turns),
            "inputs": len(book.inputs),
            "last_hash": book.last_hash,
        }
