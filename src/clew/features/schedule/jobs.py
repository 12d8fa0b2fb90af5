"""Jobs and their fires in the store."""

from __future__ import annotations

import enum
import hashlib
from typing import TYPE_CHECKING, Final, LiteralString

from clew.core.scope import LOCAL, Scope
from clew.errors import NotFound, UsageError
from clew.features.schedule.parsing import ScheduleText
from clew.features.schedule.planning import CatchUp, FireState
from clew.record import Record
from clew.store.records import RecordQuery
from clew.store.transactions.conversations import resolve_route

if TYPE_CHECKING:
    from clew.core.ids import ConversationId, InboxId, OwnerId, TurnId
    from clew.core.route import RouteKey
    from clew.features.schedule.parsing import ScheduleKind
    from clew.features.schedule.schedules import Schedule
    from clew.store.contract import Tx

#: Jobs of one scope that are not done.
MAX_JOBS: Final = 100


class JobKind(enum.Enum):
    TURN = "turn"  #: the model is asked
    MESSAGE = "message"  #: a text is delivered, without a model
    COMMAND = "command"  #: a command runs; the model is asked if its output changed or it failed
    FILE = "file"  #: a file is read; the model is asked if it changed
    URL = "url"  #: the same with a page of the web

    @property
    def is_polled(self) -> bool:
        """Return whether something is looked at first, and the model asked only about news."""
        return self in (JobKind.COMMAND, JobKind.FILE, JobKind.URL)


class JobPlace(enum.Enum):
    """The conversation of a job's runs."""

    FRESH = "fresh"  #: a new one for each
    OWN = "own"  #: a lasting one of the job
    HERE = "here"  #: the one in which the job was made


class JobState(enum.Enum):
    ON = "on"
    PAUSED = "paused"
    DONE = "done"  #: it has no slot any more


class QuietRule(enum.Enum):
    """Treatment of slots in quiet hours."""

    HOLD = "hold"  #: one run when they end
    SKIP = "skip"
    IGNORE = "ignore"


class ScheduledJob(Record):
    """A job: what to do, when, and where to tell of it."""

    id: str
    title: str
    scope: Scope
    route: RouteKey | None
    place: JobPlace
    conversation: ConversationId | None
    kind: JobKind
    task: str
    command: str | None
    #: The sandbox level at which the command was allowed; ``None``: at any.
    level: str | None
    #: Strangers may have written a part of its texts.
    untrusted: bool
    #: The file or the URL that is watched, and its text when it was last told about.
    watch: str | None
    seen: str | None
    rule: ScheduleKind
    expression: str
    zone: str
    anchor: int
    catch_up: CatchUp
    quiet: QuietRule
    quiet_if: str | None
    payload: str
    state: JobState
    reason: str | None
    until_at: int | None
    max_runs: int | None
    failures: int
    told_at: int | None
    output: str | None
    next_slot: int | None
    due_at: int | None
    asked_at: int | None
    created_at: int

    @property
    def schedule(self) -> Schedule:
        text = ScheduleText(kind=self.rule, expression=self.expression, zone=self.zone)
        return text.load(anchor=self.anchor)


class JobFire(Record):
    """Outcome of one slot of a job."""

    job: str
    slot: int
    state: FireState
    #: Why it was skipped or missed, or how it failed.
    reason: str | None
    conversation: ConversationId | None
    input: InboxId | None
    turn: TurnId | None
    owner: OwnerId | None
    at: int
    ended_at: int | None


_JOB_COLUMNS: LiteralString = (
    "id, title, scope, route, place, conversation, kind, task, command, rule, expression, zone,"
    " anchor, catch_up, quiet, quiet_if, payload, state, reason, until_at, max_runs, failures,"
    " told_at, output, next_slot, due_at, asked_at, created_at, watch, seen, level, untrusted"
)
JOBS: Final = RecordQuery(
    ScheduledJob,
    f"SELECT {_JOB_COLUMNS} FROM schedule_job",
    {
        "place": JobPlace,
        "kind": JobKind,
        "catch_up": CatchUp,
        "quiet": QuietRule,
        "state": JobState,
        "untrusted": bool,
    },
)
FIRES: Final = RecordQuery(
    JobFire,
    "SELECT job, slot, state, reason, conversation, input, turn, owner, at, ended_at"
    " FROM schedule_fire",
    {"state": FireState},
)


def make_fire_id(job: str, slot: int) -> str:
    """Return what the ids of a slot's rows are made of."""
    return f"{slot:012x}{hashlib.sha256(job.encode()).hexdigest()[:16]}"


def store_job(t: Tx, job: ScheduledJob) -> ScheduledJob:
    """
    Store a new job; repeating it returns the first one.

    :raises UsageError: if there are too many
    """
    if (known := JOBS.fetch_one(t, "WHERE id = $1", job.id)) is not None:
        return known
    count = t.fetch_value(
        "SELECT count(*) FROM schedule_job WHERE scope = $1 AND state <> 'done'", job.scope
    )
    if count >= MAX_JOBS:
        raise UsageError(f"there are {count} jobs here already, and {MAX_JOBS} are allowed")
    t.execute(
        f"""
        INSERT INTO schedule_job ({_JOB_COLUMNS})
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18,
                $19, $20, $21, $22, $23, $24, $25, $26, $27, $28, $29, $30, $31, $32)
        ON CONFLICT (id) DO NOTHING
        """,
        job.id, job.title, job.scope, job.route, job.place.value, job.conversation,
        job.kind.value, job.task, job.command, job.rule, job.expression, job.zone, job.anchor,
        job.catch_up.value, job.quiet.value, job.quiet_if, job.payload, job.state.value,
        job.reason, job.until_at, job.max_runs, job.failures, job.told_at, job.output,
        job.next_slot, job.due_at, job.asked_at, job.created_at, job.watch, job.seen,
        job.level, int(job.untrusted),
    )  # fmt: skip
    return get_job(t, job.id)


def get_job(t: Tx, job: str, *, viewer: Scope = LOCAL) -> ScheduledJob:
    """
    Return a job.

    :raises NotFound: if there is none that the viewer may see
    """
    found = JOBS.fetch_one(t, "WHERE id = $1", job)
    if found is None or viewer not in (LOCAL, found.scope):
        raise NotFound("job", job)
    return found


def find_chat_conversation(t: Tx, job: ScheduledJob) -> ConversationId | None:
    """Return a conversation for notices about a job: its own, or that of the chat."""
    if job.conversation is not None or job.route is None:
        return job.conversation
    return resolve_route(t, job.route)


def lock_job(t: Tx, job: str) -> ScheduledJob | None:
    """Return a job that no other process changes until the commit."""
    return JOBS.fetch_one(t, "WHERE id = $1 @LOCK", job)


def list_jobs(t: Tx, *, viewer: Scope, done: bool = False) -> list[ScheduledJob]:
    """Return the jobs that a viewer may see, oldest first; with ``done`` the past ones as well."""
    return JOBS.fetch_all(
        t,
        "WHERE ($1 = 'local' OR scope = $1) AND ($2 = 1 OR state <> 'done')"
        " ORDER BY created_at, id",
        viewer,
        int(done),
    )


def list_fires(t: Tx, job: str, *, limit: int, before: int | None = None) -> list[JobFire]:
    """Return the last fires of a job, newest first; those before a slot."""
    return FIRES.fetch_all(
        t,
        "WHERE job = $1 AND ($2 = 0 OR slot < $2) ORDER BY slot DESC LIMIT $3",
        job,
        before or 0,
        limit,
    )


def find_running_fire(t: Tx, job: str) -> JobFire | None:
    """Return the fire of a job whose run has not ended; the last one."""
    return FIRES.fetch_one(
        t, "WHERE job = $1 AND state = 'started' ORDER BY slot DESC LIMIT 1", job
    )


def pause_job(t: Tx, job: ScheduledJob, *, reason: str) -> None:
    """Stop a job until it is resumed."""
    t.execute(
        """
        UPDATE schedule_job SET state = 'paused', reason = $2, asked_at = NULL
        WHERE id = $1 AND state <> 'done'
        """,
        job.id,
        reason,
    )


def ask_for_run(t: Tx, job: ScheduledJob) -> None:
    """Have a gateway run a job as soon as possible, beside its schedule."""
    t.execute(
        "UPDATE schedule_job SET asked_at = $2 WHERE id = $1 AND asked_at IS NULL", job.id, t.now
    )


def delete_job(t: Tx, job: ScheduledJob) -> None:
    """Delete a job and its fires; runs that have begun go on."""
    t.execute("DELETE FROM schedule_fire WHERE job = $1", job.id)
    t.execute("DELETE FROM schedule_job WHERE id = $1", job.id)


def set_next_slot(
    t: Tx, job: ScheduledJob, next_slot: int | None, *, due_at: int | None = None
) -> None:
    """Set when a job fires next; without a slot it is done."""
    t.execute(
        """
        UPDATE schedule_job SET next_slot = $2, due_at = $3, state = $4 WHERE id = $1
        """,
        job.id,
        next_slot,
        next_slot if due_at is None else due_at,
        (JobState.DONE if next_slot is None else JobState.ON).value,
    )


def find_next_due(t: Tx) -> int | None:
    """Return when the next job is looked at."""
    return t.fetch_value("SELECT min(due_at) FROM schedule_job WHERE state = 'on'")


def list_due_jobs(t: Tx, *, limit: int) -> list[str]:
    """Return jobs that are due, the longest waiting first."""
    return t.fetch_column(
        """
        SELECT id FROM schedule_job
        WHERE (state = 'on' AND due_at <= $1) OR asked_at IS NOT NULL
        ORDER BY due_at, id LIMIT $2
        """,
        t.now,
        limit,
    )
