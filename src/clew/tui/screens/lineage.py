"""Lineage screen: the sessions of a conversation as a tree, with reasons and branches."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from clew.tui.screens.picker import FilterPicker, PickerItem
from clew.tui.state.labels import flatten_text, reason_label

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from clew.wire.models import ConversationShape, SessionShape


def build_lineage(
    conversation: ConversationShape, related: Sequence[ConversationShape] = ()
) -> FilterPicker:
    """Return a picker of the sessions from the first to the head, with their branches."""
    heading = "Sessions of this conversation"
    if (imported := conversation.imported_from) is not None:
        heading += f", imported from {flatten_text(imported, 60)}"
    return FilterPicker(list(_build_rows(conversation, related)), heading=heading)


def _build_rows(
    conversation: ConversationShape, related: Sequence[ConversationShape]
) -> Iterator[PickerItem]:
    if (origin := conversation.origin) is not None:
        title = next((_short_title(one) for one in related if one.id == origin.id), origin.id)
        at = "" if origin.seq is None else f" at message {origin.seq}"
        yield PickerItem(key=origin.id, text=f"╭ from “{title}”", more=f"branched{at}")
    branches = [one for one in related if one.origin and one.origin.id == conversation.id]
    sessions = conversation.sessions
    for number, session in enumerate(sessions, start=1):
        is_last = number == len(sessions)
        yield _session_row(session, conversation, number, rail="╰" if is_last else "├")
        until = conversation.entries if is_last else sessions[number].opened_seq
        for branch in branches:
            seq = branch.origin.seq if branch.origin and branch.origin.seq is not None else 0
            if session.opened_seq < seq <= until or (number == 1 and seq == 0):
                yield _branch_row(branch, seq, rail=" " if is_last else "│")


def _session_row(
    one: SessionShape, conversation: ConversationShape, number: int, *, rail: str
) -> PickerItem:
    is_head = one.id == conversation.head_session
    count = f"{one.messages} message{'s' if one.messages != 1 else ''}"
    facts = [count, _format_local(one.opened_at)]
    if is_head and one.ended_at is None:
        facts.append("current")
    elif one.end_reason and is_head:
        facts.append(f"closed: {reason_label(one.end_reason)}")
    why = reason_label(one.opened_by)
    text = f"{rail}─ {number}  {why[:1].upper()}{why[1:]}"
    return PickerItem(key=one.id, text=text, more=" · ".join(facts), marked=is_head)


def _branch_row(one: ConversationShape, seq: int, *, rail: str) -> PickerItem:
    more = f"branch at message {seq} · {_format_local(one.created_at)}"
    return PickerItem(key=one.id, text=f"{rail}  ╰─ {_short_title(one)}", more=more)


def _short_title(one: ConversationShape) -> str:
    names = [route.rpartition(":")[2] for route in one.routes]
    return flatten_text(one.title or next(iter(names), "") or one.id, 40)


def _format_local(moment: str) -> str:
    """Return a time in local time, to the minute."""
    try:
        return datetime.fromisoformat(moment).astimezone().strftime("%Y-%m-%d %H:%M")
    except ValueError:
        return moment
