"""Records as JSON, the same for the command line, HTTP and JSON-RPC."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from clew.core.conversation import Conversation
    from clew.core.entry import Entry
    from clew.core.ids import SessionId
    from clew.core.session import Session


def moment(value: datetime | None) -> str | None:
    """A moment in UTC, to the millisecond: ``2026-01-31T12:00:00.000Z``."""
    if value is None:
        return None
    return value.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def entry(value: Entry) -> dict[str, object]:
    """One numbered thing of a conversation's log."""
    return {
        "seq": value.seq,
        "kind": value.kind.value,
        "session": value.session_id,
        "turn": value.turn_id,
        "role": None if value.role is None else value.role.value,
        "text": value.text,
        "message": json.loads(value.message),
        "created_at": moment(value.created_at),
    }


def conversation(
    value: Conversation,
    *,
    routes: Sequence[str],
    sessions: Sequence[Session],
    counts: Mapping[SessionId, int],
) -> dict[str, object]:
    """A conversation with its routes and the lineage of its sessions."""
    origin = {"id": value.origin, "seq": value.origin_seq} if value.origin is not None else None
    return {
        "id": value.id,
        "title": value.title,
        "head_session": value.head,
        "scope": value.scope,
        "entries": value.last_seq,
        "created_at": moment(value.created_at),
        "updated_at": moment(value.updated_at),
        "routes": list(routes),
        "origin": origin,
        "sessions": [_session(one, counts.get(one.id, 0)) for one in sessions],
    }


def _session(value: Session, messages: int) -> dict[str, object]:
    return {
        "id": value.id,
        "predecessor": value.predecessor,
        "opened_at": moment(value.opened_at),
        "opened_by": value.opened_by,
        "ended_at": moment(value.ended_at),
        "end_reason": value.end_reason,
        "messages": messages,
    }


def page(items: Sequence[object], following: str | None) -> dict[str, object]:
    """A part of a list, and the cursor of the next part."""
    return {"items": list(items), "next": following}
