"""Conversations of other systems as records of an export, which an import takes in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from clew.core.attachments import describe_file
from clew.core.conversation import TitledBy
from clew.core.double_text import DoubleText
from clew.core.entry import GENESIS, EntryKind, NewEntry, Role
from clew.core.export_format.id_remap import compute_entry_hash
from clew.core.export_format.sealed_lines import encode_json
from clew.core.inbox import InboxKind, InboxOutcome
from clew.core.session import COMPRESSION, START
from clew.core.text import sanitize_text, truncate_text
from clew.core.turn import TurnOutcome
from clew.foreign.conversations import ForeignCompaction, ForeignEvent, ForeignMessage
from clew.foreign.ids import IdMaker, clamp_millis, make_conversation_id
from clew.foreign.messages import (
    digest_of,
    draft_event,
    draft_message,
    draft_user_message,
    encode_summary,
    fetch_files,
)
from clew.foreign.steps import StepOrderer
from clew.record import Record, replace

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clew.core.attachments import FetchedFile
    from clew.core.export_format.records import TypedRecord
    from clew.core.export_format.schema import ExportRecord
    from clew.core.ids import InboxId
    from clew.core.scope import Scope
    from clew.foreign.conversations import ForeignConversation, ForeignItem

#: Setting of a conversation: the system that it comes from, and its id there.
ORIGIN_SETTING: Final = "imported_from"
_MAX_TITLE: Final = 200
_PURPOSE: Final = "turn"


class EncodedConversation(Record):
    """One conversation, and what was done to make it whole."""

    records: Sequence[TypedRecord]
    #: Items of the source that are in it, and those that wait for the next import.
    items: int
    waiting: int
    messages: int
    events: int
    compactions: int
    #: Calls that got a result that says that there is none, and results that became events.
    missing_results: int
    lost_results: int


def encode_conversation(
    system: str, conversation: ForeignConversation, *, scope: Scope
) -> EncodedConversation:
    """
    Return a conversation as the records of an export.

    The same source always gives the same records, and one that has grown the same beginning.
    """
    return _Encoder(system, conversation, scope).encode()


class _Encoder:
    def __init__(self, system: str, conversation: ForeignConversation, scope: Scope) -> None:
        self._system, self._source, self._scope = system, conversation, scope
        self._ids = IdMaker(system, conversation.id)
        self._name = self._ids.conversation
        self._orderer = StepOrderer()
        self._records: list[TypedRecord] = []
        self._sessions: list[ExportRecord] = []
        self._turns: list[ExportRecord] = []
        self._usage: list[TypedRecord] = []
        self._files: list[TypedRecord] = []
        self._digests: set[bytes] = set()
        self._seqs: dict[str, int] = {}
        self._seq, self._inputs, self._compactions = 0, 0, 0
        self._last_hash, self._last_at = GENESIS, 0
        self._counts = {EntryKind.MESSAGE: 0, EntryKind.EVENT: 0}

    def encode(self) -> EncodedConversation:
        items = _rename_repeated(self._source.items)
        created = self._advance(self._source.created_at)
        self._open_session(created, START, [])
        growing = self._source.is_growing
        for item in self._orderer.order_items(items, is_growing=growing):
            self._add_item(item)
        records = [("conversation", self._make_conversation(created)), *self._records]
        records += [*self._usage, *self._files, self._make_end()]
        waiting = self._orderer.waiting
        return EncodedConversation(
            records=records,
            items=len(items) - waiting,
            waiting=waiting,
            messages=self._counts[EntryKind.MESSAGE],
            events=self._counts[EntryKind.EVENT],
            compactions=self._compactions,
            missing_results=self._orderer.missing_results,
            lost_results=self._orderer.lost_results,
        )

    def _advance(self, at: int) -> int:
        """Return a time that is not before that of the item before: clocks are set back."""
        self._last_at = max(self._last_at, clamp_millis(at))
        return self._last_at

    def _add_item(self, item: ForeignItem) -> None:
        match item:
            case ForeignCompaction():
                self._compact(item)
            case ForeignEvent():
                at = self._advance(item.at)
                self._append(item.id, at, draft_event(self._ids.make_entry_id(item.id, at), item))
            case ForeignMessage(role=Role.USER):
                self._add_user_message(item)
            case ForeignMessage():
                self._add_message(item)

    def _add_user_message(self, item: ForeignMessage) -> None:
        at = self._advance(item.at)
        name = self._ids.make_input_id(item.id, at)
        files = fetch_files(item, self._ids)
        self._open_turn(item.id, at)
        draft = draft_user_message(self._ids.make_entry_id(item.id, at), item, files)
        self._records.append(("input", self._make_input(name, item, draft.text, files)))
        self._inputs += 1
        self._append(item.id, at, draft)
        self._keep_files(name, files)

    def _add_message(self, item: ForeignMessage) -> None:
        at = self._advance(item.at)
        self._append(item.id, at, draft_message(self._ids.make_entry_id(item.id, at), item))
        if item.role is Role.ASSISTANT:
            self._note_answer(item, at)
            self._add_usage(item, at)

    def _append(self, origin: str, at: int, draft: NewEntry) -> None:
        self._seq += 1
        self._seqs[origin] = self._seq
        self._counts[draft.kind] += 1
        record: ExportRecord = {
            "conversation": self._name,
            "seq": self._seq,
            "id": draft.id,
            "session": self._sessions[-1]["id"],
            "turn": self._turns[-1]["id"] if self._turns else None,
            "kind": draft.kind.value,
            "role": None if draft.role is None else draft.role.value,
            "text": draft.text,
            "calls": encode_json(draft.calls),
            "answers": encode_json(draft.answers),
            "format": draft.format,
            "message": draft.message,
            "created_at": at,
            "prev_hash": self._last_hash,
        }
        self._last_hash = record["hash"] = compute_entry_hash(record)
        self._records.append(("entry", record))

    def _open_turn(self, origin: str, at: int) -> None:
        turn: ExportRecord = {
            "conversation": self._name,
            "id": self._ids.make_turn_id(origin, at),
            "first_seq": self._seq + 1,
            "outcome": TurnOutcome.CANCELLED.value,
            "error": None,
            "error_code": None,
            "stop": None,
            "steps": 0,
            "resumes": 0,
            "retries": "{}",
            "model": None,
            "started_at": at,
            "finished_at": at,
        }
        self._turns.append(turn)
        self._records.append(("turn", turn))

    def _note_answer(self, item: ForeignMessage, at: int) -> None:
        if not self._turns:
            return
        turn = self._turns[-1]
        turn["steps"] += 1
        turn["model"] = sanitize_text(item.model) or turn["model"]
        turn["finished_at"] = max(turn["finished_at"], at)
        if not item.calls:
            turn["outcome"] = TurnOutcome.ANSWERED.value

    def _make_input(
        self, name: InboxId, item: ForeignMessage, text: str, files: Sequence[FetchedFile]
    ) -> ExportRecord:
        turn = self._turns[-1]
        at = turn["started_at"]
        return {
            "conversation": self._name,
            "id": name,
            "route": self._source.routes[0].key if self._source.routes else None,
            "kind": InboxKind.MESSAGE.value,
            "text": text,
            "payload": _make_payload(item, files),
            "double_text": DoubleText.QUEUE.value,
            "received_at": at,
            "due_at": at,
            "outcome": InboxOutcome.TURN.value,
            "turn": turn["id"],
            "step": None,
            "note": None,
            "resolved_at": at,
            "expiry_finalized": 1,
        }

    def _add_usage(self, item: ForeignMessage, at: int) -> None:
        used = item.usage
        if used is None:
            return
        record: ExportRecord = {
            "conversation": self._name,
            "id": self._ids.make_id("use", item.id, at),
            "turn": self._turns[-1]["id"] if self._turns else None,
            "step": self._turns[-1]["steps"] if self._turns else None,
            "purpose": _PURPOSE,
            "model": sanitize_text(item.model) or "unknown",
            "input_tokens": used.input_tokens,
            "cached_tokens": used.cached_tokens,
            "output_tokens": used.output_tokens,
            "cost_micros": used.cost_micros,
            "created_at": at,
        }
        self._usage.append(("usage", record))

    def _keep_files(self, name: InboxId, files: Sequence[FetchedFile]) -> None:
        for file in files:
            if file.content is not None:
                self._keep_file(name, file, file.content)

    def _keep_file(self, name: InboxId, file: FetchedFile, content: bytes) -> None:
        digest = digest_of(file)
        about: dict[str, Any] = {"conversation": self._name, "sha256": digest}
        about["media_type"] = file.media_type
        if digest not in self._digests:
            self._digests.add(digest)
            self._files.append(("blob", {**about, "data": content}))
        record = {**about, "id": file.id, "input": name, "seq": self._seq, "name": file.name}
        self._files.append(("attachment", record))

    def _compact(self, item: ForeignCompaction) -> None:
        self._compactions += 1
        at = self._advance(item.at)
        last = self._sessions[-1]
        last["ended_at"], last["end_reason"] = max(at, last["opened_at"]), COMPRESSION
        base: list[dict[str, Any]] = [encode_summary(item.summary)]
        kept = self._find_kept(item.kept_from or "")
        if kept is not None:
            base.append({"first": kept, "last": self._seq})
        self._open_session(at, COMPRESSION, base)

    def _find_kept(self, origin: str) -> int | None:
        """Return where the context before a summary stays: never between a call and its result."""
        return self._seqs.get(self._orderer.merged.get(origin, origin))

    def _open_session(self, at: int, why: str, base: list[dict[str, Any]]) -> None:
        number = len(self._sessions)
        before = self._sessions[-1] if self._sessions else None
        record: ExportRecord = {
            "conversation": self._name,
            "id": self._ids.make_session_id(number, at),
            "predecessor": None if before is None else before["id"],
            "opened_at": at,
            "opened_by": why,
            "opened_seq": self._seq,
            "operation": self._name if before is None else self._ids.make_id("op", str(number), at),
            "instructions": None,
            "ended_at": None,
            "end_reason": None,
            "base": base,
        }
        self._sessions.append(record)
        self._records.append(("session", record))

    def _make_conversation(self, created: int) -> ExportRecord:
        title = truncate_text(" ".join(sanitize_text(self._source.title).split()), _MAX_TITLE)
        origin = self._source.branch_of
        told = {ORIGIN_SETTING: sanitize_text(f"{self._system}:{self._source.id}")}
        return {
            "id": self._name,
            "scope": self._scope,
            "title": title or None,
            "titled_by": TitledBy.MODEL.value if title else None,
            "adhoc": 0,
            "origin": None if origin is None else make_conversation_id(self._system, origin),
            "origin_seq": None if origin is None else 0,
            "created_at": created,
            "entries": self._seq,
            "head": self._sessions[-1]["id"],
            "pending_title": None,
            "settings": encode_json(told),
            "routes": encode_json([route.key for route in self._source.routes]),
        }

    def _make_end(self) -> TypedRecord:
        return "end", {
            "conversation": self._name,
            "entries": self._seq,
            "sessions": len(self._sessions),
            "turns": len(self._turns),
            "inputs": self._inputs,
            "last_hash": self._last_hash,
        }


def _make_payload(item: ForeignMessage, files: Sequence[FetchedFile]) -> str:
    told: dict[str, object] = {}
    if item.sender is not None:
        told["sender"] = {"id": item.sender.id, "name": item.sender.name}
    if files:
        told["files"] = [describe_file(file) for file in files]
    return sanitize_text(encode_json(told))


def _rename_repeated(items: Sequence[ForeignItem]) -> Sequence[ForeignItem]:
    """Return the items with ids that are unique, as some systems do not keep them."""
    seen: dict[str, int] = {}
    renamed: list[ForeignItem] = []
    for item in items:
        count = seen[item.id] = seen.get(item.id, 0) + 1
        renamed.append(item if count == 1 else replace(item, id=f"{item.id}~{count}"))
    return renamed
