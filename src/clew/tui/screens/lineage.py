"""The sessions of a conversation as a tree: which continued which, and why, and what branched."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from clew.tui.screens.picker import Choice, Narrowing
from clew.tui.state.words import one_line, reason

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from clew.wire.records import ConversationShape, SessionShape


def lineage(
    conversation: ConversationShape, related: Sequence[ConversationShape] = ()
) -> Narrowing:
    """Return a list of the sessions from the first to the head, with the branches of each."""
    return Narrowing(list(_rows(conversation, related)), heading="Sessions of this conversation")


def _rows(
    conversation: ConversationShape, related: Sequence[ConversationShape]
) -> Iterator[Choice]:
    if (origin := conversation.origin) is not None:
        title = next((_title(one) for one in related if one.id == origin.id), origin.id)
        at = "" if origin.seq is None else f" at message {origin.seq}"
        yield Choice(key=origin.id, text=f"╭ from “{title}”", more=f"branched{at}")
    branches = [one for one in related if one.origin and one.origin.id == conversation.id]
    sessions = conversation.sessions
    for number, session in enumerate(sessions, start=1):
        is_last = number == len(sessions)
        yield _session(session, conversation, number, rail="╰" if is_last else "├")
        until = conversation.entries if is_last else sessions[number].opened_seq
        for branch in branches:
            seq = branch.origin.seq if branch.origin and branch.origin.seq is not None else 0
            if session.opened_seq < seq <= until or (number == 1 and seq == 0):
                yield _branch(branch, seq, rail=" " if is_last else "│")


def _session(
    one: SessionShape, conversation: ConversationShape, number: int, *, rail: str
) -> Choice:
    is_head = one.id == conversation.head_session
    count = f"{one.messages} message{'s' if one.messages != 1 else ''}"
    facts = [count, _local(one.opened_at)]
    if is_head and one.ended_at is None:
        facts.append("current")
    elif one.end_reason and is_head:
        facts.append(f"closed: {reason(one.end_reason)}")
    why = reason(one.opened_by)
    text = f"{rail}─ {number}  {why[:1].upper()}{why[1:]}"
    return Choice(key=one.id, text=text, more=" · ".join(facts), marked=is_head)


def _branch(one: ConversationShape, seq: int, *, rail: str) -> Choice:
    more = f"branch at message {seq} · {_local(one.created_at)}"
    return Choice(key=one.id, text=f"{rail}  ╰─ {_title(one)}", more=more)


def _title(one: ConversationShape) -> str:
    names = [route.rpartition(":")[2] for route in one.routes]
    return one_line(one.title or next(iter(names), "") or one.id, 40)


def _local(moment: str) -> str:
    """A moment in local time, to the minute."""
    try:
        return datetime.fromisoformat(moment).astimezone().strftime("%Y-%m-%d %H:%M")
    except ValueError:
        return moment
