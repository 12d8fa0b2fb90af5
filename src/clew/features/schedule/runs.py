"""Runs: how a fire has ended, and what people are told of failures."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.clock import from_millis
from clew.core.channel_events import OutboundMessage
from clew.core.delivery import DeliveryKind
from clew.core.ids import DeliveryId
from clew.core.inbox import InboxOutcome
from clew.core.turn import TurnOutcome, TurnState
from clew.features.schedule.jobs import (
    FIRES,
    find_chat_conversation,
    lock_job,
    make_fire_id,
)
from clew.features.schedule.planning import FireState, SkipReason
from clew.features.schedule.wording import format_failure, format_recovery
from clew.features.schedule.zones import find_zone, to_local
from clew.record import Record
from clew.store.transactions import inbox, workspace_writes
from clew.store.transactions.deliveries import deliver_to_chat

if TYPE_CHECKING:
    from clew.core.ids import TurnId
    from clew.core.turn import Turn
    from clew.features.schedule.jobs import JobFire, ScheduledJob
    from clew.store.contract import Tx


class RunState(Record):
    """Progress of a run; without a state it goes on."""

    state: FireState | None = None
    reason: str | None = None
    turn: TurnId | None = None
    #: Somebody has to answer a question.
    is_waiting: bool = False


def get_run_state(t: Tx, fire: JobFire) -> RunState:
    """Return how far the run of a started fire is."""
    if fire.input is None:
        # A command, which the process that began it runs.
        lost = fire.owner is not None and not t.is_alive(fire.owner)
        return RunState(state=FireState.FAILED, reason="interrupted") if lost else RunState()
    item = inbox.find_item(t, fire.input)
    if item is None:
        return RunState(state=FireState.FAILED, reason="deleted")
    if item.outcome in (InboxOutcome.CANCELLED, InboxOutcome.REJECTED):
        return RunState(state=FireState.FAILED, reason=item.note or "cancelled")
    if item.outcome is InboxOutcome.EXECUTED:
        # It was stored without a turn: the tokens of the day were spent meanwhile.
        return RunState(state=FireState.SKIPPED, reason=SkipReason.BUDGET.value)
    turn = inbox.find_turn_of_item(t, fire.input)
    if turn is None:
        return RunState()
    return _describe_turn(turn)


def _describe_turn(turn: Turn) -> RunState:
    if turn.state is not TurnState.DONE:
        return RunState(turn=turn.id, is_waiting=turn.state is TurnState.WAITING)
    if turn.outcome is TurnOutcome.FAILED:
        return RunState(state=FireState.FAILED, reason=turn.error or "failed", turn=turn.id)
    stopped = turn.outcome is TurnOutcome.CANCELLED
    return RunState(state=FireState.DONE, reason="stopped" if stopped else None, turn=turn.id)


def settle_run(t: Tx, job: ScheduledJob, fire: JobFire) -> bool:
    """Record the end of a run, and tell of failures; ``False`` if it goes on."""
    found = get_run_state(t, fire)
    if found.state is None:
        return False
    return end_run(t, job, fire.slot, found)


def end_run(t: Tx, job: ScheduledJob, slot: int, found: RunState) -> bool:
    """Record how a run has ended, once; people are told of failures in the same commit."""
    assert found.state is not None
    ended = t.execute(
        """
        UPDATE schedule_fire SET state = $3, reason = $4, turn = $5, ended_at = $6
        WHERE job = $1 AND slot = $2 AND state = 'started'
        """,
        job.id,
        slot,
        found.state.value,
        found.reason,
        found.turn,
        t.now,
    )
    if not ended:
        return False
    if job.command is not None:
        # Its process may have died before it could store that.
        at = t.now + workspace_writes.CLOCK_SKEW
        workspace_writes.end_program(t, make_fire_id(job.id, slot), at=at, untrusted=False)
    if found.state is FireState.FAILED:
        _record_failure(t, job, slot, found.reason or "")
    elif found.state is FireState.DONE and job.failures:
        _record_recovery(t, job, slot)
    return True


def _record_failure(t: Tx, job: ScheduledJob, slot: int, error: str) -> None:
    failures = job.failures + 1
    if should_tell(job, t.now):
        _tell(t, job, slot, format_failure(job, error, failures=failures))
        t.execute("UPDATE schedule_job SET told_at = $2 WHERE id = $1", job.id, t.now)
    t.execute("UPDATE schedule_job SET failures = $2 WHERE id = $1", job.id, failures)


def should_tell(job: ScheduledJob, now: int) -> bool:
    """Return whether people are told of a failure: the first in a row, then once a day."""
    if not job.failures or job.told_at is None:
        return True
    zone = find_zone(job.zone)
    days = [to_local(from_millis(at), zone).date() for at in (job.told_at, now)]
    return days[0] < days[1]


def _record_recovery(t: Tx, job: ScheduledJob, slot: int) -> None:
    if job.told_at is not None:
        _tell(t, job, slot, format_recovery(job))
    t.execute("UPDATE schedule_job SET failures = 0, told_at = NULL WHERE id = $1", job.id)


def _tell(t: Tx, job: ScheduledJob, slot: int, text: str) -> None:
    own = "SELECT conversation FROM schedule_fire WHERE job = $1 AND slot = $2"
    # What was looked at in vain has begun no conversation.
    conversation = t.fetch_value(own, job.id, slot) or find_chat_conversation(t, job)
    if conversation is not None:
        deliver_to_chat(
            t,
            conversation,
            job.route,
            OutboundMessage(text=text, markup=False),
            id=DeliveryId(f"dlv_{job.id}_{slot}"),
            kind=DeliveryKind.NOTICE,
        )


def list_ended_runs(t: Tx, *, limit: int) -> list[tuple[str, int]]:
    """Return the started fires whose run has ended: job and slot."""
    return [
        (job, slot)
        for job, slot in t.fetch_all(
            """
            SELECT f.job, f.slot FROM schedule_fire f
            LEFT JOIN inbox i ON i.id = f.input LEFT JOIN turn n ON n.id = i.turn_id
            WHERE f.state = 'started' AND (
                (f.input IS NOT NULL AND i.id IS NULL) OR n.state = 'done'
                OR i.outcome IN ('cancelled', 'rejected', 'executed')
            )
            ORDER BY f.slot LIMIT $1
            """,
            limit,
        )
    ]


def list_started_commands(t: Tx) -> list[tuple[str, int]]:
    """Return the fires whose command a dead process was running: job and slot."""
    return [
        (job, slot)
        for job, slot, owner in t.fetch_all(
            "SELECT job, slot, owner FROM schedule_fire"
            " WHERE state = 'started' AND input IS NULL AND owner IS NOT NULL"
        )
        if not t.is_alive(owner)
    ]


def settle_slot(t: Tx, job_id: str, slot: int) -> None:
    """Record the end of the run of a slot."""
    job = lock_job(t, job_id)
    fire = FIRES.fetch_one(t, "WHERE job = $1 AND slot = $2 AND state = 'started'", job_id, slot)
    if job is not None and fire is not None:
        settle_run(t, job, fire)


def is_started(t: Tx, job: ScheduledJob, slot: int) -> bool:
    """Return whether the run of a slot goes on."""
    return t.exists(
        "SELECT 1 FROM schedule_fire WHERE job = $1 AND slot = $2 AND state = 'started'",
        job.id,
        slot,
    )
