"""Moves that change which session is current, or open a conversation beside it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.core import session as reasons
from clew.core.entry import Role
from clew.core.ids import ConversationId
from clew.core.scope import LOCAL
from clew.core.session import Head
from clew.core.session_base import EntryRange, InlineMessage, extend_base
from clew.core.turn import StopRequest, TurnOutcome
from clew.errors import RotationConflict, SessionEnded, TurnRolledBack
from clew.store.transactions import context, conversations, entries, sessions, turns
from tests.contract.simulation.inputs import new_thread
from tests.contract.simulation.sim import FORMAT, Sim, itself

if TYPE_CHECKING:
    from clew.core.session import Session
    from clew.core.session_base import Base
    from clew.store.contract import Tx
    from tests.contract.simulation.model import Messages, Run, Thread


def _opened(session: Session) -> object:
    return session.id, session.opened_seq, session.opened_by


def _may_rotate(sim: Sim, run: Run) -> bool:
    return not (sim.holds(run) and run.thread.batch_open)


def rotate(sim: Sim, run: Run, base: Base, reason: str, messages: Messages) -> None:
    """Move the head, or be refused with a lost lease."""
    thread = run.thread
    expected = Head(session=run.session, last_seq=len(thread.log))
    session = sim.under(
        run, _opened, sessions.rotate_session,
        operation=sim.new("op"), expected=expected, base=base,
        reason=reason, session_ids=sim.session_ids,
    )  # fmt: skip
    if session is not None:
        (thread.rewound if reason == reasons.REWIND else thread.opened)(session.id, messages)
        run.session = session.id
        closed = sim.desk.do(sessions.get_session, thread.sessions[-2].id)
        assert not closed.is_open


def compress(sim: Sim, run: Run, index: int) -> None:
    """A summary, and the tail from a boundary on."""
    if not _may_rotate(sim, run):
        return
    thread, summary = run.thread, sim.new("summary")
    base: Base = (InlineMessage(format=FORMAT, message=summary),)
    messages: Messages = (summary,)
    first, last = thread.head.opened_seq + 1, len(thread.log)
    starts = [seq + 1 for seq in thread.boundaries() if first <= seq + 1 <= last]
    if starts:
        start = starts[index % len(starts)]
        base += (EntryRange(first=start, last=last),)
        messages += thread.messages(first=start, last=last)
    rotate(sim, run, base, reasons.COMPRESSION, messages)


def rewind(sim: Sim, run: Run, index: int) -> None:
    """Back to a boundary, through compactions that came after it."""
    if not _may_rotate(sim, run):
        return
    thread = run.thread
    seq = _boundary(thread, index)
    if thread.id in sim.threads:
        base = sim.desk.do(context.build_base_at, thread.id, seq)
        rotate(sim, run, base, reasons.REWIND, thread.after[seq])


def _boundary(thread: Thread, index: int) -> int:
    boundaries = thread.boundaries()
    return boundaries[index % len(boundaries)]


def restore(sim: Sim, run: Run) -> None:
    """The predecessor's base and everything since."""
    thread = run.thread
    if not _may_rotate(sim, run) or len(thread.sessions) < 2 or thread.id not in sim.threads:
        return
    before, last = thread.sessions[-2], len(thread.log)
    found = sim.desk.do(sessions.get_base, before.id)
    base = extend_base(found, opened_seq=before.opened_seq, last_seq=last)
    messages = before.base + thread.messages(first=before.opened_seq + 1, last=last)
    rotate(sim, run, base, reasons.RESTORE, messages)


def conflict(sim: Sim, run: Run, *, stale_seq: bool) -> None:
    """A rotation that expects another head or another last seq changes nothing."""
    thread = run.thread
    if not sim.holds(run):
        return
    expected = Head(session=thread.sessions[0].id, last_seq=len(thread.log))
    if stale_seq or len(thread.sessions) == 1:
        expected = Head(session=thread.head.id, last_seq=len(thread.log) + 1)
    before = sim.desk.snapshot()
    sim.refused(
        RotationConflict, sessions.rotate_session, run.lease,
        operation=sim.new("op"), expected=expected,
        base=(), reason=reasons.COMPRESSION, session_ids=sim.session_ids,
    )  # fmt: skip
    assert sim.desk.snapshot() == before


def append_to_the_past(sim: Sim, run: Run, index: int) -> None:
    """Nothing appends to a session that is not the open head; the error names the head."""
    thread = run.thread
    old = thread.sessions[index % len(thread.sessions)].id
    if not sim.holds(run) or (old == thread.head.id and thread.open):
        return
    drafts = [sim.draft(Role.ASSISTANT)]
    sim.refused(SessionEnded, entries.append_entries, run.lease, old, drafts)
    doing = thread.turn
    if run.turn is not None and doing is not None:
        sim.refused(SessionEnded, turns.store_step, run.lease, old, run.turn, drafts)
        sim.refused(
            TurnRolledBack if doing.stop is StopRequest.ROLLBACK else SessionEnded,
            turns.finish_turn,
            run.lease,
            old,
            run.turn,
            TurnOutcome.ANSWERED,
            drafts=drafts,
        )


def carry_out(sim: Sim, run: Run) -> None:
    """A command: close the conversation, compress it, or nothing."""
    item, thread = run.item, run.thread
    if item is None:
        return
    if item.text.startswith("close"):
        head = sim.under(run, itself, sessions.end_head, reasons.RESET)
        if head is not None:
            assert not head.is_open
            thread.open = False
    elif item.text.startswith("compress"):
        compress(sim, run, 0)


def branch(sim: Sim, thread: Thread) -> None:
    """A conversation that begins with another one's context, as literals."""
    if thread.batch_open:
        return
    new = ConversationId(sim.new("cnv"))
    sim.call(
        itself, _branch, new, thread.id, origin_seq=len(thread.log),
        session_ids=sim.session_ids,
    )  # fmt: skip
    assert new_thread(sim, new).context == thread.context
    sim.touched.add(new)


def _branch(
    t: Tx,
    new: ConversationId,
    origin: ConversationId,
    *,
    origin_seq: int,
    session_ids: conversations.SessionIdFactory,
) -> object:
    found = context.read_head_context(t, origin)
    base = tuple(InlineMessage(format=m.format, message=m.message) for m in found.messages)
    return conversations.open_conversation(
        t, new, scope=LOCAL, session_ids=session_ids, base=base, opened_by=reasons.BRANCH,
        origin=origin, origin_seq=origin_seq,
    )  # fmt: skip


def look_back(sim: Sim, thread: Thread, index: int) -> None:
    """The context at any past point is what it was then; a session's whole base is its context."""
    seq = index % len(thread.after)
    assert sim.desk.do(_at, thread.id, seq) == thread.after[seq]
    chain = sim.desk.do(sessions.list_sessions, thread.id)
    assert [session.id for session in chain] == [session.id for session in thread.sessions]


def _at(t: Tx, conversation: ConversationId, seq: int) -> Messages:
    messages: Messages = ()
    for item in context.build_base_at(t, conversation, seq):
        if isinstance(item, InlineMessage):
            messages += (item.message,)
        else:
            found = context.read_messages(t, conversation, first=item.first, last=item.last)
            messages += tuple(message.message for message in found)
    return messages
