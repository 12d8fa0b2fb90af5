"""Check of one exported conversation during verification."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from clew.core.entry import GENESIS
from clew.core.export_format.id_remap import compute_entry_hash

if TYPE_CHECKING:
    from collections.abc import Iterator

    from clew.core.export_format.schema import ExportRecord

#: The seq of a problem, and its description.
Problem: TypeAlias = "tuple[int | None, str]"


class ChainChecker:
    """
    Checker of a conversation's records and hash chain.

    Where lines are missing, changed or moved the chain is *torn*: consequences of that are
    not reported as further problems.
    """

    def __init__(self, conversation: str, offset: int, *, entries: int | None) -> None:
        self.id = conversation
        #: Byte offset of its first line.
        self.offset = offset
        self.sessions: list[str] = []
        self.last_seq = 0
        self.last_hash = GENESIS
        self.withheld = False
        #: Without its first line, many checks are impossible.
        self.torn = entries is None
        self._entries = entries
        self._turns: set[str] = set()
        self._inputs = 0
        self._open = False
        #: The hash of the entry before the next one is not known.
        self._loose = self.torn

    def mark_torn(self) -> None:
        """Note that lines are missing, changed or moved before the next one."""
        self.torn = self._loose = True

    def check_record(self, kind: str, record: ExportRecord, *, withheld: bool) -> Iterator[Problem]:
        """Yield the problems of the next line."""
        match kind:
            case "entry":
                yield from self._check_entry(record, withheld)
            case "session":
                yield from self._check_session(record)
            case "turn":
                yield from self._check_turn(record)
            case "input":
                yield from self._check_input(record)
            case "end":
                yield from self._check_end(record)
            case _:
                pass

    def _check_entry(self, entry: ExportRecord, withheld: bool) -> Iterator[Problem]:
        seq: int = entry["seq"]
        self.withheld |= withheld
        if seq != self.last_seq + 1:
            yield seq, f"it follows entry {self.last_seq}"
        elif not self._loose and entry["prev_hash"] != self.last_hash:
            yield seq, "it does not follow the entry before it: one of them was changed"
        if not withheld and compute_entry_hash(entry) != entry["hash"]:
            yield seq, "it was changed: its hash does not match"
        if not self.torn and entry["session"] not in self.sessions:
            yield seq, f"it belongs to session {entry['session']}, which is not in the export"
        if not self.torn and entry["turn"] is not None and entry["turn"] not in self._turns:
            yield seq, f"it belongs to turn {entry['turn']}, which is not in the export"
        self.last_seq, self.last_hash, self._loose = seq, entry["hash"], False

    def _check_session(self, session: ExportRecord) -> Iterator[Problem]:
        before = self.sessions[-1] if self.sessions else None
        if not self.torn:
            if session["predecessor"] != before:
                yield None, f"session {session['id']} does not follow the one before it"
            if session["opened_seq"] != self.last_seq:
                yield None, f"session {session['id']} did not open after entry {self.last_seq}"
            if self._open:
                yield None, f"session {before} has a successor and did not end"
            if any(item.get("last", 0) > session["opened_seq"] for item in session["base"]):
                yield None, f"the base of session {session['id']} names entries after it"
        self._open = session["ended_at"] is None
        self.sessions.append(session["id"])

    def _check_turn(self, turn: ExportRecord) -> Iterator[Problem]:
        if not self.torn and turn["first_seq"] != self.last_seq + 1:
            yield None, f"turn {turn['id']} does not come before its first entry"
        self._turns.add(turn["id"])

    def _check_input(self, item: ExportRecord) -> Iterator[Problem]:
        self._inputs += 1
        if not self.torn and item["turn"] is not None and item["turn"] not in self._turns:
            yield None, f"input {item['id']} led to a turn that is not in the export"

    def _check_end(self, end: ExportRecord) -> Iterator[Problem]:
        if self.torn:
            return
        found = {
            "entries": self.last_seq,
            "sessions": len(self.sessions),
            "turns": len(self._turns),
            "inputs": self._inputs,
            "last_hash": self.last_hash,
        }
        for name, value in found.items():
            if end[name] != value:
                yield None, f"the conversation's end states other {name} than there are"
        if self._entries != self.last_seq:
            yield None, "the conversation's first line states other entries than there are"
        if not self.sessions:
            yield None, "the conversation has no session"
