"""Reads of the stored data that an export contains."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from clew.core.export_format import schema
from clew.core.export_format.records import ConversationExport
from clew.core.export_format.schema import ExportRecord, row_to_record
from clew.core.inbox import END_COMMAND
from clew.core.session_prefix import join_instructions, load_instructions
from clew.errors import NotFound
from clew.store.transactions.conversations import list_routes
from clew.store.transactions.entries import get_entry_hash
from clew.store.transactions.hook_marks import ALL
from clew.store.transactions.redacted_messages import write_out_redacted
from clew.store.transactions.sessions import get_base, list_sessions

if TYPE_CHECKING:
    from clew.core.export_format.schema import Field
    from clew.core.ids import ConversationId
    from clew.store.contract import Row, Tx

#: Conversation setting with the routes that led to it where it was exported.
EXPORTED_ROUTES: Final = "exported_routes"


def list_conversation_ids(t: Tx) -> list[ConversationId]:
    """Return the ids of all conversations, in order."""
    # Sorted here, because databases differ in collation.
    return sorted(t.fetch_column("SELECT conversation_id FROM head"))


def list_tombstones(t: Tx) -> list[ExportRecord]:
    """Return the tombstones of deleted conversations, in id order."""
    found = t.fetch_all("SELECT conversation_id, last_seq, last_hash, deleted_at FROM tombstone")
    return [row_to_record(schema.TOMBSTONE, row) for row in sorted(found)]


def find_tombstone(t: Tx, conversation: str) -> ExportRecord | None:
    """Return the tombstone of a deleted conversation, or ``None``."""
    row = t.fetch_one(
        """
        SELECT conversation_id, last_seq, last_hash, deleted_at FROM tombstone
        WHERE conversation_id = $1
        """,
        conversation,
    )
    return None if row is None else row_to_record(schema.TOMBSTONE, row)


def read_conversation_export(t: Tx, conversation: ConversationId) -> ConversationExport:
    """
    Return everything stored of a conversation except its entries and attachment contents.

    :raises NotFound: if there is no such conversation
    """
    record = _conversation_record(t, conversation)
    return ConversationExport(
        conversation=record,
        last_hash=get_entry_hash(t, conversation, record["entries"]),
        sessions=_session_records(t, conversation),
        turns=_rows_to_records(
            schema.TURN,
            t.fetch_all(
                """
                SELECT conversation_id, id, first_seq, outcome, error, error_code,
                       CASE WHEN outcome IS NULL THEN NULL ELSE stop END, steps, resumes, retries,
                       model, started_at, finished_at
                FROM turn WHERE conversation_id = $1 ORDER BY first_seq
                """,
                conversation,
            ),
        ),
        inputs=_input_records(t, conversation),
        usage=_usage_records(t, conversation),
        attachments=_attachment_records(t, conversation),
    )


def _rows_to_records(fields: tuple[Field, ...], rows: list[Row]) -> list[ExportRecord]:
    return [row_to_record(fields, row) for row in rows]


def _conversation_record(t: Tx, conversation: ConversationId) -> ExportRecord:
    row = t.fetch_one(
        """
        SELECT c.id, c.scope, c.title, c.titled_by, c.adhoc, c.origin, c.origin_seq, c.created_at,
               l.last_seq, h.session_id,
               (SELECT title FROM pending_title WHERE conversation_id = c.id)
        FROM conversation c
        JOIN head h ON h.conversation_id = c.id
        JOIN lease l ON l.conversation_id = c.id
        WHERE c.id = $1
        """,
        conversation,
    )
    if row is None:
        raise NotFound("conversation", conversation)
    settings = dict(
        sorted(t.fetch_all("SELECT name, value FROM setting WHERE scope = $1", conversation))
    )
    before: list[str] = json.loads(settings.pop(EXPORTED_ROUTES, "[]"))
    routes = sorted({*before, *list_routes(t, conversation)})
    return row_to_record(
        schema.CONVERSATION, (*row, schema.encode_json(settings), schema.encode_json(routes))
    )


def _session_records(t: Tx, conversation: ConversationId) -> list[ExportRecord]:
    found = t.fetch_all(
        """
        SELECT conversation_id, id, predecessor, opened_at, opened_by, opened_seq, operation,
               instructions, ended_at, end_reason
        FROM session WHERE conversation_id = $1
        """,
        conversation,
    )
    records = {record["id"]: record for record in (row_to_record(schema.SESSION, r) for r in found)}
    for record in records.values():
        if (stored := record["instructions"]) is not None:
            # Parts matter to the bytes of requests only; people and other programs read a text.
            record["instructions"] = join_instructions(load_instructions(stored))
    ordered = [records[session.id] for session in list_sessions(t, conversation)]
    for record in ordered:
        record["base"] = [
            schema.encode_base_item(item)
            for item in write_out_redacted(t, conversation, get_base(t, record["id"]))
        ]
    return ordered


def _input_records(t: Tx, conversation: ConversationId) -> list[ExportRecord]:
    return _rows_to_records(
        schema.INPUT,
        t.fetch_all(
            """
            SELECT conversation_id, id, route, kind, text, payload, double_text, received_at,
                   due_at, outcome, turn_id, step, note, resolved_at,
                   CASE WHEN kind <> 'command' OR text <> $2 OR EXISTS (
                       SELECT 1 FROM hook_mark m WHERE m.subject = inbox.id AND m.hook = $3
                   ) THEN 1 ELSE 0 END
            FROM inbox WHERE conversation_id = $1 AND outcome IS NOT NULL ORDER BY n
            """,
            conversation,
            END_COMMAND,
            ALL,
        ),
    )


def _usage_records(t: Tx, conversation: ConversationId) -> list[ExportRecord]:
    found = t.fetch_all(
        """
        SELECT conversation_id, id, turn_id, step, purpose, model, input_tokens, cached_tokens,
               output_tokens, cost_micros, created_at
        FROM usage WHERE conversation_id = $1
        """,
        conversation,
    )
    records = _rows_to_records(schema.USAGE, found)
    return sorted(records, key=lambda record: (record["created_at"], record["id"]))


def _attachment_records(t: Tx, conversation: ConversationId) -> list[ExportRecord]:
    found = t.fetch_all(
        """
        SELECT conversation_id, id, inbox_id, seq, sha256, name, media_type
        FROM attachment WHERE conversation_id = $1
        """,
        conversation,
    )
    return sorted(_rows_to_records(schema.ATTACHMENT, found), key=lambda record: record["id"])


def read_entry_records(
    t: Tx, conversation: str, *, after: int, last: int, limit: int
) -> list[ExportRecord]:
    """Return at most ``limit`` entries of ``after + 1..last``, in order."""
    return _rows_to_records(
        schema.ENTRY,
        t.fetch_all(
            """
            SELECT conversation_id, seq, id, session_id, turn_id, kind, role, text, calls, answers,
                   format, message, created_at, prev_hash, hash
            FROM entry WHERE conversation_id = $1 AND seq > $2 AND seq <= $3
            ORDER BY seq LIMIT $4
            """,
            conversation,
            after,
            last,
            limit,
        ),
    )


def read_blob_record(t: Tx, attachment: ExportRecord) -> ExportRecord | None:
    """Return the contents of an attachment; ``None`` if they are gone."""
    content = t.fetch_value("SELECT bytes FROM blob WHERE sha256 = $1", attachment["sha256"])
    if content is None:
        return None
    said = (attachment["conversation"], attachment["sha256"], attachment["media_type"], content)
    return row_to_record(schema.BLOB, said)
