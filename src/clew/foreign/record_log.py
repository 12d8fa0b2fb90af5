"""The records of one imported conversation: numbered, chained, and in their sessions and turns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from msgspec.json import Encoder

from clew.core.conversation import IMPORTED_FROM, TitledBy
from clew.core.double_text import DoubleText
from clew.core.entry import GENESIS, EntryKind
from clew.core.export_format.id_remap import compute_entry_hash
from clew.core.export_format.sealed_lines import encode_json
from clew.core.inbox import InboxKind, InboxOutcome
from clew.core.session import START
from clew.core.text import sanitize_text, truncate_text
from clew.core.turn import TurnOutcome
from clew.foreign.ids import clamp_millis, make_conversation_id

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from clew.core.attachments import FetchedFile
    from clew.core.entry import NewEntry
    from clew.core.export_format.records import TypedRecord
    from clew.core.export_format.schema import ExportRecord
    from clew.core.ids import InboxId
    from clew.core.scope import Scope
    from clew.foreign.conversations import ForeignConversation, ForeignMessage
    from clew.foreign.ids import IdMaker

_encode: Final = Encoder().encode

_MAX_TITLE: Final = 200
#: What the tokens of an answer were used for.
_PURPOSE: Final = "turn"


class RecordLog:
    """Records in the order of an export; times never go back."""

    def __init__(self, ids: IdMaker, created: int) -> None:
        self._ids, self._name = ids, ids.conversation
        self._records: list[TypedRecord] = []
        self._outside: list[TypedRecord] = []
        self._sessions: list[ExportRecord] = []
        self._turns: list[ExportRecord] = []
        self._digests: set[bytes] = set()
        self._inputs, self._last_hash, self._last_at = 0, GENESIS, 0
        #: Entries so far, by kind, and all.
        self.counts = {EntryKind.MESSAGE: 0, EntryKind.EVENT: 0}
        self.seq = 0
        self.created = self.advance(created)
        self.open_session(self.created, START, [])

    def advance(self, at: int) -> int:
        """Return a time that is not before that of the record before: clocks are set back."""
        self._last_at = max(self._last_at, clamp_millis(at))
        return self._last_at

    def append(self, at: int, draft: NewEntry) -> None:
        """Append an entry to the session and turn under way."""
        self.seq += 1
        self.counts[draft.kind] += 1
        record: ExportRecord = {
            "conversation": self._name,
            "seq": self.seq,
            "id": draft.id,
            "session": self._sessions[-1]["id"],
            "turn": self._turns[-1]["id"] if self._turns else None,
            "kind": draft.kind.value,
            "role": None if draft.role is None else draft.role.value,
            "text": draft.text,
            "calls": _encode_names(draft.calls),
            "answers": _encode_names(draft.answers),
            "format": draft.format,
            "message": draft.message,
            "created_at": at,
            "prev_hash": self._last_hash,
        }
        self._last_hash = record["hash"] = compute_entry_hash(record)
        self._records.append(("entry", record))

    def open_turn(self, origin: str, at: int) -> None:
        """Begin a turn, which counts as stopped until it is answered."""
        turn: ExportRecord = {
            "conversation": self._name,
            "id": self._ids.make_turn_id(origin, at),
            "first_seq": self.seq + 1,
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

    def note_answer(self, item: ForeignMessage, at: int) -> None:
        """Count an answer of the agent to the turn under way, with its tokens."""
        if self._turns:
            turn = self._turns[-1]
            turn["steps"] += 1
            turn["model"] = sanitize_text(item.model) or turn["model"]
            turn["finished_at"] = max(turn["finished_at"], at)
            if not item.calls:
                turn["outcome"] = TurnOutcome.ANSWERED.value
        if item.usage is not None:
            self._add_usage(item, at)

    def _add_usage(self, item: ForeignMessage, at: int) -> None:
        used, turn = item.usage, self._turns[-1] if self._turns else None
        assert used is not None
        record: ExportRecord = {
            "conversation": self._name,
            "id": self._ids.make_id("use", item.id, at),
            "turn": None if turn is None else turn["id"],
            "step": None if turn is None else turn["steps"],
            "purpose": _PURPOSE,
            "model": sanitize_text(item.model) or "unknown",
            "input_tokens": used.input_tokens,
            "cached_tokens": used.cached_tokens,
            "output_tokens": used.output_tokens,
            "cost_micros": used.cost_micros,
            "created_at": at,
        }
        self._outside.append(("usage", record))

    def add_input(self, name: InboxId, text: str, *, route: str | None, payload: str) -> None:
        """Add the input that the turn under way began with."""
        turn = self._turns[-1]
        at = turn["started_at"]
        record: ExportRecord = {
            "conversation": self._name,
            "id": name,
            "route": route,
            "kind": InboxKind.MESSAGE.value,
            "text": text,
            "payload": payload,
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
        self._inputs += 1
        self._records.append(("input", record))

    def keep_file(self, name: InboxId, file: FetchedFile, content: bytes, digest: bytes) -> None:
        """Keep the content of a file of the last entry; equal contents once."""
        about: dict[str, Any] = {"conversation": self._name, "sha256": digest}
        about["media_type"] = file.media_type
        if digest not in self._digests:
            self._digests.add(digest)
            self._outside.append(("blob", {**about, "data": content}))
        record = {**about, "id": file.id, "input": name, "seq": self.seq, "name": file.name}
        self._outside.append(("attachment", record))

    def open_session(self, at: int, why: str, base: list[dict[str, Any]]) -> None:
        """Open a session in place of the one before."""
        number = len(self._sessions)
        if number:
            self._sessions[-1] |= {"ended_at": at, "end_reason": why}
        before = self._sessions[-1]["id"] if self._sessions else None
        record: ExportRecord = {
            "conversation": self._name,
            "id": self._ids.make_session_id(number, at),
            "predecessor": before,
            "opened_at": at,
            "opened_by": why,
            "opened_seq": self.seq,
            "operation": self._name if before is None else self._ids.make_id("op", str(number), at),
            "instructions": None,
            "ended_at": None,
            "end_reason": None,
            "base": base,
        }
        self._sessions.append(record)
        self._records.append(("session", record))

    def finish(
        self, system: str, source: ForeignConversation, scope: Scope
    ) -> Sequence[TypedRecord]:
        """Return all records."""
        head = self._make_conversation(system, source, scope)
        return [("conversation", head), *self._records, *self._outside, self._make_end()]

    def _make_conversation(
        self, system: str, source: ForeignConversation, scope: Scope
    ) -> ExportRecord:
        title = truncate_text(" ".join(sanitize_text(source.title).split()), _MAX_TITLE)
        origin = source.branch_of
        told = {IMPORTED_FROM: sanitize_text(f"{system}:{source.id}")}
        return {
            "id": self._name,
            "scope": scope,
            "title": title or None,
            "titled_by": TitledBy.MODEL.value if title else None,
            "adhoc": 0,
            "origin": None if origin is None else make_conversation_id(system, origin),
            # It has copies of what it shares with its origin.
            "origin_seq": None if origin is None else 0,
            "created_at": self.created,
            "entries": self.seq,
            "head": self._sessions[-1]["id"],
            "pending_title": None,
            "settings": encode_json(told),
            "routes": encode_json([route.key for route in source.routes]),
        }

    def _make_end(self) -> TypedRecord:
        return "end", {
            "conversation": self._name,
            "entries": self.seq,
            "sessions": len(self._sessions),
            "turns": len(self._turns),
            "inputs": self._inputs,
            "last_hash": self._last_hash,
        }


def _encode_names(names: Sequence[str]) -> str:
    return _encode(names).decode() if names else "[]"


def make_payload(item: ForeignMessage, files: Sequence[Mapping[str, object]]) -> str:
    """Return the payload of an input: its sender and what is known of its files."""
    told: dict[str, object] = {}
    if item.sender is not None:
        told["sender"] = {"id": item.sender.id, "name": item.sender.name}
    if files:
        told["files"] = files
    return sanitize_text(encode_json(told))
