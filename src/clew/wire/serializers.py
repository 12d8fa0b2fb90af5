"""Records as JSON, the same for the command line, HTTP and JSON-RPC."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Protocol

from clew.core.sent_files import make_file_path, parse_files
from clew.core.session_base import EntryRange

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from clew.core.approval import Approval
    from clew.core.context_view import CompactionPreview, ContextMessageView, ContextView
    from clew.core.conversation import Conversation
    from clew.core.conversation_state import ConversationState
    from clew.core.entry import Entry, Role
    from clew.core.grant import Grant
    from clew.core.ids import SessionId
    from clew.core.inbox import InboxItem
    from clew.core.sent_files import SentFile
    from clew.core.session import Session
    from clew.core.session_base import BaseItem


class RelativeFields(Protocol):
    """The shown fields of a conversation that another was branched from, or that was."""

    @property
    def id(self) -> str: ...
    @property
    def seq(self) -> int | None: ...
    @property
    def title(self) -> str | None: ...
    @property
    def created_at(self) -> datetime: ...


class LineageFields(Protocol):
    """What is shown of a conversation's lineage."""

    @property
    def conversation(self) -> Conversation: ...
    @property
    def origin(self) -> RelativeFields | None: ...
    @property
    def sessions(self) -> Sequence[Session]: ...
    @property
    def branches(self) -> Sequence[RelativeFields]: ...


class SummaryFields(Protocol):
    """What is shown of a compaction."""

    @property
    def text(self) -> str: ...
    @property
    def kept_from(self) -> int | None: ...


def format_timestamp(value: datetime | None) -> str | None:
    """Return a time in UTC with milliseconds: ``2026-01-31T12:00:00.000Z``."""
    if value is None:
        return None
    return value.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def serialize_entry(value: Entry) -> dict[str, object]:
    """Serialize an entry of a log."""
    files = parse_files(value.message)
    shown = {"files": [_serialize_file(value, one) for one in files]} if files else {}
    return {
        "seq": value.seq,
        "kind": value.kind.value,
        "session": value.session_id,
        "turn": value.turn_id,
        "role": None if value.role is None else value.role.value,
        "text": value.text,
        "message": json.loads(value.message),
        "created_at": format_timestamp(value.created_at),
        **shown,
    }


def _serialize_file(entry: Entry, value: SentFile) -> dict[str, object]:
    return {
        "id": value.attachment,
        "name": value.name,
        "media_type": value.media_type,
        "size": value.size,
        "sha256": value.sha256,
        "caption": value.caption,
        "path": make_file_path(entry.conversation_id, value.attachment),
    }


def serialize_conversation(
    value: Conversation,
    *,
    routes: Sequence[str],
    sessions: Sequence[Session],
    counts: Mapping[SessionId, int],
    imported_from: str | None,
) -> dict[str, object]:
    """Serialize a conversation with its routes and the lineage of its sessions."""
    origin = {"id": value.origin, "seq": value.origin_seq} if value.origin is not None else None
    return {
        "id": value.id,
        "title": value.title,
        "head_session": value.head,
        "scope": value.scope,
        "entries": value.last_seq,
        "created_at": format_timestamp(value.created_at),
        "updated_at": format_timestamp(value.updated_at),
        "routes": list(routes),
        "origin": origin,
        "imported_from": imported_from,
        "sessions": [_serialize_session(one, counts.get(one.id, 0)) for one in sessions],
    }


def _serialize_session(value: Session, messages: int) -> dict[str, object]:
    return {
        "id": value.id,
        "predecessor": value.predecessor,
        "opened_at": format_timestamp(value.opened_at),
        "opened_by": value.opened_by,
        "opened_seq": value.opened_seq,
        "ended_at": format_timestamp(value.ended_at),
        "end_reason": value.end_reason,
        "messages": messages,
    }


def serialize_lineage(
    value: LineageFields, summaries: Mapping[str, SummaryFields]
) -> dict[str, object]:
    """Serialize where a conversation comes from, its sessions and its branches."""
    return {
        "conversation": value.conversation.id,
        "origin": value.origin and _serialize_relative(value.origin),
        "sessions": [_serialize_compacted(one, summaries.get(one.id)) for one in value.sessions],
        "branches": [_serialize_relative(one) for one in value.branches],
    }


def _serialize_relative(value: RelativeFields) -> dict[str, object]:
    return {
        "id": value.id,
        "seq": value.seq,
        "title": value.title,
        "created_at": format_timestamp(value.created_at),
    }


def _serialize_compacted(value: Session, summary: SummaryFields | None) -> dict[str, object]:
    return {
        "id": value.id,
        "opened_at": format_timestamp(value.opened_at),
        "opened_by": value.opened_by,
        "opened_seq": value.opened_seq,
        "ended_at": format_timestamp(value.ended_at),
        "end_reason": value.end_reason,
        "summary": None if summary is None else summary.text,
        "kept_from": None if summary is None else summary.kept_from,
    }


def serialize_context(value: ContextView) -> dict[str, object]:
    """Serialize the context of the next request and the base of the session."""
    return {
        "conversation": value.conversation,
        "session": value.session.id,
        "opened_by": value.session.opened_by,
        "closed": not value.session.is_open,
        "instructions": value.instructions,
        "base": [_serialize_base_item(item) for item in value.base],
        "messages": [serialize_context_message(one) for one in value.lines],
        "tokens": value.tokens,
    }


def _serialize_base_item(item: BaseItem) -> dict[str, object]:
    if isinstance(item, EntryRange):
        return {"kind": "range", "first": item.first, "last": item.last}
    return {"kind": "literal", "message": json.loads(item.message)}


def serialize_context_message(value: ContextMessageView) -> dict[str, object]:
    """Serialize one message of a context."""
    return {
        "seq": value.seq,
        "role": value.role,
        "text": value.text,
        "tokens": value.tokens,
        "message": json.loads(value.message),
    }


def serialize_preview(value: CompactionPreview) -> dict[str, object]:
    """Serialize a compaction preview: its result, and the messages that go and stay."""
    return {
        **serialize_compaction(value, session=value.session, moved=False),
        "goes": [serialize_context_message(one) for one in value.replaced_lines],
        "stays": [serialize_context_message(one) for one in value.kept_lines],
    }


class SearchHitFields(Protocol):
    """A message found by a search, as the store returns it."""

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


class CompactionSizes(Protocol):
    """The size of a context before and after a compaction."""

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


def serialize_compaction(sizes: CompactionSizes, *, session: str, moved: bool) -> dict[str, object]:
    """Serialize the actual or expected result of a compaction."""
    return {
        "moved": moved,
        "session": session,
        "messages_before": sizes.messages_before,
        "messages_after": sizes.messages_after,
        "tokens_before": sizes.tokens_before,
        "tokens_after": sizes.tokens_after,
        "note": sizes.note,
    }


def serialize_state(value: ConversationState, *, model: str = "") -> dict[str, object]:
    """Serialize the state of a conversation; ``model`` is the default model."""
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
            "started_at": format_timestamp(turn.started_at),
        },
        "queue": [serialize_queued(item) for item in value.queue],
        "approvals": [serialize_approval(one) for one in value.approvals],
        "taken_back": [{"first": span.first, "last": span.last} for span in value.taken_back],
    }


def serialize_queued(value: InboxItem) -> dict[str, object]:
    """Serialize a pending input."""
    return {
        "inbox_id": value.id,
        "kind": value.kind.value,
        "text": value.text,
        "double_text": value.double_text.value,
        "received_at": format_timestamp(value.received_at),
    }


def serialize_approval(value: Approval) -> dict[str, object]:
    """Serialize an approval of a tool call."""
    return {
        "id": value.id,
        "turn": value.turn_id,
        "call": value.call_id,
        "tool": value.tool,
        "args": value.args,
        "state": value.state.value,
        "asked_at": format_timestamp(value.asked_at),
        "expires_at": format_timestamp(value.expires_at),
        "answered_by": value.answered_by,
        "note": value.note,
        "why": value.why,
        "offer": value.offer and value.offer.says,
        "preview": value.preview,
    }


def serialize_grant(value: Grant) -> dict[str, object]:
    """Serialize a grant."""
    return {
        "id": value.id,
        "says": value.pattern.says,
        "tool": value.pattern.tool,
        "scope": value.scope,
        "conversation": value.conversation_id,
        "by": value.by,
        "created_at": format_timestamp(value.created_at),
        "expires_at": value.expires_at and format_timestamp(value.expires_at),
        "revoked_at": value.revoked_at and format_timestamp(value.revoked_at),
    }


def serialize_hit(value: SearchHitFields) -> dict[str, object]:
    """Serialize a search hit."""
    return {
        "conversation": value.conversation_id,
        "seq": value.seq,
        "role": value.role.value,
        "title": value.title,
        "snippet": value.snippet,
        "created_at": format_timestamp(value.created_at),
    }


def serialize_page(items: Sequence[object], following: str | None) -> dict[str, object]:
    """Return a page of a list with the cursor of the next page."""
    return {"items": list(items), "next": following}
