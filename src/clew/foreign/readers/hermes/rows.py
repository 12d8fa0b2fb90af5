"""Messages of Hermes Agent: rows of ``state.db`` and lines of transcripts."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, cast

from clew.core.entry import Role
from clew.core.payload import as_list, as_text
from clew.foreign.chat_messages import read_calls, read_content, read_files, read_moment
from clew.foreign.conversations import ForeignEvent, ForeignMessage, ForeignResult
from clew.record import Record

if TYPE_CHECKING:
    from collections.abc import Mapping

    from clew.foreign.conversations import ForeignCall, ForeignItem, ForeignSender

#: What a summary begins with, in newer releases and in older ones.
_SUMMARY_MARKS: Final = ("[CONTEXT COMPACTION", "[CONTEXT SUMMARY]:")
#: What stands between a message and the summary that was appended to it, and around both.
_MERGED_MARK: Final = "[END OF PRIOR CONTEXT"
_PRIOR_MARK: Final = "[PRIOR CONTEXT"
_END_MARK: Final = "--- END OF CONTEXT SUMMARY"
#: What content that is no text begins with.
_JSON_MARK: Final = "\0json:"
#: Roles that are no messages: the first line of old transcripts describes the session.
_EVENT_KINDS: Final = {"system": "system", "session_meta": "session"}
_ROLES: Final = {role.value: role for role in Role}


class Summary(Record):
    """The summary in a message, and the message that it was appended to."""

    text: str
    prior: str | None


class StoredMessage(Record):
    """A message as it is stored, read."""

    item: ForeignItem
    #: Equal for a message and for its copies after a compaction.
    key: tuple[str, ...]
    summary: Summary | None = None
    #: The session that it is stored in.
    session: str
    #: It was summarised away, and stays stored.
    is_compacted: bool = False


class RowContext(Record):
    """Facts that the messages of a session share."""

    session: str
    model: str = ""
    sender: ForeignSender | None = None
    created_at: int = 0


def read_row(row: Mapping[str, Any], context: RowContext, *, name: str, at: int) -> StoredMessage:
    """Return a row; ``name`` is its id, ``at`` the time of the one before."""
    at = read_moment(row.get("timestamp"), at)
    role = _ROLES.get(as_text(row.get("role")))
    content = _decode_content(row.get("content"))
    calls = _read_calls(row) if role is Role.ASSISTANT else ()
    if role is None or calls is None:
        return _make_event(row, context, content, name=name, at=at)
    if row.get("active") == 0 and not row.get("compacted"):
        return _make_event(row, context, content, name=name, at=at, kind="rewound")
    text = read_content(content)
    return StoredMessage(
        item=_make_message(row, context, content, role=role, calls=calls, name=name, at=at),
        key=_make_key(row, role, calls, text),
        summary=None if role is Role.TOOL else find_summary(text),
        session=context.session,
        is_compacted=bool(row.get("compacted")),
    )


def _make_message(
    row: Mapping[str, Any],
    context: RowContext,
    content: object,
    *,
    role: Role,
    calls: tuple[ForeignCall, ...],
    name: str,
    at: int,
) -> ForeignMessage:
    if role is Role.TOOL:
        result = ForeignResult(
            call_id=as_text(row.get("tool_call_id")),
            name=as_text(row.get("tool_name") or row.get("name")),
            text=_read_result(content),
        )
        return ForeignMessage(id=name, role=role, at=at, results=(result,))
    is_answer = role is Role.ASSISTANT
    return ForeignMessage(
        id=name,
        role=role,
        at=at,
        text=read_content(content),
        reasoning=as_text(row.get("reasoning") or row.get("reasoning_content")),
        calls=calls,
        files=read_files(content),
        sender=None if is_answer else context.sender,
        model=context.model if is_answer else "",
    )


def _read_result(content: object) -> str:
    text = read_content(content)
    return text if text or content is None else json.dumps(content)


def _decode_content(content: object) -> object:
    if isinstance(content, bytes):
        content = content.decode("utf-8", "replace")
    if isinstance(content, str) and content.startswith(_JSON_MARK):
        try:
            return json.loads(content.removeprefix(_JSON_MARK))
        except (ValueError, RecursionError):
            return content.removeprefix(_JSON_MARK)
    return content


def _read_calls(row: Mapping[str, Any]) -> tuple[ForeignCall, ...] | None:
    """Return the calls of a message; ``None`` if they are damaged."""
    stored: object = row.get("tool_calls")
    if isinstance(stored, str | bytes) and stored:
        try:
            stored = json.loads(stored)
        except (ValueError, RecursionError):
            return None
    calls = as_list(cast("object", stored))
    return None if stored and not calls else read_calls({"tool_calls": calls})


def _make_event(
    row: Mapping[str, Any],
    context: RowContext,
    content: object,
    *,
    name: str,
    at: int,
    kind: str = "",
) -> StoredMessage:
    role = as_text(row.get("role"))
    known = "damaged" if role in _ROLES else _EVENT_KINDS.get(role, "unknown")
    text = read_content(content) or f"a message of the role {role or '(none)'}"
    payload = json.dumps(dict(row), default=_show_bytes)
    return StoredMessage(
        item=ForeignEvent(id=name, at=at, kind=kind or known, text=text, payload=payload),
        key=(),
        session=context.session,
    )


def _show_bytes(value: object) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def _make_key(
    row: Mapping[str, Any], role: Role, calls: tuple[ForeignCall, ...], text: str
) -> tuple[str, ...]:
    """Return what a copy keeps: texts of results and pictures are shortened in copies."""
    if role is Role.TOOL:
        return (role.value, as_text(row.get("tool_call_id")) or text)
    return make_text_key(role, text, *(call.id for call in calls))


def make_text_key(role: Role, text: str, *calls: str) -> tuple[str, ...]:
    """Return the key of a message with a text."""
    return (role.value, *calls) if calls else (role.value, text.strip())


def find_summary(text: str) -> Summary | None:
    """Return the summary of earlier messages that a message is or ends with."""
    if text.startswith(_SUMMARY_MARKS):
        return Summary(text=_strip_summary(text), prior=None)
    prior, mark, rest = text.partition(_MERGED_MARK)
    if not mark or not text.startswith(_PRIOR_MARK):
        return None
    summary = rest.partition("\n")[2].strip()
    return Summary(text=_strip_summary(summary), prior=prior.partition("\n")[2].strip())


def _strip_summary(text: str) -> str:
    text = text.partition(_END_MARK)[0].strip()
    if text.startswith(_SUMMARY_MARKS[1]):
        return text.removeprefix(_SUMMARY_MARKS[1]).strip()
    # The first line tells the model how to read the rest.
    head, _, rest = text.partition("\n")
    return rest.strip() or head
