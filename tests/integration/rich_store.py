"""A store with something in every table, and values that are hard to copy."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, LiteralString, cast

from clew.core.delivery import DeliveryKind, NewDelivery
from clew.core.ids import DeliveryId
from clew.core.route import RouteKey
from clew.core.session_prefix import digest_tools
from clew.core.turn import TurnOutcome
from clew.store.transactions import turns
from tests.contract import acting

if TYPE_CHECKING:
    from clew.store.contract import Tx, Value

ODD = '“Ärger” 🧵 \t it\'s \\ "quoted" \u202e % $1 @ID -- ; \n'
BLOB = bytes(range(256)) * 40
SHA256 = hashlib.sha256(BLOB).digest()
FAR = 99_999_999_999_999
DELIVERIES = ("delivered", "pending", "sending", "unknown", "failed")

_REST: tuple[tuple[LiteralString, dict[LiteralString, Value]], ...] = (
    (
        "owner",
        {"id": "own_1", "host": "h", "pid": 7, "role": "serve", "version": "0", "started_at": FAR},
    ),
    ("toolset", {"digest": digest_tools(ODD), "definitions": ODD, "used_at": 6}),
    (
        "client",
        {
            "id": "cli_1",
            "conversation_id": "cnv_1",
            "owner": "own_1",
            "front": "tui",
            "attached_at": 9,
        },
    ),
    ("lock", {"name": "maintenance", "holder": "own_1", "expires_at": FAR}),
    (
        "journal",
        {
            "turn_id": "trn_1",
            "step": 1,
            "call_id": "c1",
            "conversation_id": "cnv_1",
            "position": 0,
            "tool": "look",
            "args": "{}",
            "effect": "once",
            "status": "ok",
            "format": "t/1",
            "result": ODD,
            "started_at": 3,
            "finished_at": 4,
        },
    ),
    (
        "workspace_write",
        {
            "call": "trn_1 1 c1",
            "turn": "trn_1",
            "workspace": "/work/local",
            "path": ODD,
            "began_at": 3,
            "untrusted": 1,
            "unseen": 0,
        },
    ),
    (
        "approval",
        {
            "id": "apr_1",
            "conversation_id": "cnv_1",
            "turn_id": "trn_1",
            "step": 1,
            "call_id": "c9",
            "tool": "pay",
            "args": "{}",
            "state": "expired",
            "asked_at": 1,
            "expires_at": 2,
            "answered_at": 3,
            "note": ODD,
        },
    ),
    (
        "approval_grant",
        {
            "id": "grn_1",
            "scope": "local",
            "conversation_id": "cnv_1",
            "tool": "pay",
            "pattern": '{"tool": "pay"}',
            "says": ODD,
            "by": "person",
            "from_approval": "apr_1",
            "created_at": 1,
            "expires_at": FAR,
        },
    ),
    (
        "idempotency",
        {
            "key": b"\0key",
            "body": b"\xff",
            "status": 200,
            "answer": "{}",
            "created_at": 1,
            "expires_at": FAR,
        },
    ),
    ("resent", {"conversation_id": "cnv_1", "key": b"\0\1", "inbox_id": "inb_1"}),
    ("pending_title", {"conversation_id": "cnv_1", "title": ODD, "asked_at": 3}),
    (
        "usage",
        {
            "id": "use_1",
            "conversation_id": "cnv_1",
            "purpose": "step",
            "model": "m",
            "input_tokens": 2**62 + 1,
            "created_at": 4,
        },
    ),
    (
        "blob",
        {
            "sha256": SHA256,
            "size": len(BLOB),
            "media_type": "image/png",
            "bytes": BLOB,
            "created_at": 5,
        },
    ),
    (
        "attachment",
        {
            "id": "att_1",
            "conversation_id": "cnv_1",
            "sha256": SHA256,
            "name": ODD,
            "media_type": "image/png",
        },
    ),
    (
        "pairing",
        {
            "channel": "telegram",
            "account": "bot",
            "user_id": "42",
            "state": "asked",
            "code_hash": b"\0",
            "expires_at": 2,
            "changed_at": 1,
        },
    ),
    (
        "preview",
        {
            "route": "agent:main:telegram:dm:42",
            "turn_id": "trn_1",
            "key": "preview:trn_1:0",
            "platform_id": "7",
            "shown_at": 1,
        },
    ),
    (
        "entry_redaction",
        {"conversation_id": "cnv_1", "seq": 1, "message": json.dumps(ODD), "text": ODD},
    ),
    ("hold", {"channel": "telegram", "account": "bot", "chat": "42", "held_until": 1}),
    ("hook_mark", {"plugin": "p", "hook": "h", "subject": "s", "told_at": 1}),
    (
        "tombstone",
        {"conversation_id": "cnv_gone", "last_seq": 4, "last_hash": b"\7" * 32, "deleted_at": 5},
    ),
    ("setting", {"scope": "cnv_1", "name": "model", "value": json.dumps(ODD)}),
)


def fill(t: Tx, *, entries: int = 20) -> None:
    """Fill an empty store: the turn ``trn_2`` of ``cnv_1`` runs, its owner ``own_me`` is gone."""
    acting.accept(t, acting.message("inb_1", event=("telegram", "bot", "1")))
    first = acting.begin(t)
    acting.append(t, first.lease, *(f"ent_{n}{ODD}" for n in range(entries)))
    t.execute("UPDATE turn SET steps = 1")
    turns.finish_turn(
        t,
        first.lease,
        acting.head(t).id,
        acting.the_turn(first).id,
        TurnOutcome.ANSWERED,
        deliveries=[
            NewDelivery(
                id=DeliveryId(f"dlv_{name}"), route=RouteKey("r"), kind=DeliveryKind.TEXT, body=ODD
            )
            for name in DELIVERIES
        ],
    )
    _deliver(t)
    acting.accept(t, acting.message("inb_2"))
    second = acting.begin(t, turn="trn_2")
    acting.rotate(t, second.lease, acting.expected(t))
    t.execute(
        "INSERT INTO base_item SELECT id, 0, 1, 2, NULL, NULL FROM session WHERE ended_at IS NULL"
    )
    t.execute("INSERT INTO compaction (session_id, stalls) SELECT id, 1 FROM session")
    for table, values in _REST:
        _insert(t, table, values)


def _deliver(t: Tx) -> None:
    for name in DELIVERIES:
        t.execute(
            "UPDATE delivery SET state = $1, owner = $2 WHERE id = $3",
            name,
            "own_me" if name == "sending" else None,
            f"dlv_{name}",
        )
        chunk: dict[LiteralString, Value] = {
            "delivery_id": f"dlv_{name}",
            "position": 0,
            "body": ODD,
            "state": name,
            "platform_id": "m1" if name == "delivered" else None,
        }
        _insert(t, "delivery_chunk", chunk)


def _insert(t: Tx, table: LiteralString, values: dict[LiteralString, Value]) -> None:
    places = cast("LiteralString", ", ".join(f"${n}" for n in range(1, len(values) + 1)))
    t.execute(f"INSERT INTO {table} ({', '.join(values)}) VALUES ({places})", *values.values())
