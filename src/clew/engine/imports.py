"""Import of the conversations of a verified export."""

from __future__ import annotations

import enum
import json
import os
import socket
import time
from contextlib import asynccontextmanager
from itertools import chain
from typing import TYPE_CHECKING, Final, Protocol, cast

from clew.background import shield_until_done
from clew.core.export_format.divergence import (
    ChainSummary,
    Relation,
    compare_chains,
    find_divergence,
)
from clew.core.export_format.id_remap import IdRemapper
from clew.core.export_format.schema import decode_line
from clew.core.export_format.sealed_lines import parse_line
from clew.core.ids import ConversationId
from clew.engine.import_pace import ImportPace
from clew.errors import ConstraintViolated, OperationRefused, UsageError
from clew.record import Record
from clew.store.transactions import imports, owners
from clew.wording import IMPORTED_NOTICE

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Sequence

    from clew.core.export_format.records import TypedRecord
    from clew.core.export_format.schema import ExportRecord
    from clew.core.export_format.verify import ConversationSummary
    from clew.core.ids import IdGenerator, OwnerId
    from clew.core.lease import Lease
    from clew.store.contract import Store

#: Target duration of a slice in seconds; no write may exceed 0.1 s.
_SLICE_SECONDS: Final = 0.03
_MIN_SLICE, _FIRST_SLICE, _MAX_SLICE = 10, 100, 1000
#: Maximum number of characters in a slice.
_MAX_SLICE_LENGTH: Final = 500_000


class ExportFile(Protocol):
    """The file of an export, as bytes."""

    def seek(self, offset: int, /) -> int: ...

    def readline(self) -> bytes: ...


class ImportOutcome(enum.Enum):
    """The outcome for one conversation of an export."""

    IMPORTED = "imported"
    EXTENDED = "grown"  #: it existed, and missing entries were appended
    COPIED = "copied"  #: under new ids, since its own were taken
    UNCHANGED = "known"  #: it contained nothing new
    DELETED = "deleted"  #: skipped, since it was deleted here
    FAILED = "failed"  #: the reason is in ``note``


class ImportResult(Record):
    """The result of importing one conversation."""

    conversation: str
    #: Its id in this store.
    local_id: str
    outcome: ImportOutcome
    #: Entries that were appended.
    entries: int = 0
    note: str | None = None


class ExportSection:
    """One conversation to import; its records are read anew on each access."""

    def __init__(
        self,
        read: Callable[[], Iterator[TypedRecord]],
        *,
        conversation: str,
        entries: int,
        withheld: bool = False,
        copy_origin: tuple[bytes, int] | None = None,
    ) -> None:
        """``withheld``: some text of it was redacted, so that its hashes prove nothing."""
        self._read, self.copy_origin = read, copy_origin
        self.conversation, self.entries, self.withheld = conversation, entries, withheld

    def as_copy(self, mark: bytes, seq: int) -> ExportSection:
        """
        Return the section under new ids.

        ``mark`` and ``seq`` identify the point where it diverged from the local
        conversation.
        """
        return ExportSection(
            self._read,
            conversation=self.conversation,
            entries=self.entries,
            withheld=self.withheld,
            copy_origin=(mark, seq),
        )

    def iter_records(self) -> Iterator[TypedRecord]:
        if self.copy_origin is None:
            yield from self._read()
            return
        mark, seq = self.copy_origin
        copy = IdRemapper(self.conversation, mark=mark, origin_seq=seq)
        for kind, record in self._read():
            yield kind, copy.copy_record(kind, record)

    def summarize_chain(self) -> ChainSummary:
        hashes: list[bytes] = []
        sessions: list[str] = []
        for kind, record in self.iter_records():
            if kind == "entry":
                hashes.append(record["hash"])
            elif kind == "session":
                sessions.append(record["id"])
        return ChainSummary(hashes=tuple(hashes), sessions=tuple(sessions))


def open_section(source: ExportFile, outline: ConversationSummary) -> ExportSection:
    """Return one conversation in the file of an export."""
    return ExportSection(
        lambda: _read_section(source, outline.offset),
        conversation=outline.conversation,
        entries=outline.entries,
        withheld=outline.withheld,
    )


def _read_section(source: ExportFile, offset: int) -> Iterator[TypedRecord]:
    source.seek(offset)
    kind = ""
    while kind != "end":
        said = parse_line(source.readline()[:-1])
        kind = cast("str", said["type"])
        yield kind, decode_line(kind, said)


class ConversationImporter:
    """
    Importer of conversations, in slices, as an owner of its own.

    Stopping it anywhere leaves whole conversations, some perhaps shorter than in the
    export; importing the same file again continues.
    """

    def __init__(
        self,
        store: Store,
        ids: IdGenerator,
        *,
        version: str,
        on_entries: Callable[[int], None] = lambda _: None,
    ) -> None:
        """``on_entries`` is called with the number of imported entries of a conversation."""
        self._store, self._version, self._on_entries = store, version, on_entries
        self._owner: OwnerId = ids.new_owner_id()
        self._budget = _FIRST_SLICE
        self._pace = ImportPace(store, self._owner)

    @asynccontextmanager
    async def register_owner(self) -> AsyncGenerator[ConversationImporter]:
        """Register this process as a live owner for the duration of the block."""
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
            await shield_until_done(self._store.write(owners.mark_owner_ended, self._owner))

    async def import_conversation(
        self, section: ExportSection, *, revive: bool = False
    ) -> ImportResult:
        """
        Import one conversation; entries that exist here are not stored again.

        If both sides have diverged, the export's becomes a conversation of its own. With
        ``revive`` so does one that was deleted here.

        :raises StoreError: if the store fails; everything stored before stays
        """
        try:
            return await self._import_section(section, revive=revive)
        except OperationRefused:
            note = "it is in use here: import again later"
        except UsageError as error:
            note = str(error)
        except ConstraintViolated as error:
            note = f"the store refuses it: {error}"
        return _build_result(section, ImportOutcome.FAILED, note=note)

    async def claim_routes(self, section: ExportSection, taken: ImportResult) -> None:
        """Point the free routes at the imported conversation, and tell their chats."""
        if taken.outcome in (ImportOutcome.DELETED, ImportOutcome.FAILED):
            return
        _, conversation = next(section.iter_records())
        routes: list[str] = json.loads(conversation["routes"])
        await self._store.write(
            imports.claim_routes, ConversationId(taken.local_id), routes, notice=IMPORTED_NOTICE
        )

    async def import_tombstones(self, tombstones: Sequence[ExportRecord]) -> int:
        """Import the deletions of conversations that are not here; return how many were new."""
        new = 0
        for at in range(0, len(tombstones), _FIRST_SLICE):
            new += await self._store.write(
                imports.import_tombstones, tombstones[at : at + _FIRST_SLICE]
            )
        return new

    async def _import_section(self, section: ExportSection, *, revive: bool) -> ImportResult:
        here = await self._store.read(
            imports.find_import_target, ConversationId(section.conversation)
        )
        if here.deleted is not None:
            if not revive:
                return _build_result(section, ImportOutcome.DELETED, note="it was deleted here")
            return await self._import_copy(
                section.as_copy(b"deleted" + here.deleted, section.entries)
            )
        log = section.summarize_chain()
        if here.log is None:
            return await self._import_new(section, log)
        match compare_chains(here.log, log):
            case Relation.APART:
                seq, mark = find_divergence(here.log, log)
                return await self._import_copy(section.as_copy(mark, seq))
            case Relation.BEHIND if section.withheld:
                return await self._import_copy(section.as_copy(b"withheld", len(here.log.hashes)))
            case Relation.BEHIND:
                return await self._append_missing(section, here.log, ImportOutcome.EXTENDED)
            case _:
                return _build_result(section, ImportOutcome.UNCHANGED)

    async def _import_new(self, section: ExportSection, log: ChainSummary) -> ImportResult:
        if section.withheld:
            # Without the complete text its hashes prove nothing: it gets a chain of its own.
            return await self._import_copy(section.as_copy(b"withheld", section.entries))
        taken = await self._store.read(
            imports.has_foreign_sessions, ConversationId(section.conversation), log.sessions
        )
        if taken:
            return await self._import_copy(section.as_copy(b"taken", section.entries))
        return await self._append_missing(section, None, ImportOutcome.IMPORTED)

    async def _import_copy(self, section: ExportSection) -> ImportResult:
        name = _get_local_id(section)
        here = await self._store.read(imports.find_import_target, ConversationId(name))
        if here.deleted is not None:
            return _build_result(section, ImportOutcome.DELETED, note="its copy was deleted here")
        if here.log is None:
            return await self._append_missing(section, None, ImportOutcome.COPIED)
        log = section.summarize_chain()
        match compare_chains(here.log, log):
            case Relation.BEHIND:
                return await self._append_missing(section, here.log, ImportOutcome.EXTENDED)
            case Relation.APART:
                seq, mark = find_divergence(here.log, log)
                before = b"" if section.copy_origin is None else section.copy_origin[0]
                return await self._import_copy(section.as_copy(before + mark, seq))
            case _:
                return _build_result(section, ImportOutcome.UNCHANGED)

    async def _append_missing(
        self, section: ExportSection, log: ChainSummary | None, result: ImportOutcome
    ) -> ImportResult:
        """Append the entries that the store lacks; ``log`` is what it has."""
        records = section.iter_records()
        _, conversation = next(records)
        first = next(record for kind, record in records if kind == "session")
        had = 0 if log is None else len(log.hashes)
        sessions = 1 if log is None else len(log.sessions)
        # The log comes last: once it is complete, everything is.
        lacking = chain(
            _iter_outside_log(section.iter_records()),
            _iter_missing_log(section.iter_records(), had, sessions),
        )
        slices = self._iter_slices(lacking)
        begin: Sequence[TypedRecord] = next(slices, ())
        more = next(slices, None)
        opening = imports.ImportStart(conversation=conversation, first=first, owner=self._owner)
        if more is None:
            after = await self._store.write(imports.import_conversation, opening, begin, after=had)
            await self._pace.rest_if_shared()
        else:
            after = await self._append_slices(opening, chain([begin, more], slices), had)
        return _build_result(section, result, entries=after - had)

    async def _append_slices(
        self, opening: imports.ImportStart, slices: Iterable[Sequence[TypedRecord]], after: int
    ) -> int:
        lease = await self._store.write(imports.open_import, opening)
        try:
            for batch in slices:
                after = await self._write_slice(lease, batch, after)
                self._on_entries(after)
        finally:
            await shield_until_done(self._store.write(imports.close_import, lease))
        return after

    async def _write_slice(self, lease: Lease, batch: Sequence[TypedRecord], after: int) -> int:
        began = time.monotonic()
        after = await self._store.write(imports.import_slice, lease, batch, after=after)
        took = max(time.monotonic() - began, 0.001)
        wanted = int(len(batch) * _SLICE_SECONDS / took)
        self._budget = min(max(wanted, _MIN_SLICE), max(2 * self._budget, _MIN_SLICE), _MAX_SLICE)
        await self._pace.rest_if_shared()
        return after

    def _iter_slices(self, records: Iterator[TypedRecord]) -> Iterator[list[TypedRecord]]:
        """Yield batches for one write each, cut only where the stored part is consistent."""
        batch: list[TypedRecord] = []
        length, unanswered = 0, False
        for kind, record in records:
            batch.append((kind, record))
            length += _measure_record(kind, record)
            if kind == "entry" and record["kind"] == "message":
                unanswered = record["calls"] != "[]"
            # A turn precedes its input, which precedes its message.
            whole = not (unanswered or kind == "turn" or (kind == "input" and record["turn"]))
            if whole and (len(batch) >= self._budget or length > _MAX_SLICE_LENGTH):
                yield batch
                batch, length = [], 0
        if batch:
            yield batch


def _measure_record(kind: str, record: ExportRecord) -> int:
    match kind:
        case "entry":
            return len(record["text"]) + len(record["message"])
        case "session":
            return sum(len(item.get("message", "")) for item in record["base"])
        case "blob":
            return len(record["data"])
        case _:
            return 0


def _is_outside_log(kind: str, record: ExportRecord) -> bool:
    """Return whether a record has no position in the log."""
    return kind in ("usage", "blob", "attachment") or (kind == "input" and record["turn"] is None)


def _iter_outside_log(records: Iterator[TypedRecord]) -> Iterator[TypedRecord]:
    return ((kind, record) for kind, record in records if _is_outside_log(kind, record))


def _iter_missing_log(
    records: Iterator[TypedRecord], last_seq: int, sessions: int
) -> Iterator[TypedRecord]:
    """
    Yield the part of the log that a store with ``last_seq`` entries and ``sessions`` lacks.

    Its newest session and turn are repeated, since they may have changed.
    """
    seen, reached = 0, last_seq == 0
    turn: list[TypedRecord] = []
    for kind, record in records:
        seen += kind == "session"
        if kind in ("conversation", "end") or _is_outside_log(kind, record):
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


def _get_local_id(section: ExportSection) -> str:
    if section.copy_origin is None:
        return section.conversation
    mark, seq = section.copy_origin
    return IdRemapper(section.conversation, mark=mark, origin_seq=seq).id


def _build_result(
    section: ExportSection, result: ImportOutcome, *, entries: int = 0, note: str | None = None
) -> ImportResult:
    return ImportResult(
        conversation=section.conversation,
        local_id=_get_local_id(section),
        outcome=result,
        entries=entries,
        note=note,
    )
