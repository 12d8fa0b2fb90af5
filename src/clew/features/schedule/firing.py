"""
Firing: a slot and the acceptance of its input are one commit.

Any gateway may try. The primary key of the fire decides, so a slot is accepted once, whatever
the number of gateways, crashes and clocks.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from clew.clock import from_millis, to_millis
from clew.core.channel_events import OutboundMessage
from clew.core.completion import Cause, make_completion_id, write_payload
from clew.core.delivery import DeliveryKind
from clew.core.double_text import DoubleText
from clew.core.ids import ConversationId, DeliveryId
from clew.core.run_report import with_report
from clew.errors import NotFound
from clew.features.schedule import access
from clew.features.schedule.jobs import (
    JobKind,
    JobPlace,
    JobState,
    QuietRule,
    ScheduledJob,
    find_running_fire,
    lock_job,
    make_fire_id,
    set_next_slot,
)
from clew.features.schedule.planning import (
    FireState,
    PlannedSlot,
    SkipReason,
    plan_due_slots,
)
from clew.features.schedule.runs import get_run_state, settle_run
from clew.features.schedule.wording import format_task, format_title
from clew.record import Record, replace
from clew.store.transactions import conversations
from clew.store.transactions.completions import accept_direct_input, sum_unattended_tokens
from clew.store.transactions.deliveries import deliver_to_chat
from clew.store.transactions.settings import set_agent_of_route

if TYPE_CHECKING:
    from datetime import datetime

    from clew.core.ids import OwnerId, SessionIdFactory
    from clew.features.schedule.access import Policies
    from clew.features.schedule.planning import QuietHours
    from clew.store.contract import Tx

#: Slots of one job in one commit: a job of each minute may have missed days of them.
_MAX_SLOTS: Final = 200


class FiringRules(Record):
    """Settings of firing."""

    quiet_hours: QuietHours | None
    #: Tokens of a day, for each scope.
    tokens: int
    session_ids: SessionIdFactory
    #: The process, for the commands that it runs.
    owner: OwnerId
    policies: Policies


class CommandRun(Record):
    """A command, or something to look at, for the process which fired it."""

    job: ScheduledJob
    slot: int


def fire_job(t: Tx, job_id: str, rules: FiringRules) -> CommandRun | None:
    """Record the due slots of a job, and start the run of those that have one."""
    job = lock_job(t, job_id)
    if job is None or not (job.asked_at is not None or _is_due(t, job)):
        return None
    if (running := find_running_fire(t, job.id)) is not None:
        settle_run(t, job, running)
    if access.is_excluded(t, job, rules.policies):
        access.pause_excluded(t, job)
        return None
    if job.asked_at is not None:
        return _run_out_of_turn(t, job, rules)
    return _fire_due_slots(t, job, rules)


def _is_due(t: Tx, job: ScheduledJob) -> bool:
    return job.state is JobState.ON and job.due_at is not None and job.due_at <= t.now


def _run_out_of_turn(t: Tx, job: ScheduledJob, rules: FiringRules) -> CommandRun | None:
    """Start the run that somebody asked for, at a slot of its own."""
    assert job.asked_at is not None
    t.execute("UPDATE schedule_job SET asked_at = NULL WHERE id = $1", job.id)
    # Among the slots of the schedule it stays before the next one.
    slot = min(job.asked_at, (job.next_slot or job.asked_at + 1) - 1)
    planned = PlannedSlot(from_millis(slot), _find_obstacle(t, job, rules))
    return _fire_slot(t, job, planned, rules)


def _fire_due_slots(t: Tx, job: ScheduledJob, rules: FiringRules) -> CommandRun | None:
    now = from_millis(t.now)
    assert job.next_slot is not None
    quiet = None if job.quiet is QuietRule.IGNORE else rules.quiet_hours
    if quiet is not None and job.quiet is QuietRule.HOLD:
        end = quiet.find_end(now)
        if end is not None and quiet.find_end(from_millis(job.next_slot)) is not None:
            set_next_slot(t, job, job.next_slot, due_at=to_millis(end))
            return None
    due = plan_due_slots(
        job.schedule,
        from_millis(job.next_slot),
        now=now,
        catch_up=job.catch_up,
        limit=_MAX_SLOTS,
        held_until=None if quiet is None or job.quiet is QuietRule.SKIP else quiet.find_end,
    )
    # Several that make up for missed ones do not get in each other's way.
    obstacle = _find_obstacle(t, job, rules)
    commands = [
        _fire_slot(t, job, _skip(planned, job, quiet, obstacle), rules)
        for planned in due.slots
        if not _is_over(job, planned.slot)
    ]
    _set_next(t, job, due.next_slot)
    return next((one for one in commands if one is not None), None)


def _find_obstacle(t: Tx, job: ScheduledJob, rules: FiringRules) -> SkipReason | None:
    """Return why no slot can start a run now."""
    running = find_running_fire(t, job.id)
    if running is not None:
        is_waiting = get_run_state(t, running).is_waiting
        return SkipReason.WAITING if is_waiting else SkipReason.RUNNING
    if job.kind is JobKind.MESSAGE:
        return None
    return SkipReason.BUDGET if sum_unattended_tokens(t, job.scope) >= rules.tokens else None


def _skip(
    planned: PlannedSlot, job: ScheduledJob, quiet: QuietHours | None, obstacle: SkipReason | None
) -> PlannedSlot:
    """Return the slot with the reason for which it starts no run, if there is one."""
    if planned.reason is None and job.quiet is QuietRule.SKIP and quiet is not None:
        obstacle = SkipReason.QUIET if quiet.find_end(planned.slot) else obstacle
    return planned if obstacle is None else replace(planned, reason=planned.reason or obstacle)


def _is_over(job: ScheduledJob, slot: datetime) -> bool:
    return job.until_at is not None and to_millis(slot) > job.until_at


def _set_next(t: Tx, job: ScheduledJob, slot: datetime | None) -> None:
    """Set the next slot, unless the job has had all of its runs."""
    if job.max_runs is not None:
        runs = t.fetch_value(
            "SELECT count(*) FROM schedule_fire WHERE job = $1 AND state NOT IN"
            " ('skipped', 'missed')",
            job.id,
        )
        slot = None if runs >= job.max_runs else slot
    is_over = slot is None or _is_over(job, slot)
    set_next_slot(t, job, None if slot is None or is_over else to_millis(slot))


def _fire_slot(
    t: Tx, job: ScheduledJob, planned: PlannedSlot, rules: FiringRules
) -> CommandRun | None:
    """Record a slot and start its run; return the command that is to be run, if it is one."""
    slot, reason = to_millis(planned.slot), planned.reason
    if reason is not None:
        missed = reason in (SkipReason.DOWN, SkipReason.LATER)
        state = FireState.MISSED if missed else FireState.SKIPPED
        _insert_fire(t, job, slot, state, reason=reason.value)
        return None
    ended = FireState.DONE if job.kind is JobKind.MESSAGE else FireState.STARTED
    if not _insert_fire(t, job, slot, ended, owner=rules.owner):
        return None
    if job.kind.is_polled:
        return CommandRun(job=job, slot=slot)
    if job.kind is JobKind.MESSAGE:
        _deliver_message(t, job, slot)
    else:
        text = format_task(job, slot, t.now)
        start_turn(t, job, slot, session_ids=rules.session_ids, text=text)
    return None


def _insert_fire(
    t: Tx,
    job: ScheduledJob,
    slot: int,
    state: FireState,
    *,
    reason: str | None = None,
    owner: OwnerId | None = None,
) -> bool:
    """Store what became of a slot; ``False`` if that is stored already."""
    ended_at = None if state is FireState.STARTED else t.now
    return bool(
        t.execute(
            """
            INSERT INTO schedule_fire (job, slot, state, reason, conversation, owner, at, ended_at)
            VALUES ($1, $2, $3, $4, $5, $6, $7, $8) ON CONFLICT (job, slot) DO NOTHING
            """,
            job.id,
            slot,
            state.value,
            reason,
            job.conversation,
            owner,
            t.now,
            ended_at,
        )
    )


def start_turn(
    t: Tx,
    job: ScheduledJob,
    slot: int,
    *,
    session_ids: SessionIdFactory,
    text: str,
    untrusted: bool = False,
) -> None:
    """
    Accept the input of a slot, which begins a turn, or joins one where it was made.

    ``untrusted``: strangers may have written a part of the text.
    """
    name = make_fire_id(job.id, slot)
    conversation = _open_conversation(t, job, name, session_ids)
    payload = write_payload(Cause(kind="job", id=job.id), [job.payload])
    item = make_completion_id(name)
    accept_direct_input(
        t,
        item,
        text,
        with_report(payload, quiet_if=job.quiet_if),
        conversation=conversation,
        double_text=DoubleText.STEER if job.place is JobPlace.HERE else DoubleText.QUEUE,
        answer_to=job.route,
        untrusted=untrusted or job.untrusted,
    )
    t.execute(
        "UPDATE schedule_fire SET input = $3, conversation = $4 WHERE job = $1 AND slot = $2",
        job.id,
        slot,
        item,
        conversation,
    )


def _open_conversation(
    t: Tx, job: ScheduledJob, name: str, session_ids: SessionIdFactory
) -> ConversationId:
    """Return the conversation of a run, which a deletion cannot take away until the commit."""
    if job.conversation is not None:
        # A shared lock, as with every input: a deletion waits for it.
        head = "SELECT 1 FROM head WHERE conversation_id = $1 @SHARE"
        if t.fetch_one(head, job.conversation) is None:
            raise NotFound("conversation", job.conversation)
        return job.conversation
    conversation = ConversationId(f"cnv_{name}")
    set_agent_of_route(t, conversation, job.route)
    conversations.open_conversation(
        t, conversation, scope=job.scope, session_ids=session_ids, adhoc=True
    )
    return conversation


def _deliver_message(t: Tx, job: ScheduledJob, slot: int) -> None:
    assert job.conversation is not None
    deliver_to_chat(
        t,
        job.conversation,
        job.route,
        OutboundMessage(text=format_title(job, job.task), markup=False),
        id=DeliveryId(f"dlv_{make_fire_id(job.id, slot)}"),
        kind=DeliveryKind.NOTICE,
    )
