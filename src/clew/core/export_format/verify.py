"""
Verification of an export without a store: finds every changed, lost or moved line.

Each line is checked by itself (its sum), in its position (its number) and in its
conversation (the hash chain). An entry with a recomputed sum and hash breaks the chain at
the next entry; a completely recomputed export ends in another last hash, which the store
and earlier exports know.
"""

from __future__ import annotations

import hashlib
import re
from collections import deque
from typing import TYPE_CHECKING, Any, Final, Protocol

from clew.core.entry import GENESIS
from clew.core.export_format.chain_checker import ChainChecker
from clew.core.export_format.line_index import LineIndex, index_lines
from clew.core.export_format.schema import LINE_FIELDS, decode_line
from clew.core.export_format.sealed_lines import (
    FORMAT,
    VERSION,
    MalformedLine,
    check_seal,
    parse_line,
)
from clew.record import Record, replace

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from clew.core.export_format.schema import ExportRecord

#: Further findings are only counted.
MAX_FINDINGS: Final = 1000
_ENTRY: Final = re.compile(rb'"type":"entry"|"seq":|"prev_hash":')


class ExportFinding(Record):
    """Difference from the original export."""

    #: Line number in the file, from 1; for a missing line, its former number.
    line: int
    conversation: str | None = None
    seq: int | None = None
    detail: str

    def __str__(self) -> str:
        place = [f"line {self.line}"]
        if self.conversation is not None:
            place.append(f"conversation {self.conversation}")
        if self.seq is not None:
            place.append(f"entry {self.seq}")
        return f"{', '.join(place)}: {self.detail}"


class ConversationSummary(Record):
    """Conversation of an export, and its position."""

    conversation: str
    #: Byte offset of its first line.
    offset: int
    entries: int
    sessions: int
    last_hash: bytes
    #: Some text was redacted because it was a secret.
    withheld: bool


class ExportVerifier:
    """
    Verifier of the lines of a file; reports ``findings`` after the last line.

    ``places`` is the index from a first pass over the same lines; ``marks`` are entries
    (conversation and seq) whose hashes are requested.
    """

    def __init__(self, places: LineIndex, *, marks: Mapping[str, int] | None = None) -> None:
        self.findings: list[ExportFinding] = []
        #: Number of findings beyond the limit.
        self.omitted_findings = 0
        self.conversations: list[ConversationSummary] = []
        self.tombstones: list[ExportRecord] = []
        self.entries = 0
        #: The requested hashes, by conversation.
        self.hashes: dict[str, bytes] = {}
        self._marks = marks or {}
        self._places = places
        self._line = self._offset = 0
        #: The number of the last line in its correct position.
        self._n = 0
        #: Changed lines since then, each with a flag: looks like an entry.
        self._changed: list[tuple[int, bool]] = []
        #: Indexes of findings about missing lines that may turn out to be entries.
        self._nameless: list[int] = []
        #: Entries found elsewhere, and candidates: entries skipped at a line.
        self._astray: set[tuple[str | None, int | None]] = set()
        self._passed: list[tuple[int, str, int]] = []
        self._elsewhere = set(places.moved.values())
        self._sums = hashlib.sha256()
        self._thread: ChainChecker | None = None
        self._blobs: set[bytes] = set()
        self._ended = self._has_trailer = False

    @property
    def is_clean(self) -> bool:
        return not self.findings

    @property
    def line_count(self) -> int:
        return self._line

    def add_line(self, line: bytes) -> None:
        """Check the next line of the file, including its line end."""
        self._line += 1
        if self._line in self._places.changed:
            self._changed.append((self._line, _ENTRY.search(line) is not None))
        else:
            try:
                self._check_line(line)
            except MalformedLine as error:
                self._add_finding(str(error), self._line)
        self._offset += len(line)

    def _check_line(self, line: bytes) -> None:
        said = parse_line(line[:-1])
        if (n := self._places.moved.get(self._line)) is not None:
            self._report_moved(n, said)
            return
        self._report_gap(said)
        self._n = said["n"]
        self._dispatch_line(said)
        self._sums.update(check_seal(line[:-1]).encode())

    def _report_moved(self, n: int, said: dict[str, Any]) -> None:
        self._add_finding(f"it was moved here: it is line {n}", self._line, *_identify_line(said))
        self._astray.add(_identify_line(said))
        self._has_trailer |= said.get("type") == "trailer"
        if self._thread is not None:
            self._thread.mark_torn()

    def _report_gap(self, said: dict[str, Any]) -> None:
        """Report the lines that are missing before this one."""
        numbers = range(self._n + 1, said["n"])
        if not numbers and not self._changed:
            return
        conversation, entries = self._locate_gap(said)
        changed = deque(self._changed)
        for n, seq in zip(numbers, self._missing_seqs(numbers, entries), strict=True):
            if n in self._elsewhere:
                continue
            if changed:
                line, _ = changed.popleft()
                self._report_changed(line, conversation, seq)
            else:
                if seq is None and len(self.findings) < MAX_FINDINGS:
                    self._nameless.append(len(self.findings))
                self._add_finding("it is missing", n, conversation, seq)
        for line, _ in changed:  # a line that was split in two
            self._report_changed(line, conversation, None)
        self._changed.clear()
        if self._thread is not None:
            self._thread.mark_torn()

    def _report_changed(self, line: int, conversation: str | None, seq: int | None) -> None:
        self._add_finding(f"it was changed: {self._places.changed[line]}", line, conversation, seq)

    def _locate_gap(self, said: dict[str, Any]) -> tuple[str | None, range]:
        """Return the conversation around a gap, and the entries missing in it."""
        thread, (conversation, seq) = self._thread, _identify_line(said)
        if thread is None or thread.id != conversation:
            return (conversation if thread is None else thread.id), range(0)
        return thread.id, range(0) if seq is None else range(thread.last_seq + 1, seq)

    def _missing_seqs(self, numbers: range, entries: range) -> Sequence[int | None]:
        """Return the seqs of the lines in a gap, where they can be known."""
        if len(numbers) == len(entries):
            if self._thread is not None and entries:
                self._thread.last_seq = entries[-1]
            return entries
        seqs: list[int | None] = [None] * len(numbers)
        if self._thread is not None:
            for at, (_, is_entry) in enumerate(self._changed[: len(numbers)]):
                if is_entry:
                    self._thread.last_seq += 1
                    seqs[at] = self._thread.last_seq
        return seqs

    def _report_skipped(self, thread: ChainChecker, seqs: range) -> None:
        """Report the entries that are missing before this line, with their lines if known."""
        if not seqs:
            return
        missing = [seq for seq in seqs[:MAX_FINDINGS] if (thread.id, seq) not in self._astray]
        if len(missing) == len(self._nameless):
            for at, seq in zip(self._nameless, missing, strict=True):
                self.findings[at] = replace(self.findings[at], seq=seq)
        else:
            self._passed += ((self._line, thread.id, seq) for seq in missing)
        self._nameless.clear()
        thread.last_seq = seqs[-1]
        thread.mark_torn()

    def _dispatch_line(self, said: dict[str, Any]) -> None:
        kind = said.get("type")
        if (kind == "header") != (self._n == 1):
            raise MalformedLine("the first line of an export is its header, and no other")
        if self._ended:
            raise MalformedLine("it is after the end of the export")
        if kind == "header":
            self._check_header(said)
        elif kind == "trailer":
            self._check_trailer(said)
        elif isinstance(kind, str) and kind in LINE_FIELDS:
            self._check_record(kind, said)
        else:
            raise MalformedLine(f"no line has the type {kind!r}")

    def _check_header(self, said: dict[str, Any]) -> None:
        if said.get("format") != FORMAT or type(said.get("version")) is not int:
            raise MalformedLine("it is not the first line of a Clew export")
        if said["version"] > VERSION:
            raise MalformedLine(
                f"this export has format {said['version']}, made by a newer Clew: this one reads "
                f"format {VERSION}"
            )

    def _check_record(self, kind: str, said: dict[str, Any]) -> None:
        record = decode_line(kind, said)
        if kind == "tombstone":
            self._abort_chain()
            self.tombstones.append(record)
        elif kind == "conversation":
            self._abort_chain()
            self._start_chain(ChainChecker(record["id"], self._offset, entries=record["entries"]))
        else:
            self._check_in_chain(kind, record, withheld=said.get("withheld") is True)

    def _check_in_chain(self, kind: str, record: ExportRecord, *, withheld: bool) -> None:
        thread = self._chain_of(record["conversation"])
        if kind in ("entry", "end"):
            following = record["seq"] if kind == "entry" else record["entries"] + 1
            self._report_skipped(thread, range(thread.last_seq + 1, following))
        for seq, problem in thread.check_record(kind, record, withheld=withheld):
            self._add_finding(problem, self._line, thread.id, seq)
        match kind:
            case "entry":
                self.entries += 1
                if self._marks.get(thread.id) == record["seq"]:
                    self.hashes[thread.id] = record["hash"]
            case "blob":
                self._check_blob(record)
            case "attachment" if record["sha256"] not in self._blobs and not thread.torn:
                raise MalformedLine("its contents are not in the export")
            case "end":
                self._finish_chain(thread)
            case _:
                pass

    def _chain_of(self, conversation: str) -> ChainChecker:
        thread = self._thread
        if thread is not None and thread.id == conversation:
            return thread
        if self.is_clean:
            self._add_finding("it is outside of its conversation", self._line, conversation)
        self._abort_chain()
        return self._start_chain(ChainChecker(conversation, self._offset, entries=None))

    def _start_chain(self, thread: ChainChecker) -> ChainChecker:
        self._nameless.clear()
        self._thread = thread
        return thread

    def _check_blob(self, record: ExportRecord) -> None:
        self._blobs.add(record["sha256"])
        if hashlib.sha256(record["data"]).digest() != record["sha256"]:
            raise MalformedLine("the hash of its contents does not match")

    def _abort_chain(self) -> None:
        """Close a conversation that has no end record."""
        if (thread := self._thread) is None:
            return
        if not thread.torn:
            self._add_finding("the conversation has no end", self._line, thread.id, thread.last_seq)
        self._finish_chain(thread)

    def _finish_chain(self, thread: ChainChecker) -> None:
        self._thread = None
        self.conversations.append(
            ConversationSummary(
                conversation=thread.id,
                offset=thread.offset,
                entries=thread.last_seq,
                sessions=len(thread.sessions),
                last_hash=thread.last_hash,
                withheld=thread.withheld,
            )
        )

    def _check_trailer(self, said: dict[str, Any]) -> None:
        self._abort_chain()
        self._ended = self._has_trailer = True
        if self.findings:
            return  # its counts are known to be wrong
        found = {
            "conversations": len(self.conversations),
            "entries": self.entries,
            "tombstones": len(self.tombstones),
            "sums": self._sums.hexdigest(),
        }
        for name, value in found.items():
            if said.get(name) != value:
                raise MalformedLine(f"the export states other {name} than there are")

    def finish(self) -> None:
        """Report missing lines at the end, and sort the findings."""
        if not self._places.whole:
            self.findings = [ExportFinding(line=1, detail="the file is not an export of Clew")]
            return
        conversation, seq = None, None
        if self._thread is not None:
            conversation, seq = self._thread.id, self._thread.last_seq
        for line, is_entry in self._changed:
            if seq is not None and is_entry:
                seq += 1
            self._report_changed(line, conversation, seq if is_entry else None)
        if not self._has_trailer and not self._changed:
            self._add_finding(
                "the export was cut off after this line", self._line, conversation, seq
            )
        for line, name, passed in self._passed:
            if (name, passed) not in self._astray:
                self._add_finding("it is missing before this line", line, name, passed)
        self.findings.sort(key=lambda finding: finding.line)

    def _add_finding(
        self, detail: str, line: int, conversation: str | None = None, seq: int | None = None
    ) -> None:
        if len(self.findings) >= MAX_FINDINGS:
            self.omitted_findings += 1
            return
        self.findings.append(
            ExportFinding(line=line, conversation=conversation, seq=seq, detail=detail)
        )


class ExportSource(Protocol):
    """File of an export, as bytes."""

    def seek(self, offset: int, /) -> int: ...

    def __iter__(self) -> Iterator[bytes]: ...


def verify_export(source: ExportSource, *, earlier: ExportVerifier | None = None) -> ExportVerifier:
    """Verify a file, optionally as a continuation of an ``earlier`` verified export."""
    marks = {} if earlier is None else {o.conversation: o.entries for o in earlier.conversations}
    source.seek(0)
    seen = index_lines(source)
    source.seek(0)
    verifier = ExportVerifier(seen, marks=marks)
    for line in source:
        verifier.add_line(line)
    verifier.finish()
    if earlier is not None:
        verifier.findings += _find_regressions(earlier, verifier)
    return verifier


def _find_regressions(earlier: ExportVerifier, later: ExportVerifier) -> Iterator[ExportFinding]:
    """Yield what an earlier export has and a later one lost without a deletion mark."""
    outlines = {outline.conversation: outline for outline in later.conversations}
    graves = {grave["conversation"]: grave for grave in later.tombstones}
    known = {grave["conversation"]: grave for grave in earlier.tombstones}
    for before in earlier.conversations:
        name = before.conversation
        if (now := outlines.get(name)) is not None:
            problem = _find_regression(before, now.entries, later.hashes.get(name, GENESIS))
        elif (grave := graves.get(name)) is not None:
            # If it had grown before its deletion, the intermediate hash is lost.
            grown = grave["last_seq"] > before.entries
            last_hash = before.last_hash if grown else grave["last_hash"]
            problem = _find_regression(before, grave["last_seq"], last_hash)
        else:
            problem = "it is missing, and there is no record of its deletion"
        if problem is not None:
            yield ExportFinding(
                line=later.line_count, conversation=name, seq=before.entries, detail=problem
            )
    for name, grave in known.items():
        if graves.get(name) != grave:
            yield ExportFinding(
                line=later.line_count,
                conversation=name,
                detail="the record of its deletion is missing",
            )


def _find_regression(before: ConversationSummary, last_seq: int, hash_then: bytes) -> str | None:
    """Return the problem unless ``hash_then`` is the earlier export's last hash."""
    if last_seq < before.entries:
        return f"it had {before.entries} entries before, and has {last_seq}"
    if hash_then != before.last_hash:
        return "it differs from the earlier export"
    return None


def _identify_line(said: dict[str, Any]) -> tuple[str | None, int | None]:
    """Return the conversation and the entry that a line names."""
    name = said.get("id") if said.get("type") == "conversation" else said.get("conversation")
    seq = said.get("seq") if said.get("type") == "entry" else None
    return name if isinstance(name, str) else None, seq if type(seq) is int else None
