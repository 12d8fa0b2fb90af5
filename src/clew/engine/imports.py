"""Importing: taking in the conversations of an export that was verified."""

from __future__ import annotations

import enum
import json
import os
import socket
import time
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Final, Protocol, cast

from clew.core.exported.copies import IdRemapper
from clew.core.exported.lines import parse_line
from clew.core.exported.relation import ChainSummary, Relation, compare_chains, find_divergence
from clew.core.exported.shapes import decode_line
from clew.core.ids import ConversationId
from clew.engine.uncancelled import uncancelled
from clew.errors import ConstraintViolated, OperationRefused, UsageError
from clew.store.transactions import imports, owners

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Sequence

    from clew.core.exported.book import TypedRecord
    from clew.core.exported.shapes import Record
    from clew.core.exported.verify import ConversationSummary
    from clew.core.ids import IdGenerator, OwnerId
    from clew.core.lease import Lease
    from clew.store.contract import Store

#: Seconds that a slice should take; no write may take more than a tenth.
_SLICE_SECONDS: Final = 0.03
_FEWEST, _FIRST, _MOST = 10, 100, 1000
#: Characters of a slice.
_LONGEST: Final = 500_000


class Source(Protocol):
    """The file of an export, as bytes."""

    def seek(self, offset: int, /) -> int: ...

    def readline(self) -> bytes: ...


class Result(enum.Enum):
    """What became of one conversation of an export."""

    IMPORTED = "imported"
    GROWN = "grown"  #: it was here, and what it lacked was appended
    COPIED = "copied"  #: under ids of its own, since its own were not free
    KNOWN = "known"  #: nothing of it was new
    DELETED = "deleted"  #: left out, since it was deleted here
    FAILED = "failed"  #: the reason is in ``note``


@dataclass(frozen=True, kw_only=True, slots=True)
class Imported:
    conversation: str
    #: The id that it has here.
    here: str
    result: Result
    #: Entries that were appended.
    entries: int = 0
    note: str | None = None


class Section:
    """One conversation in the file of an export, read anew each time that it is asked for."""

    def __init__(self, source: Source, outline: ConversationSummary) -> None:
        self._source, self.outline = source, outline
        self.copy: tuple[bytes, int] | None = None

    def copied(self, mark: bytes, seq: int) -> Section:
        """The same under ids of its own; the ``mark`` and the seq say where it parted from ours."""
        section = Section(self._source, self.outline)
        section.copy = mark, seq
        return section

    def records(self) -> Iterator[TypedRecord]:
        copy = None
        if self.copy is not None:
            mark, seq = self.copy
            copy = IdRemapper(self.outline.conversation, mark=mark, origin_seq=seq)
        self._source.seek(self.outline.offset)
        kind = ""
        while kind != "end":
            said = parse_line(self._source.readline()[:-1])
            kind = cast("str", said["type"])
            record = decode_line(kind, said)
            yield kind, record if copy is None else copy.copy_record(kind, record)

    def log(self) -> ChainSummary:
        hashes: list[bytes] = []
        sessions: list[str] = []
        for kind, record in self.records():
            if kind == "entry":
                hashes.append(record["hash"])
            elif kind == "session":
                sessions.append(record["id"])
        return ChainSummary(hashes=tuple(hashes), sessions=tuple(sessions))


class Imports:
    """
    Takes conversations into a store, in slices, as an owner of its own.

    Stopping it anywhere leaves whole conversations, of which some may be shorter than in the
    export; importing the same file again goes on.
    """

    def __init__(self, store: Store, ids: IdGenerator, *, version: str) -> None:
        self._store, self._version = store, version
        self._owner: OwnerId = ids.new_owner_id()
        self._budget = _FIRST
        #: Told how many entries of a conversation are in.
        self.on_entries: Callable[[int], None] = lambda _: None

    @asynccontextmanager
    async def opened(self) -> AsyncGenerator[Imports]:
        """Within the block others see that this process lives."""
        await self._store.register_owner(self._owner)
        await self._store.write(
            owners.register_owner,
            self._owner,
            host=socket.gethostname(),
            pid=os.getpid(),
            role="import",
            version=self._version,
        )
        try:
            yield self
        finally:
            await uncancelled(self._store.write(owners.mark_owner_ended, self._owner))

    async def take(
        self, source: Source, outline: ConversationSummary, *, revive: bool = False
    ) -> Imported:
        """
        Take in one conversation; what is here already is not stored again.

        Where both have gone on, each in its own way, the export's becomes a conversation of its
        own. With ``revive`` so does one that was deleted here.

        :raises StoreError: if the store fails; what was stored until then stays
        """
        section = Section(source, outline)
        try:
            return await self._take(section, revive=revive)
        except OperationRefused:
            note = "it is being written to here: import again later"
        except UsageError as error:
            note = str(error)
        except ConstraintViolated as error:
            note = f"the store refuses it: {error}"
        return _told(section, Result.FAILED, note=note)

    async def lead_to(self, source: Source, outline: ConversationSummary, taken: Imported) -> None:
        """Have the routes that led to it there lead to what was taken in, where they are free."""
        if taken.result in (Result.DELETED, Result.FAILED):
            return
        _, conversation = next(Section(source, outline).records())
        routes: list[str] = json.loads(conversation["routes"])
        await self._store.write(imports.claim_routes, ConversationId(taken.here), routes)

    async def bury(self, tombstones: Sequence[Record]) -> int:
        """Take over that conversations were deleted, unless they are here; how many were new."""
        new = 0
        for at in range(0, len(tombstones), _FIRST):
            new += await self._store.write(imports.import_tombstones, tombstones[at : at + _FIRST])
        return new

    async def _take(self, section: Section, *, revive: bool) -> Imported:
        outline = section.outline
        here = await self._store.read(
            imports.find_import_target, ConversationId(outline.conversation)
        )
        if here.deleted is not None:
            if not revive:
                return _told(section, Result.DELETED, note="it was deleted here")
            return await self._copy(section.copied(b"deleted" + here.deleted, outline.entries))
        log = section.log()
        if here.log is None:
            return await self._anew(section, log)
        match compare_chains(here.log, log):
            case Relation.APART:
                seq, mark = find_divergence(here.log, log)
                return await self._copy(section.copied(mark, seq))
            case Relation.BEHIND if outline.withheld:
                return await self._copy(section.copied(b"withheld", len(here.log.hashes)))
            case Relation.BEHIND:
                return await self._append(section, here.log, Result.GROWN)
            case _:
                return _told(section, Result.KNOWN)

    async def _anew(self, section: Section, log: ChainSummary) -> Imported:
        outline = section.outline
        if outline.withheld:
            # Without all that was said its hashes prove nothing: it gets a chain of its own.
            return await self._copy(section.copied(b"withheld", outline.entries))
        taken = await self._store.read(
            imports.has_foreign_sessions, ConversationId(outline.conversation), log.sessions
        )
        if taken:
            return await self._copy(section.copied(b"taken", outline.entries))
        return await self._append(section, None, Result.IMPORTED)

    async def _copy(self, section: Section) -> Imported:
        name = _name_here(section)
        here = await self._store.read(imports.find_import_target, ConversationId(name))
        if here.deleted is not None:
            return _told(section, Result.DELETED, note="its copy was deleted here")
        if here.log is None:
            return await self._append(section, None, Result.COPIED)
        log = section.log()
        match compare_chains(here.log, log):
            case Relation.BEHIND:
                return await self._append(section, here.log, Result.GROWN)
            case Relation.APART:
                seq, mark = find_divergence(here.log, log)
                before = b"" if section.copy is None else section.copy[0]
                return await self._copy(section.copied(before + mark, seq))
            case _:
                return _told(section, Result.KNOWN)

    async def _append(self, section: Section, log: ChainSummary | None, result: Result) -> Imported:
        """Append what the store lacks; ``log`` is what it has."""
        records = section.records()
        _, conversation = next(records)
        first = next(record for kind, record in records if kind == "session")
        had = 0 if log is None else len(log.hashes)
        sessions = 1 if log is None else len(log.sessions)
        # The log comes last: when it is whole, everything is.
        lacking = chain(_beside(section.records()), _beyond(section.records(), had, sessions))
        slices = self._slices(lacking)
        begin: Sequence[TypedRecord] = next(slices, ())
        more = next(slices, None)
        opening = imports.ImportStart(conversation=conversation, first=first, owner=self._owner)
        if more is None:
            after = await self._store.write(imports.import_conversation, opening, begin, after=had)
        else:
            after = await self._in_slices(opening, chain([begin, more], slices), had)
        return _told(section, result, entries=after - had)

    async def _in_slices(
        self, opening: imports.ImportStart, slices: Iterable[Sequence[TypedRecord]], after: int
    ) -> int:
        lease = await self._store.write(imports.open_import, opening)
        try:
            for batch in slices:
                after = await self._timed(lease, batch, after)
                self.on_entries(after)
        finally:
            await uncancelled(self._store.write(imports.close_import, lease))
        return after

    async def _timed(self, lease: Lease, batch: Sequence[TypedRecord], after: int) -> int:
        began = time.monotonic()
        after = await self._store.write(imports.import_slice, lease, batch, after=after)
        took = max(time.monotonic() - began, 0.001)
        wanted = int(len(batch) * _SLICE_SECONDS / took)
        self._budget = min(max(wanted, _FEWEST), max(2 * self._budget, _FEWEST), _MOST)
        return after

    def _slices(self, records: Iterator[TypedRecord]) -> Iterator[list[TypedRecord]]:
        """As much as one write may take, cut where what is stored by then makes sense."""
        batch: list[TypedRecord] = []
        length, unanswered = 0, False
        for kind, record in records:
            batch.append((kind, record))
            length += _length(kind, record)
            if kind == "entry" and record["kind"] == "message":
                unanswered = record["calls"] != "[]"
            # A turn stands before its input, and that before its message.
            whole = not (unanswered or kind == "turn" or (kind == "input" and record["turn"]))
            if whole and (len(batch) >= self._budget or length > _LONGEST):
                yield batch
                batch, length = [], 0
        if batch:
            yield batch


def _length(kind: str, record: Record) -> int:
    match kind:
        case "entry":
            return len(record["text"]) + len(record["message"])
        case "session":
            return sum(len(item.get("message", "")) for item in record["base"])
        case "blob":
            return len(record["data"])
        case _:
            return 0


def _is_beside(kind: str, record: Record) -> bool:
    """Whether it belongs to no place in the log."""
    return kind in ("usage", "blob", "attachment") or (kind == "input" and record["turn"] is None)


def _beside(records: Iterator[TypedRecord]) -> Iterator[TypedRecord]:
    return ((kind, record) for kind, record in records if _is_beside(kind, record))


def _beyond(records: Iterator[TypedRecord], last_seq: int, sessions: int) -> Iterator[TypedRecord]:
    """
    The part of the log that a store lacks which has ``last_seq`` entries and so many ``sessions``.

    Its newest session and turn come once more: they may have gone on.
    """
    seen, reached = 0, last_seq == 0
    turn: list[TypedRecord] = []
    for kind, record in records:
        seen += kind == "session"
        if kind in ("conversation", "end") or _is_beside(kind, record):
            continue
        if kind == "turn" and record["first_seq"] <= last_seq:
            turn = [(kind, record)]
        elif kind == "entry" and record["seq"] <= last_seq:
            reached = record["seq"] == last_seq
        elif reached if kind != "session" else seen >= sessions:
            yield from turn
            turn.clear()
            yield kind, record
    yield from turn


def _name_here(section: Section) -> str:
    if section.copy is None:
        return section.outline.conversation
    mark, seq = section.copy
    return IdRemapper(section.outline.conversation, mark=mark, origin_seq=seq).id


def _told(
    section: Section, result: Result, *, entries: int = 0, note: str | None = None
) -> Imported:
    return Imported(
        conversation=section.outline.conversation,
        here=_name_here(section),
        result=result,
        entries=entries,
        note=note,
    )
