"""
Import of exported conversations, in slices.

After each slice the store holds a valid conversation: the first part of the exported one.
The same import or a later one can continue from there.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from clew.core.conversation import TitledBy
from clew.core.export_format.divergence import ChainSummary
from clew.core.route import Route, RouteKey
from clew.core.session_prefix import text_to_instructions
from clew.core.turn import StopRequest, TurnState
from clew.errors import StoreError, UsageError
from clew.record import Record
from clew.store.transactions import leases
from clew.store.transactions.chat_notices import notify_chats
from clew.store.transactions.conversations import (
    claim_route,
    get_conversation,
    is_title_taken,
    rename_conversation,
)
from clew.store.transactions.exports import EXPORTED_ROUTES, find_tombstone
from clew.store.transactions.hook_marks import ALL, add_mark
from clew.store.transactions.sessions import list_sessions, move_head
from clew.store.transactions.settings import get_setting, put_setting
from clew.store.transactions.titles import set_pending_title

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from clew.core.export_format.records import TypedRecord
    from clew.core.export_format.schema import ExportRecord
    from clew.core.ids import ConversationId, OwnerId
    from clew.core.lease import Lease
    from clew.store.contract import Tx

#: Upper bound of the numbers tried for a title that is taken: "Trip (2)" …
_MAX_TITLE_NUMBER: Final = 1000


class ImportTarget(Record):
    """Stored state of the conversation to import."""

    #: ``None`` if there is no such conversation.
    log: ChainSummary | None
    #: Last hash of the conversation, if it was deleted here.
    deleted: bytes | None


def find_import_target(t: Tx, conversation: ConversationId) -> ImportTarget:
    """Return the stored state under the id of a conversation to import."""
    grave = find_tombstone(t, conversation)
    if grave is not None:
        return ImportTarget(log=None, deleted=grave["last_hash"])
    if t.fetch_one("SELECT 1 FROM head WHERE conversation_id = $1", conversation) is None:
        return ImportTarget(log=None, deleted=None)
    hashes = t.fetch_column(
        "SELECT hash FROM entry WHERE conversation_id = $1 ORDER BY seq", conversation
    )
    return ImportTarget(
        log=ChainSummary(
            hashes=tuple(map(bytes, hashes)),
            sessions=tuple(session.id for session in list_sessions(t, conversation)),
        ),
        deleted=None,
    )


def has_foreign_sessions(t: Tx, conversation: ConversationId, sessions: Sequence[str]) -> bool:
    """Return whether one of these session ids belongs to another conversation here."""
    return any(
        t.fetch_one(
            "SELECT 1 FROM session WHERE id = $1 AND conversation_id <> $2", session, conversation
        )
        for session in sessions
    )


class ImportStart(Record):
    """A conversation to import, its first session, and the importing owner."""

    conversation: ExportRecord
    #: The first session.
    first: ExportRecord
    owner: OwnerId


def open_import(t: Tx, opening: ImportStart) -> Lease:
    """
    Store a conversation with its first session unless it exists, and acquire its lease.

    Its title gets a number where another conversation has it. Routes are stored as
    information only. Repeating it changes nothing.

    :raises LeaseHeld: while another living owner holds the lease
    """
    conversation, first = opening.conversation, opening.first
    if t.fetch_one("SELECT 1 FROM conversation WHERE id = $1", conversation["id"]) is None:
        _insert_conversation(t, conversation)
        _insert_session(t, first)
        t.execute(
            "INSERT INTO head (conversation_id, session_id) VALUES ($1, $2)",
            conversation["id"],
            first["id"],
        )
    lease = leases.acquire_lease(t, conversation["id"], owner=opening.owner).lease
    _apply_title(t, conversation)
    _merge_settings(t, conversation)
    return lease


def _insert_conversation(t: Tx, record: ExportRecord) -> None:
    t.execute(
        """
        INSERT INTO conversation (id, scope, adhoc, origin, origin_seq, created_at)
        VALUES ($1, $2, $3, $4, $5, $6)
        """,
        record["id"],
        record["scope"],
        record["adhoc"],
        record["origin"],
        record["origin_seq"],
        record["created_at"],
    )
    t.execute(
        "INSERT INTO lease (conversation_id, updated_at) VALUES ($1, $2)",
        record["id"],
        record["created_at"],
    )
    if record["pending_title"] is not None:
        set_pending_title(t, record["id"], record["pending_title"])


def _apply_title(t: Tx, record: ExportRecord) -> None:
    """Set the exported title, unless a person has set one here."""
    found = get_conversation(t, record["id"])
    title: str | None = record["title"]
    if title is None or title == found.title or found.titled_by is TitledBy.PERSON:
        return
    free = _find_free_title(t, record, title)
    if free != found.title:
        rename_conversation(t, record["id"], free, titled_by=TitledBy(record["titled_by"]))


def _merge_settings(t: Tx, record: ExportRecord) -> None:
    """Store the exported settings that are not set here, and the exported routes."""
    settings: dict[str, str] = json.loads(record["settings"])
    for name, value in settings.items():
        if get_setting(t, record["id"], name) is None:
            put_setting(t, record["id"], name, value)
    if record["routes"] != (get_setting(t, record["id"], EXPORTED_ROUTES) or "[]"):
        put_setting(t, record["id"], EXPORTED_ROUTES, record["routes"])


def _find_free_title(t: Tx, record: ExportRecord, title: str) -> str:
    names = (title if n == 1 else f"{title} ({n})" for n in range(1, _MAX_TITLE_NUMBER))
    free = (
        name
        for name in names
        if not is_title_taken(t, record["scope"], name, by_other_than=record["id"])
    )
    return next(free, f"{title} ({record['id']})")


def import_conversation(
    t: Tx, opening: ImportStart, records: Sequence[TypedRecord], *, after: int
) -> int:
    """Import a conversation of a single slice in one commit, and return its last seq."""
    lease = open_import(t, opening)
    last = import_slice(t, lease, records, after=after)
    close_import(t, lease)
    return last


def import_slice(t: Tx, lease: Lease, records: Sequence[TypedRecord], *, after: int) -> int:
    """
    Append a slice to a log that ends with entry ``after``, and return the new last seq.

    :raises LeaseLost: if the lease is not held any more
    :raises StoreError: if the log does not end there
    :raises UsageError: if a record is stored here as part of another conversation
    """
    entries = [record for kind, record in records if kind == "entry"]
    last = entries[-1]["seq"] if entries else after
    _advance_log(t, lease, after, last, entries[-1]["created_at"] if entries else None)
    for kind, record in records:
        _STORE_BY_KIND[kind](t, record)
    return last


def _advance_log(t: Tx, lease: Lease, after: int, last: int, at: int | None) -> None:
    leases.renew_lease(t, lease)
    moved = t.execute(
        """
        UPDATE lease SET last_seq = $3, updated_at = COALESCE($4, updated_at)
        WHERE conversation_id = $1 AND last_seq = $2
        """,
        lease.conversation_id,
        after,
        last,
        at,
    )
    if not moved:
        raise StoreError(
            f"conversation {lease.conversation_id} is written to by an owner without the lease"
        )


def close_import(t: Tx, lease: Lease) -> None:
    """Release the lease of a complete import and wake its listeners."""
    leases.release_lease(t, lease)


def _insert_session(t: Tx, record: ExportRecord) -> None:
    t.execute(
        """
        INSERT INTO session (id, conversation_id, predecessor, opened_at, opened_by, opened_seq,
                             operation, instructions, ended_at, end_reason)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
        """,
        record["id"],
        record["conversation"],
        record["predecessor"],
        record["opened_at"],
        record["opened_by"],
        record["opened_seq"],
        record["operation"],
        text_to_instructions(record["instructions"]),
        record["ended_at"],
        record["end_reason"],
    )
    for position, item in enumerate(record["base"]):
        t.execute(
            """
            INSERT INTO base_item (session_id, position, first_seq, last_seq, format, message)
            VALUES ($1, $2, $3, $4, $5, $6)
            """,
            record["id"],
            position,
            item.get("first"),
            item.get("last"),
            item.get("format"),
            item.get("message"),
        )


def _store_session(t: Tx, record: ExportRecord) -> None:
    """Store a session; if it exists, it is the newest one and takes over its end."""
    updated = t.execute(
        """
        UPDATE session SET instructions = COALESCE(instructions, $3), ended_at = $4, end_reason = $5
        WHERE id = $1 AND conversation_id = $2
        """,
        record["id"],
        record["conversation"],
        text_to_instructions(record["instructions"]),
        record["ended_at"],
        record["end_reason"],
    )
    if not updated:
        _insert_session(t, record)
        move_head(t, record["conversation"], record["id"])


def _store_turn(t: Tx, record: ExportRecord) -> None:
    """
    Store a turn; one that was unfinished when exported is marked to stop.

    It may continue where it was exported, and must not run twice. Its next owner ends it.
    """
    done = record["outcome"] is not None
    stored = t.execute(
        """
        INSERT INTO turn (id, conversation_id, first_seq, state, outcome, error, error_code, stop,
                          steps, resumes, retries, model, started_at, finished_at)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)
        ON CONFLICT (id) DO UPDATE
        SET state = excluded.state, outcome = excluded.outcome, error = excluded.error,
            error_code = excluded.error_code, stop = excluded.stop, steps = excluded.steps,
            resumes = excluded.resumes, retries = excluded.retries, model = excluded.model,
            finished_at = excluded.finished_at
        WHERE turn.conversation_id = excluded.conversation_id
        """,
        record["id"],
        record["conversation"],
        record["first_seq"],
        (TurnState.DONE if done else TurnState.RUNNING).value,
        record["outcome"],
        record["error"],
        record["error_code"],
        record["stop"] if done else StopRequest.CANCEL.value,
        record["steps"],
        record["resumes"],
        record["retries"],
        record["model"],
        record["started_at"],
        record["finished_at"],
    )
    _check_same_conversation(stored, "turn", record)


def _store_input(t: Tx, record: ExportRecord) -> None:
    # The file does not tell what the conversation has read, and anybody may have made it.
    t.execute(
        """
        INSERT INTO inbox (id, conversation_id, route, kind, text, payload, double_text,
                           received_at, due_at, outcome, turn_id, step, note, resolved_at,
                           untrusted)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, 1)
        ON CONFLICT (id) DO NOTHING
        """,
        record["id"],
        record["conversation"],
        record["route"],
        record["kind"],
        record["text"],
        record["payload"],
        record["double_text"],
        record["received_at"],
        record["due_at"],
        record["outcome"],
        record["turn"],
        record["step"],
        record["note"],
        record["resolved_at"],
    )
    row = t.fetch_one("SELECT conversation_id FROM inbox WHERE id = $1", record["id"])
    _check_same_conversation(row == (record["conversation"],), "input", record)
    if record["kind"] == "command" and record["expiry_finalized"]:
        # The plugins were notified where it was exported.
        add_mark(t, ALL, ALL, record["id"])


def _store_entry(t: Tx, record: ExportRecord) -> None:
    if t.fetch_one("SELECT 1 FROM entry WHERE id = $1", record["id"]) is not None:
        _check_same_conversation(False, "entry", record)
    t.execute(
        """
        INSERT INTO entry (conversation_id, seq, id, session_id, turn_id, kind, role, text, calls,
                           answers, format, message, created_at, prev_hash, hash)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)
        """,
        *(record[name] for name in _ENTRY_FIELDS),
    )


_ENTRY_FIELDS: Final = (
    "conversation", "seq", "id", "session", "turn", "kind", "role", "text", "calls", "answers",
    "format", "message", "created_at", "prev_hash", "hash",
)  # fmt: skip


def _store_usage(t: Tx, record: ExportRecord) -> None:
    t.execute(
        """
        INSERT INTO usage (id, conversation_id, turn_id, step, purpose, model, input_tokens,
                           cached_tokens, output_tokens, cost_micros, created_at)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) ON CONFLICT (id) DO NOTHING
        """,
        record["id"],
        record["conversation"],
        record["turn"],
        record["step"],
        record["purpose"],
        record["model"],
        record["input_tokens"],
        record["cached_tokens"],
        record["output_tokens"],
        record["cost_micros"],
        record["created_at"],
    )


def _store_blob(t: Tx, record: ExportRecord) -> None:
    t.execute(
        """
        INSERT INTO blob (sha256, size, media_type, bytes, created_at) VALUES ($1, $2, $3, $4, $5)
        ON CONFLICT (sha256) DO NOTHING
        """,
        record["sha256"],
        len(record["data"]),
        record["media_type"],
        record["data"],
        t.now,
    )


def _store_attachment(t: Tx, record: ExportRecord) -> None:
    t.execute(
        """
        INSERT INTO attachment (id, conversation_id, inbox_id, seq, sha256, name, media_type)
        VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (id) DO NOTHING
        """,
        record["id"],
        record["conversation"],
        record["input"],
        record["seq"],
        record["sha256"],
        record["name"],
        record["media_type"],
    )


def _check_same_conversation(ours: object, what: str, record: ExportRecord) -> None:
    if not ours:
        raise UsageError(f"its {what} {record['id']} is a part of another conversation here")


_STORE_BY_KIND: Final[Mapping[str, Callable[[Tx, ExportRecord], None]]] = {
    "session": _store_session,
    "turn": _store_turn,
    "input": _store_input,
    "entry": _store_entry,
    "usage": _store_usage,
    "blob": _store_blob,
    "attachment": _store_attachment,
}


def import_tombstones(t: Tx, records: Sequence[ExportRecord]) -> int:
    """
    Store the tombstones of conversations deleted elsewhere, and return how many are new.

    A conversation that exists here stays: it was not deleted here.
    """
    return sum(_import_tombstone(t, record) for record in records)


def _import_tombstone(t: Tx, record: ExportRecord) -> int:
    if t.fetch_one("SELECT 1 FROM conversation WHERE id = $1", record["conversation"]) is not None:
        return 0
    return t.execute(
        """
        INSERT INTO tombstone (conversation_id, last_seq, last_hash, deleted_at)
        VALUES ($1, $2, $3, $4) ON CONFLICT (conversation_id) DO NOTHING
        """,
        record["conversation"],
        record["last_seq"],
        record["last_hash"],
        record["deleted_at"],
    )


def claim_routes(t: Tx, conversation: ConversationId, routes: Sequence[str], *, notice: str) -> int:
    """Point unclaimed routes at a conversation, notify their chats and return their count."""
    claimed = [
        RouteKey(route)
        for route in routes
        if _is_route_key(route) and claim_route(t, RouteKey(route), conversation)
    ]
    notify_chats(t, conversation, claimed, notice, event=f"{conversation} imported")
    return len(claimed)


def _is_route_key(route: str) -> bool:
    try:
        Route.parse(route)
    except UsageError:
        return False
    return True
