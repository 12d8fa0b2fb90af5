"""
Verifying an export without a store: any line that was changed, lost or moved is found and named.

Each line is looked at by itself (its sum), in its place (its number) and in its conversation (the
chain of hashes). Who changes an entry and makes its sum and hash anew breaks the chain at the next;
who makes everything anew ends with another last hash, which the store and earlier exports know.
"""

from __future__ import annotations

import hashlib
import re
from collections import deque
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Protocol

from clew.core.entry import GENESIS
from clew.core.exported.lines import FORMAT, VERSION, Unreadable, check_seal, said_by
from clew.core.exported.places import Places, places
from clew.core.exported.shapes import SHAPES, record_of
from clew.core.exported.thread import Thread

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from clew.core.exported.shapes import Record

#: After so many findings the rest of them is only counted.
MOST: Final = 1000
_ENTRY: Final = re.compile(rb'"type":"entry"|"seq":|"prev_hash":')


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """Something that is not as it was written."""

    #: The line of the file, from 1; for a line that is missing, the one that it was.
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


@dataclass(frozen=True, kw_only=True, slots=True)
class Outline:
    """A conversation of an export, and where it stands."""

    conversation: str
    #: Where its first line begins, in bytes.
    offset: int
    entries: int
    sessions: int
    last_hash: bytes
    #: Something that was said is not in the export, since it was a secret.
    withheld: bool


class Verifier:
    """
    Takes the lines of a file, one by one; afterwards ``findings`` says what is wrong.

    ``places`` is what a first look at the same lines found; ``marks`` are entries (conversation and
    seq) whose hashes are asked for.
    """

    def __init__(self, places: Places, *, marks: Mapping[str, int] | None = None) -> None:
        self.findings: list[Finding] = []
        #: Findings that are only counted.
        self.more = 0
        self.conversations: list[Outline] = []
        self.tombstones: list[Record] = []
        self.entries = 0
        #: The hashes that were asked for, by conversation.
        self.hashes: dict[str, bytes] = {}
        self._marks = marks or {}
        self._places = places
        self._line = self._offset = 0
        #: The number of the newest line that stands in its place.
        self._n = 0
        #: Lines since then that were changed, with whether each looks like an entry.
        self._changed: list[tuple[int, bool]] = []
        #: Findings about missing lines of the conversation that may turn out to be entries.
        self._nameless: list[int] = []
        #: Entries that stand elsewhere, and those that may: they were passed over at a line.
        self._astray: set[tuple[str | None, int | None]] = set()
        self._passed: list[tuple[int, str, int]] = []
        self._elsewhere = set(places.moved.values())
        self._sums = hashlib.sha256()
        self._thread: Thread | None = None
        self._blobs: set[bytes] = set()
        self._ended = self._has_trailer = False

    @property
    def clean(self) -> bool:
        return not self.findings

    @property
    def lines(self) -> int:
        return self._line

    def take(self, line: bytes) -> None:
        """The next line of the file, with its line end."""
        self._line += 1
        if self._line in self._places.changed:
            self._changed.append((self._line, _ENTRY.search(line) is not None))
        else:
            try:
                self._read(line)
            except Unreadable as error:
                self._find(str(error), self._line)
        self._offset += len(line)

    def _read(self, line: bytes) -> None:
        said = said_by(line[:-1])
        if (n := self._places.moved.get(self._line)) is not None:
            self._moved(n, said)
            return
        self._fill_in(said)
        self._n = said["n"]
        self._take(said)
        self._sums.update(check_seal(line[:-1]).encode())

    def _moved(self, n: int, said: dict[str, Any]) -> None:
        self._find(f"it was moved here: it is line {n}", self._line, *_named(said))
        self._astray.add(_named(said))
        self._has_trailer |= said.get("type") == "trailer"
        if self._thread is not None:
            self._thread.tear()

    def _fill_in(self, said: dict[str, Any]) -> None:
        """Name what should have stood before this line and did not."""
        numbers = range(self._n + 1, said["n"])
        if not numbers and not self._changed:
            return
        conversation, entries = self._between(said)
        changed = deque(self._changed)
        for n, seq in zip(numbers, self._entries_in(numbers, entries), strict=True):
            if n in self._elsewhere:
                continue
            if changed:
                line, _ = changed.popleft()
                self._tell_changed(line, conversation, seq)
            else:
                if seq is None and len(self.findings) < MOST:
                    self._nameless.append(len(self.findings))
                self._find("it is missing", n, conversation, seq)
        for line, _ in changed:  # one that was broken into two
            self._tell_changed(line, conversation, None)
        self._changed.clear()
        if self._thread is not None:
            self._thread.tear()

    def _tell_changed(self, line: int, conversation: str | None, seq: int | None) -> None:
        self._find(f"it was changed: {self._places.changed[line]}", line, conversation, seq)

    def _between(self, said: dict[str, Any]) -> tuple[str | None, range]:
        """The conversation around a gap, and the entries that are missing in it."""
        thread, (conversation, seq) = self._thread, _named(said)
        if thread is None or thread.id != conversation:
            return (conversation if thread is None else thread.id), range(0)
        return thread.id, range(0) if seq is None else range(thread.last_seq + 1, seq)

    def _entries_in(self, numbers: range, entries: range) -> Sequence[int | None]:
        """The seqs of the lines that stood in a gap, where that can be known."""
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

    def _passed_over(self, thread: Thread, seqs: range) -> None:
        """Entries are missing before this line: name the lines that they were, if one can."""
        if not seqs:
            return
        missing = [seq for seq in seqs[:MOST] if (thread.id, seq) not in self._astray]
        if len(missing) == len(self._nameless):
            for at, seq in zip(self._nameless, missing, strict=True):
                self.findings[at] = replace(self.findings[at], seq=seq)
        else:
            self._passed += ((self._line, thread.id, seq) for seq in missing)
        self._nameless.clear()
        thread.last_seq = seqs[-1]
        thread.tear()

    def _take(self, said: dict[str, Any]) -> None:
        kind = said.get("type")
        if (kind == "header") != (self._n == 1):
            raise Unreadable("the first line of an export is its header, and no other")
        if self._ended:
            raise Unreadable("it stands after the end of the export")
        if kind == "header":
            self._header(said)
        elif kind == "trailer":
            self._trailer(said)
        elif isinstance(kind, str) and kind in SHAPES:
            self._stored(kind, said)
        else:
            raise Unreadable(f"no line has the type {kind!r}")

    def _header(self, said: dict[str, Any]) -> None:
        if said.get("format") != FORMAT or type(said.get("version")) is not int:
            raise Unreadable("it is not the first line of a Clew export")
        if said["version"] > VERSION:
            raise Unreadable(
                f"this export has format {said['version']}, made by a newer Clew: this one reads "
                f"format {VERSION}"
            )

    def _stored(self, kind: str, said: dict[str, Any]) -> None:
        record = record_of(kind, said)
        if kind == "tombstone":
            self._break_off()
            self.tombstones.append(record)
        elif kind == "conversation":
            self._break_off()
            self._begin(Thread(record["id"], self._offset, entries=record["entries"]))
        else:
            self._in_thread(kind, record, withheld=said.get("withheld") is True)

    def _in_thread(self, kind: str, record: Record, *, withheld: bool) -> None:
        thread = self._thread_of(record["conversation"])
        if kind in ("entry", "end"):
            following = record["seq"] if kind == "entry" else record["entries"] + 1
            self._passed_over(thread, range(thread.last_seq + 1, following))
        for seq, problem in thread.take(kind, record, withheld=withheld):
            self._find(problem, self._line, thread.id, seq)
        match kind:
            case "entry":
                self.entries += 1
                if self._marks.get(thread.id) == record["seq"]:
                    self.hashes[thread.id] = record["hash"]
            case "blob":
                self._blob(record)
            case "attachment" if record["sha256"] not in self._blobs and not thread.torn:
                raise Unreadable("its contents are not in the export")
            case "end":
                self._close(thread)
            case _:
                pass

    def _thread_of(self, conversation: str) -> Thread:
        thread = self._thread
        if thread is not None and thread.id == conversation:
            return thread
        if self.clean:
            self._find("it stands outside of its conversation", self._line, conversation)
        self._break_off()
        return self._begin(Thread(conversation, self._offset, entries=None))

    def _begin(self, thread: Thread) -> Thread:
        self._nameless.clear()
        self._thread = thread
        return thread

    def _blob(self, record: Record) -> None:
        self._blobs.add(record["sha256"])
        if hashlib.sha256(record["data"]).digest() != record["sha256"]:
            raise Unreadable("its contents do not have the hash that it states")

    def _break_off(self) -> None:
        """A conversation is over without its end."""
        if (thread := self._thread) is None:
            return
        if not thread.torn:
            self._find("the conversation has no end", self._line, thread.id, thread.last_seq)
        self._close(thread)

    def _close(self, thread: Thread) -> None:
        self._thread = None
        self.conversations.append(
            Outline(
                conversation=thread.id,
                offset=thread.offset,
                entries=thread.last_seq,
                sessions=len(thread.sessions),
                last_hash=thread.last_hash,
                withheld=thread.withheld,
            )
        )

    def _trailer(self, said: dict[str, Any]) -> None:
        self._break_off()
        self._ended = self._has_trailer = True
        if self.findings:
            return  # what it counts is known to be wrong
        found = {
            "conversations": len(self.conversations),
            "entries": self.entries,
            "tombstones": len(self.tombstones),
            "sums": self._sums.hexdigest(),
        }
        for name, value in found.items():
            if said.get(name) != value:
                raise Unreadable(f"the export states other {name} than there are")

    def end(self) -> None:
        """There are no more lines."""
        if not self._places.whole:
            self.findings = [Finding(line=1, detail="the file is not an export of Clew")]
            return
        conversation, seq = None, None
        if self._thread is not None:
            conversation, seq = self._thread.id, self._thread.last_seq
        for line, is_entry in self._changed:
            if seq is not None and is_entry:
                seq += 1
            self._tell_changed(line, conversation, seq if is_entry else None)
        if not self._has_trailer and not self._changed:
            self._find("the export was cut off after this line", self._line, conversation, seq)
        for line, name, passed in self._passed:
            if (name, passed) not in self._astray:
                self._find("it is missing before this line", line, name, passed)
        self.findings.sort(key=lambda finding: finding.line)

    def _find(
        self, detail: str, line: int, conversation: str | None = None, seq: int | None = None
    ) -> None:
        if len(self.findings) >= MOST:
            self.more += 1
            return
        self.findings.append(Finding(line=line, conversation=conversation, seq=seq, detail=detail))


class Source(Protocol):
    """The file of an export, as bytes."""

    def seek(self, offset: int, /) -> int: ...

    def __iter__(self) -> Iterator[bytes]: ...


def verify(source: Source, *, earlier: Verifier | None = None) -> Verifier:
    """
    Read a file and say what is wrong with it.

    With an ``earlier`` export that was verified also what does not go on from there.
    """
    marks = {} if earlier is None else {o.conversation: o.entries for o in earlier.conversations}
    source.seek(0)
    seen = places(source)
    source.seek(0)
    verifier = Verifier(seen, marks=marks)
    for line in source:
        verifier.take(line)
    verifier.end()
    if earlier is not None:
        verifier.findings += _gone_back(earlier, verifier)
    return verifier


def _gone_back(earlier: Verifier, later: Verifier) -> Iterator[Finding]:
    """What an earlier export has and a later one neither has nor says that it was deleted."""
    outlines = {outline.conversation: outline for outline in later.conversations}
    graves = {grave["conversation"]: grave for grave in later.tombstones}
    known = {grave["conversation"]: grave for grave in earlier.tombstones}
    for before in earlier.conversations:
        name = before.conversation
        if (now := outlines.get(name)) is not None:
            problem = _cut(before, now.entries, later.hashes.get(name, GENESIS))
        elif (grave := graves.get(name)) is not None:
            # Of one that had grown before it was deleted, the hash in between is gone.
            grown = grave["last_seq"] > before.entries
            last_hash = before.last_hash if grown else grave["last_hash"]
            problem = _cut(before, grave["last_seq"], last_hash)
        else:
            problem = "it is gone, and no mark says that it was deleted"
        if problem is not None:
            yield Finding(line=later.lines, conversation=name, seq=before.entries, detail=problem)
    for name, grave in known.items():
        if graves.get(name) != grave:
            yield Finding(
                line=later.lines, conversation=name, detail="the mark of its deletion is gone"
            )


def _cut(before: Outline, last_seq: int, hash_then: bytes) -> str | None:
    """What is wrong, if ``hash_then`` is now the hash of what was the last entry before."""
    if last_seq < before.entries:
        return f"it had {before.entries} entries before, and has {last_seq}"
    if hash_then != before.last_hash:
        return "it is not what it was in the earlier export"
    return None


def _named(said: dict[str, Any]) -> tuple[str | None, int | None]:
    """The conversation and the entry that a line names."""
    name = said.get("id") if said.get("type") == "conversation" else said.get("conversation")
    seq = said.get("seq") if said.get("type") == "entry" else None
    return name if isinstance(name, str) else None, seq if type(seq) is int else None
