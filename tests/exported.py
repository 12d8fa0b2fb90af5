"""Exports made of nothing but records, and how they are read."""

from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING, Any

from clew.core.entry import GENESIS
from clew.core.export_format.id_remap import compute_entry_hash
from clew.core.export_format.line_index import index_lines
from clew.core.export_format.records import ConversationExport, RecordInterleaver
from clew.core.export_format.schema import encode_line
from clew.core.export_format.sealed_lines import FORMAT, VERSION, LineSealer
from clew.core.export_format.verify import ExportVerifier

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from clew.core.export_format.records import TypedRecord
    from clew.core.export_format.schema import ExportRecord

AT = 1_790_000_000_000


def made(*lengths: int, tombstones: int = 0) -> bytes:
    """An export of conversations ``cnv_0000``, ``cnv_0001`` … with so many entries each."""
    said: list[tuple[str, ExportRecord]] = []
    for number, length in enumerate(lengths):
        said += [(kind, encode_line(kind, record)) for kind, record in conversation(number, length)]
    for number in range(tombstones):
        grave = {"conversation": f"cnv_gone{number}", "last_seq": 7, "last_hash": bytes(32)}
        said.append(("tombstone", encode_line("tombstone", {**grave, "deleted_at": AT})))
    return b"".join(sealed(said))


def sealed(said: Sequence[tuple[str, dict[str, Any]]]) -> Iterator[bytes]:
    """The lines of an export that says this, whether or not it makes sense."""
    sealer = LineSealer()
    yield sealer.seal_line("header", {"format": FORMAT, "version": VERSION})
    for kind, line in said:
        yield sealer.seal_line(kind, line)
    kinds = [kind for kind, _ in said]
    counted = {
        "conversations": kinds.count("conversation"),
        "entries": kinds.count("entry"),
        "tombstones": kinds.count("tombstone"),
    }
    yield sealer.seal_line("trailer", {**counted, "sums": sealer.sums_digest})


def said_in(export: bytes) -> list[tuple[str, dict[str, Any]]]:
    """Return the lines between the first and the last."""
    lines = [json.loads(line) for line in export.splitlines()[1:-1]]
    return [
        (line["type"], {k: v for k, v in line.items() if k not in ("n", "type", "sum")})
        for line in lines
    ]


def conversation(number: int, length: int) -> Iterator[TypedRecord]:
    """A conversation of turns with two entries each, whose session was compacted half-way."""
    entries = _entries(number, length)
    book = _book(number, entries)
    weaver = RecordInterleaver(book)
    yield "conversation", book.conversation
    for entry in entries:
        yield from weaver.records_before(entry)
        yield "entry", entry
    yield from weaver.remaining_records()
    yield weaver.end_record()


def name_of(number: int) -> str:
    return f"cnv_{number:04}"


def _entries(number: int, length: int) -> list[ExportRecord]:
    entries: list[ExportRecord] = []
    for seq in range(1, length + 1):
        role = "user" if seq % 2 else "assistant"
        entry: ExportRecord = {
            "conversation": name_of(number),
            "seq": seq,
            "id": f"ent_{number}_{seq}",
            "session": f"s{number}_{int(seq > length // 2)}",
            "turn": f"trn_{number}_{(seq + 1) // 2}",
            "kind": "message",
            "role": role,
            "text": f"what the {role} said as number {seq}",
            "calls": "[]",
            "answers": "[]",
            "format": "t/1",
            "message": json.dumps({"said": seq}, separators=(",", ":")),
            "created_at": AT + seq,
            "prev_hash": entries[-1]["hash"] if entries else GENESIS,
        }
        entries.append(entry | {"hash": compute_entry_hash(entry)})
    return entries


def _book(number: int, entries: Sequence[ExportRecord]) -> ConversationExport:
    name, half, last = name_of(number), len(entries) // 2, len(entries)
    base: list[ExportRecord] = [{"format": "t/1", "message": '"a summary"'}]
    if half:
        base.append({"first": 1, "last": half})
    turns = [(entry["turn"], entry["seq"]) for entry in entries if entry["role"] == "user"]
    return ConversationExport(
        conversation={
            "id": name, "scope": "local", "title": f"Title {number}", "titled_by": "model",
            "adhoc": 0, "origin": None, "origin_seq": None, "created_at": AT, "entries": last,
            "head": f"s{number}_1", "pending_title": None, "settings": "{}", "routes": "[]",
        },
        last_hash=entries[-1]["hash"] if entries else GENESIS,
        sessions=[
            _first_session(number, half),
            _second_session(number, half, base),
        ],
        turns=[
            {
                "conversation": name, "id": turn, "first_seq": seq, "outcome": "answered",
                "error": None, "error_code": None, "stop": None, "steps": 1, "resumes": 0,
                "retries": "{}", "model": "m", "started_at": AT + seq, "finished_at": AT + seq + 1,
            }
            for turn, seq in turns
        ],
        inputs=[
            {
                "conversation": name, "id": f"inb_{turn}", "route": None, "kind": "message",
                "text": "said", "payload": "{}", "double_text": "queue", "received_at": AT,
                "due_at": AT, "outcome": "turn", "turn": turn, "step": None, "note": None,
                "resolved_at": AT, "expiry_finalized": 1,
            }
            for turn, _ in turns
        ],
        usage=[],
        attachments=[],
    )  # fmt: skip


def _first_session(number: int, half: int) -> ExportRecord:
    return {
        "conversation": name_of(number), "id": f"s{number}_0", "predecessor": None,
        "opened_at": AT, "opened_by": "start", "opened_seq": 0, "operation": name_of(number),
        "instructions": None, "ended_at": AT + half, "end_reason": "compression", "base": [],
    }  # fmt: skip


def _second_session(number: int, half: int, base: list[ExportRecord]) -> ExportRecord:
    return _first_session(number, half) | {
        "id": f"s{number}_1", "predecessor": f"s{number}_0", "opened_at": AT + half,
        "opened_by": "compression", "opened_seq": half, "operation": f"op_{number}",
        "ended_at": None, "end_reason": None, "base": base,
    }  # fmt: skip


def verified(export: bytes) -> ExportVerifier:
    lines = io.BytesIO(export).readlines()
    verifier = ExportVerifier(index_lines(lines))
    for line in lines:
        verifier.add_line(line)
    verifier.finish()
    return verifier


def found(export: bytes) -> list[tuple[int, str | None, int | None]]:
    """Place of a finding: line, conversation, seq."""
    return [(one.line, one.conversation, one.seq) for one in verified(export).findings]
