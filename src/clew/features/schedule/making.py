"""Making of jobs from what people, programs and the model ask for."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from clew.clock import from_millis, to_millis
from clew.core.ids import ConversationId, new_session_id
from clew.core.route import LOCAL as LOCAL_PLATFORM
from clew.core.route import Route
from clew.core.text import truncate_text
from clew.errors import UsageError
from clew.features.schedule.jobs import (
    JOBS,
    JobKind,
    JobPlace,
    JobState,
    QuietRule,
    ScheduledJob,
    store_job,
)
from clew.features.schedule.parsing import parse_schedule
from clew.features.schedule.planning import CatchUp, default_catch_up
from clew.features.schedule.zones import find_zone, to_instant
from clew.record import Record
from clew.store.transactions.conversations import open_conversation
from clew.store.transactions.settings import set_agent_of_route

if TYPE_CHECKING:
    from clew.core.route import RouteKey
    from clew.core.scope import Scope
    from clew.store.contract import Tx

#: Characters of a task or a command, and of a title.
MAX_TASK, MAX_TITLE = 8_000, 60
_WATCHES: Final = (JobKind.FILE, JobKind.URL)
#: Fires that an answer about a job names.
SHOWN_FIRES: Final = 3


class JobOwner(Record):
    """Whose a job is, and where it reports to."""

    scope: Scope
    route: RouteKey | None = None
    #: In which it was asked for.
    conversation: ConversationId | None = None
    #: JSON of who asked for it, as the payload of an input has it.
    payload: str = "{}"
    #: The sandbox level of its turn; ``None`` if an operator asked for it.
    level: str | None = None
    #: The conversation has read text of strangers, which the request may repeat.
    untrusted: bool = False


class JobRequest(Record):
    """A job as it was asked for; what is ``None`` has a default."""

    task: str = ""
    title: str | None = None
    at: str | None = None
    every: str | None = None
    cron: str | None = None
    zone: str
    kind: JobKind = JobKind.TURN
    place: JobPlace | None = None
    command: str | None = None
    #: The file or the URL of the kinds ``file`` and ``url``.
    watch: str | None = None
    catch_up: CatchUp | None = None
    quiet: QuietRule | None = None
    quiet_if: str | None = None
    until: str | None = None
    runs: int | None = None


def find_kind(kind: str, *, watch: str | None) -> JobKind:
    """Return the kind of a job; what is watched tells whether it is a file or a URL."""
    if not watch or kind != JobKind.TURN.value:
        return JobKind(kind)
    is_url = watch.strip().lower().startswith(("http://", "https://"))
    return JobKind.URL if is_url else JobKind.FILE


def create_job(t: Tx, job_id: str, request: JobRequest, owner: JobOwner) -> ScheduledJob:
    """
    Check a request and store its job; repeating it returns the first one.

    :raises UsageError: saying what is wrong and what would do
    """
    if (known := JOBS.fetch_one(t, "WHERE id = $1", job_id)) is not None:
        return known
    now = from_millis(t.now)
    _check_texts(request, owner)
    text = parse_schedule(
        at=request.at, every=request.every, cron=request.cron, zone=request.zone, now=now
    )
    schedule = text.load(anchor=t.now)
    first = schedule.next_after(now)
    assert first is not None
    until_at = None if request.until is None else _parse_until(request.until, request.zone, first)
    place = _find_place(request, owner)
    conversation = owner.conversation if place is JobPlace.HERE else None
    if place is JobPlace.OWN:
        conversation = ConversationId(f"cnv_{job_id.removeprefix('job_')}")
        set_agent_of_route(t, conversation, owner.route)
        open_conversation(t, conversation, scope=owner.scope, session_ids=new_session_id)
    return store_job(
        t,
        ScheduledJob(
            id=job_id,
            title=_make_title(request),
            scope=owner.scope,
            route=owner.route,
            place=place,
            conversation=conversation,
            kind=request.kind,
            task=request.task.strip(),
            command=None if request.command is None else request.command.strip(),
            level=None if request.command is None else owner.level,
            untrusted=owner.untrusted,
            watch=None if request.watch is None else request.watch.strip(),
            seen=None,
            rule=text.kind,
            expression=text.expression,
            zone=text.zone,
            anchor=t.now,
            catch_up=request.catch_up or default_catch_up(schedule, now),
            quiet=request.quiet or _default_quiet(request),
            quiet_if=request.quiet_if or None,
            payload=owner.payload,
            state=JobState.ON,
            reason=None,
            until_at=until_at,
            max_runs=request.runs,
            failures=0,
            told_at=None,
            output=None,
            next_slot=to_millis(first),
            due_at=to_millis(first),
            asked_at=None,
            created_at=t.now,
        ),
    )


def _check_texts(request: JobRequest, owner: JobOwner) -> None:
    if not request.task.strip():
        raise UsageError("a job needs a task: the text that is due")
    texts = {"task": request.task, "command": request.command, "target": request.watch}
    for name, text in ((name, text or "") for name, text in texts.items()):
        if len(text) > MAX_TASK:
            raise UsageError(f"the {name} has {len(text):,} characters, and {MAX_TASK:,} may be")
    if (request.kind is JobKind.COMMAND) != bool((request.command or "").strip()):
        raise UsageError("a command is given with the kind command, and only with it")
    if (request.kind in _WATCHES) != bool((request.watch or "").strip()):
        raise UsageError("a file or a URL is given with the kinds file and url, and only with them")
    if request.kind is JobKind.MESSAGE and not _is_chat(owner.route):
        raise UsageError(
            "a message is delivered to a chat, and there is none here: use the kind turn, whose "
            "answer is kept in a conversation"
        )
    if request.kind.is_polled and request.catch_up is CatchUp.ALL:
        raise UsageError(f"a {request.kind.value} makes up for one missed slot at most: use latest")
    if request.runs is not None and request.catch_up is CatchUp.ALL:
        raise UsageError("a job with a number of runs makes up for one missed slot at most")
    if request.runs is not None and request.runs < 1:
        raise UsageError("a job runs once at least")


def _is_chat(route: RouteKey | None) -> bool:
    return route is not None and Route.parse(route).platform != LOCAL_PLATFORM


def _make_title(request: JobRequest) -> str:
    words = " ".join((request.title or request.task).split())
    return truncate_text(words, MAX_TITLE)


def _find_place(request: JobRequest, owner: JobOwner) -> JobPlace:
    """Return where a job runs; reminders and messages where they were asked for."""
    place = request.place
    if place is None:
        is_here = request.at is not None or request.kind is JobKind.MESSAGE
        place = JobPlace.HERE if is_here and owner.conversation is not None else JobPlace.FRESH
    if request.kind is JobKind.MESSAGE and place is not JobPlace.HERE:
        raise UsageError("a message is delivered here: it has no conversation of its own")
    if place is JobPlace.HERE and owner.conversation is None:
        raise UsageError("there is no conversation here: use fresh or own")
    return place


def _default_quiet(request: JobRequest) -> QuietRule:
    """Return the rule of quiet hours: who names a time means it."""
    return QuietRule.IGNORE if request.at is not None else QuietRule.HOLD


def _parse_until(text: str, zone: str, first: datetime) -> int:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise UsageError(f"{text!r} is no time: write it as 2026-12-31T18:00") from None
    instant = (
        to_instant(moment, find_zone(zone)) if moment.tzinfo is None else moment.astimezone(UTC)
    )
    if instant < first:
        raise UsageError(f"{text!r} is before the first time at which it fires")
    return to_millis(instant)


def list_next_fires(job: ScheduledJob, count: int = SHOWN_FIRES) -> list[datetime]:
    """Return when a job fires next."""
    found: list[datetime] = []
    slot = None if job.next_slot is None else from_millis(job.next_slot)
    while slot is not None and len(found) < count:
        if job.until_at is not None and to_millis(slot) > job.until_at:
            break
        found.append(slot)
        slot = job.schedule.next_after(slot)
    return found


def resume_job(t: Tx, job: ScheduledJob) -> None:
    """Let a paused job fire again, from now on; one that is on keeps the slot that is due."""
    if job.state is JobState.ON:
        return
    now = from_millis(t.now) - timedelta(milliseconds=1)
    slot = job.schedule.next_after(now) if job.next_slot is not None else None
    t.execute(
        """
        UPDATE schedule_job SET state = $2, reason = NULL, next_slot = $3, due_at = $3
        WHERE id = $1
        """,
        job.id,
        (JobState.DONE if slot is None else JobState.ON).value,
        None if slot is None else to_millis(slot),
    )
