"""Turns: starting or resuming one, its steps, its suspension, and its end."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from clew.clock import from_millis
from clew.core import session as reasons
from clew.core.agent_profile import MAIN, StoredAgent
from clew.core.completion import UnattendedLimits
from clew.core.entry import Entry, NewEntry, Role
from clew.core.inbox import InboxItem, InboxOutcome
from clew.core.model_changed import attach_model_change
from clew.core.scope import LOCAL
from clew.core.session import Head
from clew.core.system_note import SystemNote
from clew.core.transitions import check_transition
from clew.core.turn import TRANSITIONS, StopRequest, Turn, TurnOutcome, TurnState
from clew.core.work_queue import (
    RunCommand,
    StartTurn,
    next_work,
    select_interruption,
    select_steering,
)
from clew.errors import LeaseLost, StoreError, TurnRolledBack
from clew.record import Record, replace
from clew.store.transactions import leases
from clew.store.transactions.approvals import deny_open_approvals
from clew.store.transactions.completions import find_hold_reason
from clew.store.transactions.context import build_session_base
from clew.store.transactions.conversations import get_scope
from clew.store.transactions.deliveries import add_deliveries, close_previews, deliver_turn_text
from clew.store.transactions.entries import append_entries, read_entries
from clew.store.transactions.inbox import list_open_items, lock_open_items
from clew.store.transactions.sessions import get_head, rotate_session
from clew.store.transactions.settings import (
    MODEL_SETTING,
    PREVIOUS_MODEL_SETTING,
    find_agent,
    get_setting,
    take_setting,
)
from clew.store.transactions.turn_queries import find_last_done_turn, find_unfinished_turn, get_turn
from clew.store.transactions.usage import UsageRecord, record_usage

if TYPE_CHECKING:
    from datetime import timedelta

    from clew.core.delivery import NewDelivery, OutboundText
    from clew.core.ids import ConversationId, OwnerId, SessionId, SessionIdFactory, TurnId
    from clew.core.lease import Lease
    from clew.core.route import RouteKey
    from clew.core.scope import Scope
    from clew.store.contract import Tx

#: For callers that have no limits of their own.
UNLIMITED = UnattendedLimits(tokens=sys.maxsize)
#: Builds the user message of an inbox item; pure and deterministic.
MessageComposer = Callable[[InboxItem], NewEntry]
#: Adds what features tell the model to the user messages of these items.
DraftAnnotator = Callable[
    ["Tx", "SessionId", "Sequence[InboxItem]", list[NewEntry]], list[NewEntry]
]
#: Returns the id of the trace of a turn that begins with these inputs; ``None`` for none.
TraceNamer = Callable[["TurnId", "Sequence[InboxItem]"], "str | None"]
#: Called with a turn in the transaction that changes it.
TurnObserver = Callable[["Tx", Turn], None]


class StartedWork(Record):
    """Work of a new lease holder: a turn to run, or one item to execute."""

    lease: Lease
    turn: Turn | None
    #: True if the turn had begun before; its context determines the next step.
    resumed: bool = False
    #: What is at the front of the queue, if there is no turn: a command, an expiry, or a
    #: completion that is held back.
    item: InboxItem | None = None
    #: Why the completion begins no turn.
    held: SystemNote | None = None
    #: Route of the turn's first input, where its approvals are requested.
    route: RouteKey | None = None
    scope: Scope = LOCAL
    agent: StoredAgent = MAIN
    #: JSON of each input of the turn so far, in order.
    payloads: tuple[str, ...] = ()


def begin_work(  # noqa: PLR0913  (each is needed in the one commit)
    t: Tx,
    conversation: ConversationId,
    *,
    owner: OwnerId,
    turn: TurnId,
    compose: MessageComposer,
    session_ids: SessionIdFactory,
    duration: timedelta = leases.LEASE_DURATION,
    annotate: DraftAnnotator | None = None,
    limits: UnattendedLimits = UNLIMITED,
    name_trace: TraceNamer | None = None,
) -> StartedWork | None:
    """
    Acquire the lease and the next work of a conversation.

    Returns ``None``, without a lease, if there is no work. An unfinished turn continues
    (counted as a resume if its owner was lost). Else the items at the front of the queue
    are consumed by their double-text rule: messages and completions become the first entries
    of turn ``turn``, and a closed conversation is reopened first. Acquiring, consuming and
    appending are one commit. Repeating it as the same owner returns the same turn.

    :raises NotFound: if there is no such conversation
    :raises LeaseHeld: while another living owner holds the lease
    """
    acquired = leases.acquire_lease(t, conversation, owner=owner, duration=duration)
    unfinished = find_unfinished_turn(t, conversation)
    if unfinished is not None:
        begun = _continue_turn(t, acquired, unfinished)
    else:
        begun = _start_next(
            t, acquired.lease, turn, compose, session_ids, annotate, limits, name_trace
        )
    if begun is None:
        leases.release_lease(t, acquired.lease)
    return begun


def _continue_turn(t: Tx, acquired: leases.AcquiredLease, turn: Turn) -> StartedWork | None:
    # A turn that still waits blocks all other work, commands included.
    if turn.state is TurnState.WAITING:
        if not _may_continue(t, turn):
            return None
        set_turn_state(t, turn, TurnState.RUNNING)
    elif acquired.lost_owner is not None:
        _count_resume(t, turn, acquired.last_seq)
    inputs = t.fetch_all("SELECT route, payload FROM inbox WHERE turn_id = $1 ORDER BY n", turn.id)
    return StartedWork(
        lease=acquired.lease,
        turn=get_turn(t, turn.id),
        resumed=True,
        route=inputs[0][0] if inputs else None,
        scope=get_scope(t, turn.conversation_id),
        agent=find_agent(t, turn.conversation_id),
        payloads=tuple([payload for _, payload in inputs]),
    )


def _may_continue(t: Tx, turn: Turn) -> bool:
    """Return whether a waiting turn has all answers, a stop, or a new user message."""
    if turn.stop is not None:
        return True
    if select_interruption(list_open_items(t, turn.conversation_id), from_millis(t.now)):
        deny_open_approvals(t, turn.id, note=SystemNote.NEW_MESSAGE)
        return True
    return not t.exists("SELECT 1 FROM approval WHERE turn_id = $1 AND state = 'open'", turn.id)


def _count_resume(t: Tx, turn: Turn, last_seq: int) -> None:
    # Only resumes without a new entry in between count towards the limit.
    t.execute(
        """
        UPDATE turn
        SET resumes = CASE WHEN resumed_seq = $2 THEN resumes + 1 ELSE 1 END, resumed_seq = $2
        WHERE id = $1
        """,
        turn.id,
        last_seq,
    )


def release_expired_lease(t: Tx, lease: Lease, turn: TurnId) -> bool:
    """
    Release the lease of a turn that outlasted it, and count this as the loss of its owner.

    ``False``, with nothing changed, if another owner has the lease or the turn released it.
    """
    try:
        last_seq = leases.verify_lease_for_write(t, lease)
    except LeaseLost:
        return False
    _count_resume(t, get_turn(t, turn), last_seq)
    leases.release_lease(t, lease)
    return True


def _start_next(  # noqa: PLR0913  (each is needed in the one commit)
    t: Tx,
    lease: Lease,
    turn: TurnId,
    compose: MessageComposer,
    session_ids: SessionIdFactory,
    annotate: DraftAnnotator | None,
    limits: UnattendedLimits,
    name_trace: TraceNamer | None,
) -> StartedWork | None:
    match next_work(lock_open_items(t, lease.conversation_id), from_millis(t.now)):
        case StartTurn(items=items) if reason := find_hold_reason(t, items, limits):
            return StartedWork(lease=lease, turn=None, item=items[0], held=reason)
        case StartTurn(items=items):
            session = ensure_open_session(t, lease, f"{turn}:reopen", session_ids)
            _insert_turn(t, lease, turn, None if name_trace is None else name_trace(turn, items))
            told = _with_model_change(t, lease.conversation_id, items)
            drafts = [compose(item) for item in told]
            if annotate is not None:
                drafts = annotate(t, session, items, drafts)
            append_entries(t, lease, session, drafts, turn=turn)
            for item, outcome in zip(items, _input_outcomes(len(items)), strict=True):
                consume_item(t, item, outcome, turn)
            return StartedWork(
                lease=lease,
                turn=get_turn(t, turn),
                route=items[0].route,
                scope=get_scope(t, lease.conversation_id),
                agent=find_agent(t, lease.conversation_id),
                payloads=tuple([item.payload for item in items]),
            )
        case RunCommand(item=item):
            return StartedWork(lease=lease, turn=None, item=item)
        case _:
            return None


def _with_model_change(
    t: Tx, conversation: ConversationId, items: Sequence[InboxItem]
) -> Sequence[InboxItem]:
    """Add the model change since the last answer, if any, to the first message."""
    if get_setting(t, conversation, PREVIOUS_MODEL_SETTING) is None:
        return items
    before = take_setting(t, conversation, PREVIOUS_MODEL_SETTING)
    after = get_setting(t, conversation, MODEL_SETTING)
    if before is None or after in (None, before) or find_last_done_turn(t, conversation) is None:
        return items
    first = items[0]
    payload = attach_model_change(
        first.payload, before=json.loads(before), after=json.loads(after or "null")
    )
    return [replace(first, payload=payload), *items[1:]]


def _input_outcomes(count: int) -> list[InboxOutcome]:
    return [InboxOutcome.TURN, *[InboxOutcome.MERGED] * (count - 1)]


def ensure_open_session(
    t: Tx, lease: Lease, operation: str, session_ids: SessionIdFactory
) -> SessionId:
    """Return the head, reopened if the conversation was closed."""
    head = get_head(t, lease.conversation_id)
    if not head.is_open:
        head = rotate_session(
            t,
            lease,
            operation=operation,
            expected=Head(session=head.id, last_seq=leases.verify_lease_for_write(t, lease)),
            base=build_session_base(t, head.id),
            reason=reasons.REOPEN,
            session_ids=session_ids,
        )
    return head.id


def _insert_turn(t: Tx, lease: Lease, turn: TurnId, trace: str | None) -> None:
    t.execute(
        """
        INSERT INTO turn (id, conversation_id, state, first_seq, started_at, trace_id)
        VALUES ($1, $2, $3, $4, $5, $6)
        """,
        turn,
        lease.conversation_id,
        TurnState.RUNNING.value,
        leases.verify_lease_for_write(t, lease) + 1,
        t.now,
        trace,
    )


def consume_item(
    t: Tx, item: InboxItem, outcome: InboxOutcome, turn: TurnId, *, step: int | None = None
) -> None:
    """Record the outcome of an open item; its entry is appended in the same transaction."""
    changed = t.execute(
        """
        UPDATE inbox SET outcome = $2, turn_id = $3, step = $4, resolved_at = $5
        WHERE id = $1 AND outcome IS NULL
        """,
        item.id,
        outcome.value,
        turn,
        step,
        t.now,
    )
    if not changed:
        raise StoreError(f"inbox item {item.id} was consumed by an owner without the lease")


def may_steer(t: Tx, lease: Lease, *, after: int) -> bool:
    """
    Return whether ``steer_turn`` would find anything now, without writing.

    :raises LeaseLost: if the lease is not held any more
    """
    last_seq = leases.verify_lease(t, lease)
    return last_seq > after or bool(
        select_steering(list_open_items(t, lease.conversation_id), from_millis(t.now))
    )


def steer_turn(  # noqa: PLR0913  (each is needed in the one commit)
    t: Tx,
    lease: Lease,
    session: SessionId,
    turn: TurnId,
    *,
    step: int,
    after: int,
    compose: MessageComposer,
    annotate: DraftAnnotator | None = None,
) -> list[Entry]:
    """
    Append the steering messages to the turn at a step boundary, and return their entries.

    ``after`` is the newest entry that the caller knows: repeating it returns the same.
    Nothing joins a turn that was asked to stop.

    :raises LeaseLost: if the lease is not held any more
    :raises SessionEnded: if the session takes no more entries
    """
    last_seq = leases.verify_lease_for_write(t, lease)
    if last_seq > after:
        newer = read_entries(t, lease.conversation_id, first=after + 1, last=last_seq)
        return [entry for entry in newer if entry.role is Role.USER]
    if get_turn(t, turn).stop is not None:
        return []
    items = select_steering(lock_open_items(t, lease.conversation_id), from_millis(t.now))
    drafts = [compose(item) for item in items]
    if drafts and annotate is not None:
        drafts = annotate(t, session, items, drafts)
    entries = append_entries(t, lease, session, drafts, turn=turn)
    for item in items:
        consume_item(t, item, InboxOutcome.STEERED, turn, step=step)
    return entries


class StepRecord(Record):
    """Request data of a model response, stored beside its text."""

    request: UsageRecord


def store_step(  # noqa: PLR0913  (each is needed in the one commit)
    t: Tx,
    lease: Lease,
    session: SessionId,
    turn: TurnId,
    drafts: Sequence[NewEntry],
    *,
    step: StepRecord | None = None,
    said: OutboundText | None = None,
    observe: TurnObserver | None = None,
) -> list[Entry]:
    """
    Append a model's response and count the step; repeating it changes nothing.

    The text ``said`` beside tool calls becomes a delivery of its own. ``observe`` is called
    if the step was counted.

    :raises LeaseLost: if the lease is not held any more
    :raises SessionEnded: if the session takes no more entries
    """
    before = leases.verify_lease_for_write(t, lease)
    entries = append_entries(t, lease, session, drafts, turn=turn)
    if entries and entries[-1].seq > before:
        _count_step(t, turn, step)
        if said is not None:
            deliver_turn_text(t, lease.conversation_id, turn, said, seq=entries[-1].seq)
        if observe is not None:
            observe(t, get_turn(t, turn))
    return entries


def _count_step(t: Tx, turn: TurnId, step: StepRecord | None) -> None:
    row = t.fetch_one(
        "UPDATE turn SET steps = steps + 1 WHERE id = $1 RETURNING conversation_id, steps", turn
    )
    assert row is not None
    conversation, number = row
    if step is None:
        return
    t.execute("UPDATE turn SET model = $2 WHERE id = $1", turn, step.request.model)
    record_usage(t, conversation, step.request, turn=turn, step=number)


def store_request(
    t: Tx,
    lease: Lease,
    session: SessionId,
    turn: TurnId,
    draft: NewEntry,
    *,
    retries: Mapping[str, int] | None,
) -> list[Entry]:
    """
    Append the next request to a model, and store its retry counts.

    ``retries`` of ``None`` are unchanged. Repeating it changes nothing.

    :raises LeaseLost: if the lease is not held any more
    :raises SessionEnded: if the session takes no more entries
    """
    stored = append_entries(t, lease, session, [draft], turn=turn)
    if retries is not None:
        t.execute("UPDATE turn SET retries = $2 WHERE id = $1", turn, json.dumps(retries))
    return stored


def store_notice(
    t: Tx, lease: Lease, session: SessionId, turn: TurnId, draft: NewEntry, *, said: OutboundText
) -> list[Entry]:
    """
    Append and deliver a notice to the user, outside the context, while the turn continues.

    :raises LeaseLost: if the lease is not held any more
    :raises SessionEnded: if the session takes no more entries
    """
    entries = append_entries(t, lease, session, [draft], turn=turn)
    deliver_turn_text(t, lease.conversation_id, turn, said, seq=entries[-1].seq)
    return entries


def store_attempt(
    t: Tx,
    lease: Lease,
    session: SessionId,
    turn: TurnId,
    draft: NewEntry,
) -> list[Entry]:
    """
    Append a failed request, outside the context; repeating it changes nothing.

    :raises LeaseLost: if the lease is not held any more
    :raises SessionEnded: if the session takes no more entries
    """
    return append_entries(t, lease, session, [draft], turn=turn)


def suspend_turn(t: Tx, lease: Lease, turn: TurnId) -> Turn:
    """
    Suspend a turn that has only open approvals left, and release the lease.

    Repeating it while the turn waits changes nothing and returns the turn.

    :raises LeaseLost: if the lease is not held any more
    """
    found = get_turn(t, turn)
    if found.state is TurnState.WAITING:
        return found
    leases.verify_lease_for_write(t, lease)
    set_turn_state(t, found, TurnState.WAITING)
    leases.release_lease(t, lease)
    return get_turn(t, turn)


def set_turn_state(t: Tx, turn: Turn, state: TurnState) -> None:
    """
    Change the state of a turn.

    :raises InvalidTransition: if the turn cannot change to that state
    """
    check_transition("turn", TRANSITIONS, turn.state, state)
    t.execute("UPDATE turn SET state = $2 WHERE id = $1", turn.id, state.value)


def finish_turn(  # noqa: PLR0913  (each is a column of its own)
    t: Tx,
    lease: Lease,
    session: SessionId,
    turn: TurnId,
    outcome: TurnOutcome,
    *,
    drafts: Sequence[NewEntry] = (),
    error: str | None = None,
    error_code: str | None = None,
    deliveries: Sequence[NewDelivery] = (),
    said: OutboundText | None = None,
    step: StepRecord | None = None,
    taken_back: bool = False,
    observe: TurnObserver | None = None,
) -> Turn:
    """
    Store the turn's last entries, outcome and deliveries, and release the lease.

    ``observe`` is called last, in the same commit. Repeating it for a turn that is done changes
    nothing and returns it.

    :raises TurnRolledBack: if a message has rolled the turn back: roll it back instead
    :raises LeaseLost: if the lease is not held any more
    :raises SessionEnded: if there are entries and the session takes no more
    """
    found = get_turn(t, turn)
    if found.state is TurnState.DONE:
        return found
    leases.verify_lease_for_write(t, lease)
    if found.stop is StopRequest.ROLLBACK and not taken_back:
        raise TurnRolledBack(turn)
    check_transition("turn", TRANSITIONS, found.state, TurnState.DONE)
    entries = append_entries(t, lease, session, drafts, turn=turn)
    if step is not None:
        _count_step(t, turn, step)
    if not _close_turn(t, turn, outcome, error, error_code, taken_back=taken_back):
        raise TurnRolledBack(turn)  # since the read
    deny_open_approvals(t, turn, note=SystemNote.TURN_ENDED)
    seq = entries[-1].seq if entries else None
    add_deliveries(t, lease, turn, deliveries, seq=seq)
    if said is not None:
        failed = outcome is TurnOutcome.FAILED
        deliver_turn_text(t, lease.conversation_id, turn, said, seq=seq, failed=failed)
    if not taken_back:
        close_previews(t, lease.conversation_id, turn)
        leases.release_lease(t, lease)
    done = get_turn(t, turn)
    if observe is not None:
        observe(t, done)
    return done


def _close_turn(
    t: Tx,
    turn: TurnId,
    outcome: TurnOutcome,
    error: str | None,
    error_code: str | None,
    *,
    taken_back: bool,
) -> bool:
    """Store the outcome; ``False`` if a message rolls the turn back."""
    closed = t.execute(
        """
        UPDATE turn
        SET state = $2, outcome = $3, error = $4, error_code = $5, finished_at = $6
        WHERE id = $1 AND ($7 = 1 OR COALESCE(stop, '') <> $8)
        """,
        turn,
        TurnState.DONE.value,
        outcome.value,
        error,
        error_code,
        t.now,
        int(taken_back),
        StopRequest.ROLLBACK.value,
    )
    return bool(closed)
