"""
Taking in what an export holds, in slices.

After each slice what is stored is a whole conversation: the first part of the one in the export.
Whoever goes on, the same import or a later one, goes on after it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from clew.core.conversation import TitledBy
from clew.core.exported.relation import ChainSummary
from clew.core.route import Route, RouteKey
from clew.core.turn import StopRequest, TurnState
from clew.errors import StoreError, UsageError
from clew.store.transactions import leases
from clew.store.transactions.conversations import (
    claim_route,
    get_conversation,
    is_title_taken,
    rename,
)
from clew.store.transactions.exports import ROUTES, tombstone
from clew.store.transactions.marks import ALL, mark
from clew.store.transactions.sessions import lineage, move_head
from clew.store.transactions.settings import get_setting, put_setting
from clew.store.transactions.titles import keep_title

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from clew.core.exported.book import TypedRecord
    from clew.core.exported.shapes import Record
    from clew.core.ids import ConversationId, OwnerId
    from clew.core.lease import Lease
    from clew.store.contract import Tx

#: Numbers that are tried where a title is taken: "Trip (2)" …
_MOST_NUMBERS: Final = 1000


@dataclass(frozen=True, kw_only=True, slots=True)
class Here:
    """What is stored under an id."""

    #: ``None`` if there is no such conversation.
    log: ChainSummary | None
    #: The last hash of one that was deleted here.
    deleted: bytes | None


def stored_here(t: Tx, conversation: ConversationId) -> Here:
    """What is stored under the id of a conversation that is to be taken in."""
    grave = tombstone(t, conversation)
    if grave is not None:
        return Here(log=None, deleted=grave["last_hash"])
    if t.one("SELECT 1 FROM head WHERE conversation_id = $1", conversation) is None:
        return Here(log=None, deleted=None)
    hashes = t.all("SELECT hash FROM entry WHERE conversation_id = $1 ORDER BY seq", conversation)
    return Here(
        log=ChainSummary(
            hashes=tuple(bytes(row[0]) for row in hashes),
            sessions=tuple(session.id for session in lineage(t, conversation)),
        ),
        deleted=None,
    )


def taken_by_others(t: Tx, conversation: ConversationId, sessions: Sequence[str]) -> bool:
    """Whether one of these session ids belongs to another conversation here."""
    return any(
        t.one(
            "SELECT 1 FROM session WHERE id = $1 AND conversation_id <> $2", session, conversation
        )
        for session in sessions
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class Opening:
    """What a conversation begins with, and who takes it in."""

    conversation: Record
    #: Its first session.
    first: Record
    owner: OwnerId


def open_imported(t: Tx, opening: Opening) -> Lease:
    """
    Store a conversation with its first session, if it is not here, and take its lease.

    Its title gets a number where another conversation has it. Routes are kept as information.
    Repeating it changes nothing.

    :raises LeaseHeld: while another living owner holds the lease
    """
    conversation, first = opening.conversation, opening.first
    if t.one("SELECT 1 FROM conversation WHERE id = $1", conversation["id"]) is None:
        _insert_conversation(t, conversation)
        _insert_session(t, first)
        t.run(
            "INSERT INTO head (conversation_id, session_id) VALUES ($1, $2)",
            conversation["id"],
            first["id"],
        )
    lease = leases.acquire(t, conversation["id"], owner=opening.owner).lease
    _take_title(t, conversation)
    _keep_beside(t, conversation)
    return lease


def _insert_conversation(t: Tx, record: Record) -> None:
    t.run(
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
    t.run(
        "INSERT INTO lease (conversation_id, updated_at) VALUES ($1, $2)",
        record["id"],
        record["created_at"],
    )
    if record["pending_title"] is not None:
        keep_title(t, record["id"], record["pending_title"])


def _take_title(t: Tx, record: Record) -> None:
    """The title that it has there, unless a person gave one here."""
    found = get_conversation(t, record["id"])
    title: str | None = record["title"]
    if title is None or title == found.title or found.titled_by is TitledBy.PERSON:
        return
    free = _free_title(t, record, title)
    if free != found.title:
        rename(t, record["id"], free, titled_by=TitledBy(record["titled_by"]))


def _keep_beside(t: Tx, record: Record) -> None:
    """What was chosen there, unless something was chosen here; where routes led from there."""
    settings: dict[str, str] = json.loads(record["settings"])
    for name, value in settings.items():
        if get_setting(t, record["id"], name) is None:
            put_setting(t, record["id"], name, value)
    if record["routes"] != (get_setting(t, record["id"], ROUTES) or "[]"):
        put_setting(t, record["id"], ROUTES, record["routes"])


def _free_title(t: Tx, record: Record, title: str) -> str:
    names = (title if n == 1 else f"{title} ({n})" for n in range(1, _MOST_NUMBERS))
    free = (
        name
        for name in names
        if not is_title_taken(t, record["scope"], name, by_other_than=record["id"])
    )
    return next(free, f"{title} ({record['id']})")


def take_all(t: Tx, opening: Opening, records: Sequence[TypedRecord], *, after: int) -> int:
    """A conversation that is one slice: opened, taken in and closed in one commit."""
    lease = open_imported(t, opening)
    last = take_in(t, lease, records, after=after)
    close_imported(t, lease)
    return last


def take_in(t: Tx, lease: Lease, records: Sequence[TypedRecord], *, after: int) -> int:
    """
    Append a slice to a conversation whose log ends with entry ``after``; the new last seq.

    :raises LeaseLost: if the lease is not held any more, or the log does not end there
    :raises UsageError: if something in it is stored here as a part of another conversation
    """
    entries = [record for kind, record in records if kind == "entry"]
    last = entries[-1]["seq"] if entries else after
    _move_on(t, lease, after, last, entries[-1]["created_at"] if entries else None)
    for kind, record in records:
        _STORERS[kind](t, record)
    return last


def _move_on(t: Tx, lease: Lease, after: int, last: int, at: int | None) -> None:
    leases.renew(t, lease)
    moved = t.run(
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
            f"conversation {lease.conversation_id} is written to by somebody without the lease"
        )


def close_imported(t: Tx, lease: Lease) -> None:
    """All of it is here: let the lease go and have others look at it."""
    leases.release(t, lease)


def _insert_session(t: Tx, record: Record) -> None:
    t.run(
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
        record["instructions"],
        record["ended_at"],
        record["end_reason"],
    )
    for position, item in enumerate(record["base"]):
        t.run(
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


def _store_session(t: Tx, record: Record) -> None:
    """A session that is here already is the newest one: what became of it since is taken over."""
    updated = t.run(
        """
        UPDATE session SET instructions = COALESCE(instructions, $3), ended_at = $4, end_reason = $5
        WHERE id = $1 AND conversation_id = $2
        """,
        record["id"],
        record["conversation"],
        record["instructions"],
        record["ended_at"],
        record["end_reason"],
    )
    if not updated:
        _insert_session(t, record)
        move_head(t, record["conversation"], record["id"])


def _store_turn(t: Tx, record: Record) -> None:
    """
    One that was not finished when it was exported is stopped: whoever takes it up next ends it.

    It may go on where it came from, and is not to be done twice.
    """
    done = record["outcome"] is not None
    stored = t.run(
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
    _check_ours(stored, "turn", record)


def _store_input(t: Tx, record: Record) -> None:
    t.run(
        """
        INSERT INTO inbox (id, conversation_id, route, kind, text, payload, double_text,
                           received_at, due_at, outcome, turn_id, step, note, resolved_at)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)
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
    row = t.one("SELECT conversation_id FROM inbox WHERE id = $1", record["id"])
    _check_ours(row == (record["conversation"],), "input", record)
    if record["kind"] == "command" and record["expiry_finalized"]:
        # Its plugins were told where it came from.
        mark(t, ALL, ALL, record["id"])


def _store_entry(t: Tx, record: Record) -> None:
    if t.one("SELECT 1 FROM entry WHERE id = $1", record["id"]) is not None:
        _check_ours(False, "entry", record)
    t.run(
        """
        INSERT INTO entry (conversation_id, seq, id, session_id, turn_id, kind, role, text, calls,
                           answers, format, message, created_at, prev_hash, hash)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)
        """,
        *(record[name] for name in _ENTRY),
    )


_ENTRY: Final = (
    "conversation", "seq", "id", "session", "turn", "kind", "role", "text", "calls", "answers",
    "format", "message", "created_at", "prev_hash", "hash",
)  # fmt: skip


def _store_usage(t: Tx, record: Record) -> None:
    t.run(
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


def _store_blob(t: Tx, record: Record) -> None:
    t.run(
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


def _store_attachment(t: Tx, record: Record) -> None:
    t.run(
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


def _check_ours(ours: object, what: str, record: Record) -> None:
    if not ours:
        raise UsageError(f"its {what} {record['id']} is a part of another conversation here")


_STORERS: Final[Mapping[str, Callable[[Tx, Record], None]]] = {
    "session": _store_session,
    "turn": _store_turn,
    "input": _store_input,
    "entry": _store_entry,
    "usage": _store_usage,
    "blob": _store_blob,
    "attachment": _store_attachment,
}


def bury_imported(t: Tx, records: Sequence[Record]) -> int:
    """
    Take over that conversations were deleted elsewhere; how many of these marks are new.

    A conversation that is here stays: it was not deleted here.
    """
    return sum(_bury(t, record) for record in records)


def _bury(t: Tx, record: Record) -> int:
    if t.one("SELECT 1 FROM conversation WHERE id = $1", record["conversation"]) is not None:
        return 0
    return t.run(
        """
        INSERT INTO tombstone (conversation_id, last_seq, last_hash, deleted_at)
        VALUES ($1, $2, $3, $4) ON CONFLICT (conversation_id) DO NOTHING
        """,
        record["conversation"],
        record["last_seq"],
        record["last_hash"],
        record["deleted_at"],
    )


def claim_routes(t: Tx, conversation: ConversationId, routes: Sequence[str]) -> int:
    """Have routes that lead nowhere lead to a conversation; how many."""
    return sum(claim_route(t, RouteKey(route), conversation) for route in routes if _is_key(route))


def _is_key(route: str) -> bool:
    try:
        Route.parse(route)
    except UsageError:
        return False
    return True
