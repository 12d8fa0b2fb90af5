"""Records as JSON, the same for the command line, HTTP and JSON-RPC."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Protocol

from clew.core.base import EntryRange

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from clew.core.approval import Approval
    from clew.core.base import BaseItem
    from clew.core.context import CompactionPreview, ContextMessageView, ContextView
    from clew.core.conversation import Conversation
    from clew.core.entry import Entry, Role
    from clew.core.ids import SessionId
    from clew.core.inbox import InboxItem
    from clew.core.session import Session
    from clew.core.standing import ConversationState


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
        "opened_seq": value.opened_seq,
        "ended_at": moment(value.ended_at),
        "end_reason": value.end_reason,
        "messages": messages,
    }


def context(value: ContextView) -> dict[str, object]:
    """What the model will be sent, and what the session started from."""
    return {
        "conversation": value.conversation,
        "session": value.session.id,
        "opened_by": value.session.opened_by,
        "closed": not value.session.is_open,
        "instructions": value.instructions,
        "base": [_base_item(item) for item in value.base],
        "messages": [line(one) for one in value.lines],
        "tokens": value.tokens,
    }


def _base_item(item: BaseItem) -> dict[str, object]:
    if isinstance(item, EntryRange):
        return {"kind": "range", "first": item.first, "last": item.last}
    return {"kind": "literal", "message": json.loads(item.message)}


def line(value: ContextMessageView) -> dict[str, object]:
    """One message of a context."""
    return {
        "seq": value.seq,
        "role": value.role,
        "text": value.text,
        "tokens": value.tokens,
        "message": json.loads(value.message),
    }


def preview(value: CompactionPreview) -> dict[str, object]:
    """What a compaction would do: as ``compacted``, and which messages go and stay."""
    return {
        **compacted(value, session=value.session, moved=False),
        "goes": [line(one) for one in value.replaced_lines],
        "stays": [line(one) for one in value.kept_lines],
    }


class Hit(Protocol):
    """A message that was looked for, as the store has it."""

    @property
    def conversation_id(self) -> str: ...
    @property
    def seq(self) -> int: ...
    @property
    def role(self) -> Role: ...
    @property
    def title(self) -> str | None: ...
    @property
    def snippet(self) -> str: ...
    @property
    def created_at(self) -> datetime: ...


class Sizes(Protocol):
    """A context before a compaction and after it."""

    @property
    def messages_before(self) -> int: ...
    @property
    def messages_after(self) -> int: ...
    @property
    def tokens_before(self) -> int: ...
    @property
    def tokens_after(self) -> int: ...
    @property
    def note(self) -> str: ...


def compacted(sizes: Sizes, *, session: str, moved: bool) -> dict[str, object]:
    """What came of a compaction, or would come of it."""
    return {
        "moved": moved,
        "session": session,
        "messages_before": sizes.messages_before,
        "messages_after": sizes.messages_after,
        "tokens_before": sizes.tokens_before,
        "tokens_after": sizes.tokens_after,
        "note": sizes.note,
    }


def standing(value: ConversationState, *, model: str = "") -> dict[str, object]:
    """What a conversation is doing; ``model`` is the one where none was chosen."""
    turn = value.turn
    return {
        "title": value.title,
        "head_session": value.head,
        "closed": value.closed,
        "model": value.model or model,
        "turn": None
        if turn is None
        else {
            "id": turn.id,
            "state": turn.state.value,
            "stopping": turn.stopping,
            "started_at": moment(turn.started_at),
        },
        "queue": [queued(item) for item in value.queue],
        "approvals": [approval(one) for one in value.approvals],
        "taken_back": [{"first": span.first, "last": span.last} for span in value.taken_back],
    }


def queued(value: InboxItem) -> dict[str, object]:
    """An input that waits."""
    return {
        "inbox_id": value.id,
        "kind": value.kind.value,
        "text": value.text,
        "double_text": value.double_text.value,
        "received_at": moment(value.received_at),
    }


def approval(value: Approval) -> dict[str, object]:
    """A question about a tool call."""
    return {
        "id": value.id,
        "turn": value.turn_id,
        "call": value.call_id,
        "tool": value.tool,
        "args": value.args,
        "state": value.state.value,
        "asked_at": moment(value.asked_at),
        "expires_at": moment(value.expires_at),
        "answered_by": value.answered_by,
        "note": value.note,
    }


def hit(value: Hit) -> dict[str, object]:
    """A message that was looked for."""
    return {
        "conversation": value.conversation_id,
        "seq": value.seq,
        "role": value.role.value,
        "title": value.title,
        "snippet": value.snippet,
        "created_at": moment(value.created_at),
    }


def page(items: Sequence[object], following: str | None) -> dict[str, object]:
    """A part of a list, and the cursor of the next part."""
    return {"items": list(items), "next": following}
