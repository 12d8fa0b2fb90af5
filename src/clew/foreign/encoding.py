"""Conversations of other systems as records of an export, which an import takes in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from clew.core.attachments import describe_file
from clew.core.entry import EntryKind, Role
from clew.core.session import COMPRESSION
from clew.foreign.conversations import ForeignCompaction, ForeignEvent, ForeignMessage
from clew.foreign.ids import IdMaker
from clew.foreign.messages import (
    draft_event,
    draft_message,
    draft_user_message,
    encode_summary,
    fetch_files,
)
from clew.foreign.record_log import RecordLog, make_payload
from clew.foreign.steps import StepOrderer
from clew.record import Record, replace

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clew.core.export_format.records import TypedRecord
    from clew.core.scope import Scope
    from clew.foreign.conversations import ForeignConversation, ForeignItem


class EncodedConversation(Record):
    """One conversation, and what was done to make it whole."""

    records: Sequence[TypedRecord]
    #: Items that wait for the next import.
    waiting: int
    messages: int
    events: int
    compactions: int
    #: Calls that got a result that says that there is none, and results that became events.
    missing_results: int
    lost_results: int

    @property
    def entries(self) -> int:
        return self.messages + self.events


def encode_conversation(
    system: str, conversation: ForeignConversation, *, scope: Scope
) -> EncodedConversation:
    """
    Return a conversation as the records of an export.

    The same source always gives the same records, and one that has grown the same beginning.
    """
    encoder = _Encoder(IdMaker(system, conversation.id), conversation)
    return encoder.encode(system, scope)


class _Encoder:
    def __init__(self, ids: IdMaker, source: ForeignConversation) -> None:
        self._ids, self._source = ids, source
        self._route = source.routes[0].key if source.routes else None
        self._orderer = StepOrderer()
        self._log = RecordLog(ids, source.created_at)
        #: The seq of each item, by its id.
        self._seqs: dict[str, int] = {}
        self._compactions = 0

    def encode(self, system: str, scope: Scope) -> EncodedConversation:
        source, orderer = self._source, self._orderer
        items = _rename_repeated(source.items)
        for item in orderer.order_items(items, is_growing=source.is_growing):
            self._add_item(item)
        return EncodedConversation(
            records=self._log.finish(system, source, scope),
            waiting=orderer.waiting,
            messages=self._log.counts[EntryKind.MESSAGE],
            events=self._log.counts[EntryKind.EVENT],
            compactions=self._compactions,
            missing_results=orderer.missing_results,
            lost_results=orderer.lost_results,
        )

    def _add_item(self, item: ForeignItem) -> None:
        at = self._log.advance(item.at)
        match item:
            case ForeignCompaction():
                self._compact(item, at)
                return
            case ForeignEvent():
                self._log.append(at, draft_event(self._ids.make_entry_id(item.id, at), item))
            case ForeignMessage(role=Role.USER):
                self._add_user_message(item, at)
            case ForeignMessage():
                self._add_message(item, at)
        self._seqs[item.id] = self._log.seq

    def _add_user_message(self, item: ForeignMessage, at: int) -> None:
        name = self._ids.make_input_id(item.id, at)
        files = fetch_files(item, self._ids)
        self._log.open_turn(item.id, at)
        told = [describe_file(file) for file in files]
        draft = draft_user_message(self._ids.make_entry_id(item.id, at), item, told)
        payload = make_payload(item, told)
        self._log.add_input(name, draft.text, route=self._route, payload=payload)
        self._log.append(at, draft)
        for file, about in zip(files, told, strict=True):
            if file.content is not None:
                digest = bytes.fromhex(str(about["sha256"]))
                self._log.keep_file(name, file, file.content, digest)

    def _add_message(self, item: ForeignMessage, at: int) -> None:
        self._log.append(at, draft_message(self._ids.make_entry_id(item.id, at), item))
        if item.role is Role.ASSISTANT:
            self._log.note_answer(item, at)

    def _compact(self, item: ForeignCompaction, at: int) -> None:
        self._compactions += 1
        base: list[dict[str, Any]] = [encode_summary(item.summary)]
        # Never between a call and its result.
        kept = self._seqs.get(self._orderer.merged.get(item.kept_from or "", item.kept_from or ""))
        if kept is not None:
            base.append({"first": kept, "last": self._log.seq})
        self._log.open_session(at, COMPRESSION, base)


def _rename_repeated(items: Sequence[ForeignItem]) -> Sequence[ForeignItem]:
    """Return the items with ids that are unique, as some systems do not keep them."""
    seen: dict[str, int] = {}
    renamed: list[ForeignItem] = []
    for item in items:
        count = seen[item.id] = seen.get(item.id, 0) + 1
        renamed.append(item if count == 1 else replace(item, id=f"{item.id}~{count}"))
    return renamed
