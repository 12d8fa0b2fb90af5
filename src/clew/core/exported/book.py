"""One conversation as it is exported: its records in the order in which things happened."""

from __future__ import annotations

from collections import defaultdict, deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from clew.core.exported.shapes import Record

#: The type of a line and its record.
Typed: TypeAlias = "tuple[str, Record]"


@dataclass(frozen=True, kw_only=True, slots=True)
class Book:
    """What is stored of a conversation at one moment, except its entries and blobs."""

    conversation: Record
    last_hash: bytes
    #: In the order of their chain, each with its ``base``.
    sessions: Sequence[Record]
    #: In the order of their first entries.
    turns: Sequence[Record]
    #: Those that have an outcome, in the order in which they were accepted.
    inputs: Sequence[Record]
    usage: Sequence[Record]
    attachments: Sequence[Record]


class Weaver:
    """
    Puts the records of a book between its entries.

    Each stands where it came to be, so that the first lines of a conversation are themselves a
    whole conversation, wherever one stops: a session before what was said in it, a turn before its
    first entry, an input before the message that it became.
    """

    def __init__(self, book: Book) -> None:
        self._book = book
        self._sessions, self._turns = deque(book.sessions), deque(book.turns)
        self._consumed: defaultdict[str, deque[Record]] = defaultdict(deque)
        self._others: list[Record] = []
        for item in book.inputs:
            if item["turn"] is None:
                self._others.append(item)
            else:
                self._consumed[item["turn"]].append(item)

    def before(self, entry: Record) -> Iterator[Typed]:
        """What stands before an entry; to be asked for each one, in order."""
        while self._sessions and self._sessions[0]["opened_seq"] < entry["seq"]:
            yield "session", self._sessions.popleft()
        while self._turns and self._turns[0]["first_seq"] <= entry["seq"]:
            yield "turn", self._turns.popleft()
        waiting = self._consumed.get(entry["turn"] or "")
        if entry["role"] == "user" and waiting:
            yield "input", waiting.popleft()

    def rest(self) -> Iterator[Typed]:
        """What stands after the last entry."""
        yield from (("session", one) for one in self._sessions)
        yield from (("turn", one) for one in self._turns)
        left = [one for turn in self._book.turns for one in self._consumed.get(turn["id"], ())]
        yield from (("input", one) for one in [*left, *self._others])
        yield from (("usage", one) for one in self._book.usage)

    def end(self) -> Typed:
        book = self._book
        return "end", {
            "conversation": book.conversation["id"],
            "entries": book.conversation["entries"],
            "sessions": len(book.sessions),
            "turns": len(book.turns),
            "inputs": len(book.inputs),
            "last_hash": book.last_hash,
        }
