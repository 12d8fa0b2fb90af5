"""Turns: beginning or resuming one, its steps, waiting, and its end."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from clew.clock import from_millis
from clew.core import session as reasons
from clew.core.double_text import RunCommand, StartTurn, next_work, select_steering
from clew.core.entry import Entry, NewEntry, Role
from clew.core.inbox import InboxItem, InboxOutcome
from clew.core.model_changed import attach_model_change
from clew.core.moves import check_transition
from clew.core.session import Head
from clew.core.turn import TRANSITIONS, StopRequest, Turn, TurnOutcome, TurnState
from clew.errors import LeaseLost, StoreError, TurnRolledBack
from clew.store.transactions import leases
from clew.store.transactions.approvals import deny_open
from clew.store.transactions.context import session_base
from clew.store.transactions.deliveries import add_deliveries, deliver, end_previews
from clew.store.transactions.entries import append, entries_between
from clew.store.transactions.inbox import line, locked_line
from clew.store.transactions.sessions import get_head, rotate
from clew.store.transactions.settings import MODEL, MODEL_BEFORE, get_setting, take_setting
from clew.store.transactions.stops import get_turn, last_done_turn, unfinished_turn
from clew.store.transactions.usage import Request, record_usage

if TYPE_CHECKING:
    from datetime import timedelta

    from clew.core.delivery import NewDelivery, OutboundText
    from clew.core.ids import ConversationId, OwnerId, SessionId, SessionIdFactory, TurnId
    from clew.core.lease import Lease
    from clew.core.route import RouteKey
    from clew.store.contract import Tx

#: Makes the user's message of an inbox item, the same each time; pure.
Compose = Callable[[InboxItem], NewEntry]


@dataclass(frozen=True, kw_only=True, slots=True)
class Begun:
    """What the new holder of a lease has to do: go on with a turn, or carry out one item."""

    lease: Lease
    turn: Turn | None
    #: The turn had begun before; its context says what is next.
    resumed: bool = False
    #: A command, expiry or completion at the front of the line, where there is no turn.
    item: InboxItem | None = None
    #: The route of the turn's first input: who may answer its questions.
    route: RouteKey | None = None


def begin(
    t: Tx,
    conversation: ConversationId,
    *,
    owner: OwnerId,
    turn: TurnId,
    compose: Compose,
    session_ids: SessionIdFactory,
    duration: timedelta = leases.DURATION,
) -> Begun | None:
    """
    Take the lease and the next work of a conversation; ``None``, and no lease, if there is none.

    An unfinished turn goes on (counted if its owner was lost). Else the items at the front of the
    line are consumed by their double-text rule: messages become the first entries of turn ``turn``,
    a closed conversation being reopened first. Taking, consuming and appending are one commit.
    Repeating it as the same owner returns the same turn.

    :raises NotFound: if there is no such conversation
    :raises LeaseHeld: while another living owner holds the lease
    """
    acquired = leases.acquire(t, conversation, owner=owner, duration=duration)
    unfinished = unfinished_turn(t, conversation)
    if unfinished is not None:
        begun = _go_on(t, acquired, unfinished)
    else:
        begun = _next(t, acquired.lease, turn, compose, session_ids)
    if begun is None:
        leases.release(t, acquired.lease)
    return begun


def _go_on(t: Tx, acquired: leases.Acquired, turn: Turn) -> Begun | None:
    # A turn that still waits keeps its place: nothing else is begun, also no command.
    if turn.state is TurnState.WAITING:
        if not _may_go_on(t, turn):
            return None
        set_state(t, turn, TurnState.RUNNING)
    elif acquired.lost_owner is not None:
        _count_resume(t, turn, acquired.last_seq)
    return Begun(
        lease=acquired.lease, turn=get_turn(t, turn.id), resumed=True, route=_route(t, turn.id)
    )


def _route(t: Tx, turn: TurnId) -> RouteKey | None:
    row = t.one("SELECT route FROM inbox WHERE turn_id = $1 ORDER BY n LIMIT 1", turn)
    return None if row is None else row[0]


def _may_go_on(t: Tx, turn: Turn) -> bool:
    """Whether a waiting turn has what it waits for: every answer, a stop, or the person's word."""
    if turn.stop is not None:
        return True
    if select_steering(line(t, turn.conversation_id), from_millis(t.now)):
        deny_open(t, turn.id, note="the user wrote instead")
        return True
    row = t.one("SELECT count(*) FROM approval WHERE turn_id = $1 AND state = 'open'", turn.id)
    assert row is not None
    return row[0] == 0


def _count_resume(t: Tx, turn: Turn, last_seq: int) -> None:
    # Only resumes without a new entry since count towards giving up.
    t.run(
        """
        UPDATE turn
        SET resumes = CASE WHEN resumed_seq = $2 THEN resumes + 1 ELSE 1 END, resumed_seq = $2
        WHERE id = $1
        """,
        turn.id,
        last_seq,
    )


def outlasted(t: Tx, lease: Lease, turn: TurnId) -> bool:
    """
    The turn outlasted its lease: let the lease go, and count this as the loss of its owner.

    ``False``, and nothing is changed, if another owner has the lease or the turn let it go.
    """
    try:
        last_seq = leases.hold(t, lease)
    except LeaseLost:
        return False
    _count_resume(t, get_turn(t, turn), last_seq)
    leases.release(t, lease)
    return True


def _next(
    t: Tx,
    lease: Lease,
    turn: TurnId,
    compose: Compose,
    session_ids: SessionIdFactory,
) -> Begun | None:
    match next_work(locked_line(t, lease.conversation_id), from_millis(t.now)):
        case StartTurn(items=items):
            session = _open_session(t, lease, turn, session_ids)
            _insert_turn(t, lease, turn)
            told = _told_of_the_model(t, lease.conversation_id, items)
            append(t, lease, session, [compose(item) for item in told], turn=turn)
            for item, outcome in zip(items, _outcomes(len(items)), strict=True):
                consume(t, item, outcome, turn)
            return Begun(lease=lease, turn=get_turn(t, turn), route=items[0].route)
        case RunCommand(item=item):
            return Begun(lease=lease, turn=None, item=item)
        case _:
            return None


def _told_of_the_model(
    t: Tx, conversation: ConversationId, items: Sequence[InboxItem]
) -> Sequence[InboxItem]:
    """Have the first message say that the model was changed since the last answer, if it was."""
    if get_setting(t, conversation, MODEL_BEFORE) is None:
        return items
    before = take_setting(t, conversation, MODEL_BEFORE)
    after = get_setting(t, conversation, MODEL)
    if before is None or after in (None, before) or last_done_turn(t, conversation) is None:
        return items
    first = items[0]
    payload = attach_model_change(
        first.payload, before=json.loads(before), after=json.loads(after or "null")
    )
    return [replace(first, payload=payload), *items[1:]]


def _outcomes(count: int) -> list[InboxOutcome]:
    return [InboxOutcome.TURN, *[InboxOutcome.MERGED] * (count - 1)]


def _open_session(t: Tx, lease: Lease, turn: TurnId, session_ids: SessionIdFactory) -> SessionId:
    """The head, reopened if the conversation was closed."""
    head = get_head(t, lease.conversation_id)
    if not head.is_open:
        head = rotate(
            t,
            lease,
            operation=f"{turn}:reopen",
            expected=Head(session=head.id, last_seq=leases.hold(t, lease)),
            base=session_base(t, head.id),
            reason=reasons.REOPEN,
            session_ids=session_ids,
        )
    return head.id


def _insert_turn(t: Tx, lease: Lease, turn: TurnId) -> None:
    t.run(
        """
        INSERT INTO turn (id, conversation_id, state, first_seq, started_at)
        VALUES ($1, $2, $3, $4, $5)
        """,
        turn,
        lease.conversation_id,
        TurnState.RUNNING.value,
        leases.hold(t, lease) + 1,
        t.now,
    )


def consume(
    t: Tx, item: InboxItem, outcome: InboxOutcome, turn: TurnId, *, step: int | None = None
) -> None:
    """Record what became of an open item; its entry is appended in the same transaction."""
    changed = t.run(
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
        raise StoreError(f"inbox item {item.id} was consumed by somebody without the lease")


def may_steer(t: Tx, lease: Lease, *, after: int) -> bool:
    """
    Whether ``steer`` would find anything now: a look that writes nothing.

    :raises LeaseLost: if the lease is not held any more
    """
    last_seq = leases.held(t, lease)
    return last_seq > after or bool(
        select_steering(line(t, lease.conversation_id), from_millis(t.now))
    )


def steer(
    t: Tx,
    lease: Lease,
    session: SessionId,
    turn: TurnId,
    *,
    step: int,
    after: int,
    compose: Compose,
) -> list[Entry]:
    """
    Let the messages that steer join the turn at this step boundary, and return their entries.

    ``after`` is the newest entry that the caller knows: repeating it returns the same. Nothing
    joins a turn that was asked to stop.

    :raises LeaseLost: if the lease is not held any more
    :raises SessionEnded: if the session takes no more entries
    """
    last_seq = leases.hold(t, lease)
    if last_seq > after:
        newer = entries_between(t, lease.conversation_id, first=after + 1, last=last_seq)
        return [entry for entry in newer if entry.role is Role.USER]
    if get_turn(t, turn).stop is not None:
        return []
    items = select_steering(locked_line(t, lease.conversation_id), from_millis(t.now))
    entries = append(t, lease, session, [compose(item) for item in items], turn=turn)
    for item in items:
        consume(t, item, InboxOutcome.STEERED, turn, step=step)
    return entries


@dataclass(frozen=True, kw_only=True, slots=True)
class Step:
    """What a model's response was made of, beside its text."""

    request: Request
    #: As rendered for the session's first request; kept with the session.
    instructions: str | None


def store_step(
    t: Tx,
    lease: Lease,
    session: SessionId,
    turn: TurnId,
    drafts: Sequence[NewEntry],
    *,
    step: Step | None = None,
    said: OutboundText | None = None,
) -> list[Entry]:
    """
    Append a model's response and count the step; repeating it changes nothing.

    What it ``said`` beside its calls is a delivery of its own.

    :raises LeaseLost: if the lease is not held any more
    :raises SessionEnded: if the session takes no more entries
    """
    before = leases.hold(t, lease)
    entries = append(t, lease, session, drafts, turn=turn)
    if entries and entries[-1].seq > before:
        _count_step(t, session, turn, step)
        if said is not None:
            deliver(t, lease.conversation_id, turn, said, seq=entries[-1].seq)
    return entries


def _count_step(t: Tx, session: SessionId, turn: TurnId, step: Step | None) -> None:
    row = t.one(
        "UPDATE turn SET steps = steps + 1 WHERE id = $1 RETURNING conversation_id, steps", turn
    )
    assert row is not None
    if step is None:
        return
    t.run("UPDATE turn SET model = $2 WHERE id = $1", turn, step.request.model)
    record_usage(t, row[0], step.request, turn=turn, step=row[1])
    _keep_instructions(t, session, step.instructions)


def _keep_instructions(t: Tx, session: SessionId, instructions: str | None) -> None:
    if instructions is not None:
        t.run(
            "UPDATE session SET instructions = $2 WHERE id = $1 AND instructions IS NULL",
            session,
            instructions,
        )


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
    Append what a model is to be sent next, and with it how often it was told what is wrong.

    ``retries`` of ``None`` are as they were. Repeating it changes nothing.

    :raises LeaseLost: if the lease is not held any more
    :raises SessionEnded: if the session takes no more entries
    """
    stored = append(t, lease, session, [draft], turn=turn)
    if retries is not None:
        t.run("UPDATE turn SET retries = $2 WHERE id = $1", turn, json.dumps(retries))
    return stored


def store_notice(
    t: Tx, lease: Lease, session: SessionId, turn: TurnId, draft: NewEntry, *, said: OutboundText
) -> list[Entry]:
    """
    Append, outside the context, what a person is told while the turn goes on.

    :raises LeaseLost: if the lease is not held any more
    :raises SessionEnded: if the session takes no more entries
    """
    entries = append(t, lease, session, [draft], turn=turn)
    deliver(t, lease.conversation_id, turn, said, seq=entries[-1].seq)
    return entries


def store_attempt(
    t: Tx,
    lease: Lease,
    session: SessionId,
    turn: TurnId,
    draft: NewEntry,
    *,
    instructions: str | None = None,
) -> list[Entry]:
    """
    Append, outside the context, that a request failed; repeating it changes nothing.

    ``instructions`` are those that it was sent with: from now on they are the session's.

    :raises LeaseLost: if the lease is not held any more
    :raises SessionEnded: if the session takes no more entries
    """
    stored = append(t, lease, session, [draft], turn=turn)
    _keep_instructions(t, session, instructions)
    return stored


def wait(t: Tx, lease: Lease, turn: TurnId) -> Turn:
    """
    Only approvals are open: the turn waits for them, and the lease is let go.

    Repeating it while the turn waits changes nothing and returns it.

    :raises LeaseLost: if the lease is not held any more
    """
    found = get_turn(t, turn)
    if found.state is TurnState.WAITING:
        return found
    leases.hold(t, lease)
    set_state(t, found, TurnState.WAITING)
    leases.release(t, lease)
    return get_turn(t, turn)


def set_state(t: Tx, turn: Turn, state: TurnState) -> None:
    """:raises WrongMove: if a turn cannot go there"""
    check_transition("turn", TRANSITIONS, turn.state, state)
    t.run("UPDATE turn SET state = $2 WHERE id = $1", turn.id, state.value)


def finish(  # noqa: PLR0913  (each is a column of its own)
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
    step: Step | None = None,
    taken_back: bool = False,
) -> Turn:
    """
    Store the turn's last entries, its outcome and its deliveries, and let the lease go.

    Repeating it for a turn that is done changes nothing and returns it.

    :raises TakenBack: if a message has taken the turn back: it is to be rolled back instead
    :raises LeaseLost: if the lease is not held any more
    :raises SessionEnded: if there are entries and the session takes no more
    """
    found = get_turn(t, turn)
    if found.state is TurnState.DONE:
        return found
    leases.hold(t, lease)
    if found.stop is StopRequest.ROLLBACK and not taken_back:
        raise TurnRolledBack(turn)
    check_transition("turn", TRANSITIONS, found.state, TurnState.DONE)
    entries = append(t, lease, session, drafts, turn=turn)
    if step is not None:
        _count_step(t, session, turn, step)
    if not _close(t, turn, outcome, error, error_code, taken_back=taken_back):
        raise TurnRolledBack(turn)  # since we looked
    deny_open(t, turn, note="the turn has ended")
    seq = entries[-1].seq if entries else None
    add_deliveries(t, lease, turn, deliveries, seq=seq)
    if said is not None:
        deliver(t, lease.conversation_id, turn, said, seq=seq)
    if not taken_back:
        end_previews(t, lease.conversation_id, turn)
        leases.release(t, lease)
    return get_turn(t, turn)


def _close(
    t: Tx,
    turn: TurnId,
    outcome: TurnOutcome,
    error: str | None,
    error_code: str | None,
    *,
    taken_back: bool,
) -> bool:
    """``False`` if a message takes the turn back."""
    closed = t.run(
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
