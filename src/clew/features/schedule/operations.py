"""The operations of jobs, for HTTP and JSON-RPC."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal

from pydantic import BaseModel, Field

from clew.api.operation_scope import CLIENTS
from clew.api.operations import HttpBinding, make_operation
from clew.api.schemas import QueryParams, RequestBody
from clew.core.route import Route
from clew.core.scope import LOCAL, Scope, scope_of
from clew.errors import UsageError
from clew.features.schedule import front, jobs
from clew.features.schedule.editing import ScheduleEdit, edit_schedule
from clew.features.schedule.jobs import JobPlace, QuietRule
from clew.features.schedule.making import JobOwner, JobRequest, create_job, find_kind
from clew.features.schedule.planning import CatchUp
from clew.features.schedule.settings import find_zone_name
from clew.features.schedule.tool_calls import change_job
from clew.store.transactions.conversations import get_scope, resolve_conversation, resolve_route
from clew.wire.errors import ErrorCode
from clew.wire.methods import RpcMethod
from clew.wire.models import WireModel
from clew.wire.params import Params

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from clew.api.operation_call import OperationCall
    from clew.api.operations import AnyOperation
    from clew.features.schedule.settings import ScheduleSettings
    from clew.store.contract import Tx

_PATH: Final = "/api/jobs"
_JOB_PATH: Final = f"{_PATH}/{{job}}"
#: Fields of a new job that are taken as they are.
_PLAIN_FIELDS: Final = {
    "task", "title", "at", "every", "cron", "command", "watch", "quiet_if", "until", "runs",
}  # fmt: skip
_EDIT_FIELDS: Final = {"zone", "at", "every", "cron"}
_Text = Field(default=None, max_length=200)


class JobShape(WireModel):
    """A job: what it does, when, and where it reports."""

    id: str
    title: str
    kind: str
    task: str
    command: str | None
    #: The file or the URL that it watches.
    watch: str | None
    #: ``{"cron": "0 8 * * *"}``
    schedule: dict[str, str]
    zone: str
    where: str
    conversation: str | None
    scope: str
    route: str | None
    state: str
    reason: str | None
    catch_up: str
    quiet: str
    quiet_if: str | None
    failures: int
    #: The next three fires, by the clocks of its zone.
    next: list[str]
    #: The conversation in which a run waits for an answer.
    waits: str | None


class JobList(WireModel):
    items: list[JobShape]


class FireShape(WireModel):
    """The outcome of one slot of a job, and of its report."""

    slot: str
    state: str
    reason: str | None
    #: ``delivered``, ``waiting`` or ``failed``, where a chat gets its report.
    report: str | None
    conversation: str | None
    turn: str | None


class FireList(WireModel):
    items: list[FireShape]


class ListJobsParams(Params):
    """The jobs that are listed; with `done` those that have ended as well."""

    done: bool = False


class JobParams(Params):
    """A job: its id, or its title."""

    job: str = Field(min_length=1, max_length=200)


class _EditFields(BaseModel):
    zone: str | None = _Text
    at: str | None = _Text
    every: str | None = _Text
    cron: str | None = _Text


class EditJobParams(_EditFields, JobParams):
    """A job, and when it fires from now on: a zone, one of ``at``, ``every``, ``cron``, or both."""


class EditJobRequest(_EditFields, RequestBody):
    """When a job fires from now on: a zone, one of ``at``, ``every`` and ``cron``, or both."""


class LogParams(JobParams):
    """The last fires of a job."""

    limit: int = Field(default=50, ge=1, le=1000)


class _JobFields(BaseModel):
    """The fields of a new job."""

    task: str = Field(min_length=1)
    title: str | None = _Text
    at: str | None = _Text
    every: str | None = _Text
    cron: str | None = _Text
    zone: str | None = _Text
    kind: Literal["turn", "message", "command", "file", "url"] = "turn"
    command: str | None = None
    #: A file of the workspace, or a URL: the kind follows from it.
    watch: str | None = Field(default=None, max_length=2000)
    where: Literal["fresh", "own", "here"] | None = None
    #: The conversation of ``here``, by id, NAME or route.
    conversation: str | None = _Text
    #: The route that gets the reports, such as ``agent:main:telegram:dm:42``.
    route: str | None = _Text
    catch_up: Literal["latest", "none", "all"] | None = None
    quiet: Literal["hold", "skip", "ignore"] | None = None
    quiet_if: str | None = _Text
    until: str | None = _Text
    runs: int | None = Field(default=None, ge=1)


class AddJobParams(_JobFields, Params):
    """A new job: exactly one of ``at``, ``every`` and ``cron``."""


class AddJobRequest(_JobFields, RequestBody):
    """A new job: exactly one of ``at``, ``every`` and ``cron``."""


class ListJobsQuery(QueryParams):
    done: bool = Field(default=False, strict=False)


class LogQuery(QueryParams):
    limit: int = Field(default=50, ge=1, le=1000, strict=False)


def add_job(t: Tx, job_id: str, given: AddJobParams, *, zone: str, viewer: Scope) -> dict[str, Any]:
    """
    Store a job that a program asks for.

    :raises UsageError: saying what is wrong and what would do
    """
    if (given.command is not None or given.watch is not None) and viewer != LOCAL:
        raise UsageError("what looks at commands, files or pages is scheduled by operators only")
    request = JobRequest(
        **given.model_dump(include=_PLAIN_FIELDS),
        zone=given.zone or zone,
        kind=find_kind(given.kind, watch=given.watch),
        place=None if given.where is None else JobPlace(given.where),
        catch_up=None if given.catch_up is None else CatchUp(given.catch_up),
        quiet=None if given.quiet is None else QuietRule(given.quiet),
    )
    job = create_job(t, job_id, request, _find_owner(t, given, viewer))
    return front.describe_job(t, job)


def _find_owner(t: Tx, given: AddJobParams, viewer: Scope) -> JobOwner:
    route = None if given.route is None else Route.parse(given.route)
    conversation = None if route is None else resolve_route(t, route.key)
    if route is not None and conversation is None:
        raise UsageError(f"there is no chat {route.key}: write to the agent there first")
    if given.conversation is not None:
        conversation = resolve_conversation(t, given.conversation)
    scope = viewer if route is None else scope_of(route)
    if conversation is not None:
        scope = get_scope(t, conversation)
    if viewer not in (LOCAL, scope) or (route is not None and scope_of(route) != scope):
        raise UsageError("a job reports to a route of the scope of its conversation")
    return JobOwner(
        scope=scope, route=None if route is None else route.key, conversation=conversation
    )


def find_operation(name: str, get_settings: Callable[[], ScheduleSettings]) -> AnyOperation:
    """Return an operation by its name."""

    async def add(call: OperationCall, given: AddJobParams) -> JobShape:
        services = call.engine.feature_context
        made = await services.store.write(
            add_job,
            f"job_{services.ids.new_operation_id().removeprefix('op_')}",
            given,
            zone=find_zone_name(get_settings(), services.settings),
            viewer=call.context.viewer,
        )
        return JobShape.model_validate(made)

    return make_operation(_ADD, add, CLIENTS, _ADD_OVER_HTTP) if name == "job.add" else _KNOWN[name]


async def _list_jobs(call: OperationCall, given: ListJobsParams) -> JobList:
    found = await call.engine.feature_context.store.read(
        describe_all, call.context.viewer, done=given.done
    )
    return JobList.model_validate({"items": found})


def describe_all(t: Tx, viewer: Scope, *, done: bool) -> list[dict[str, Any]]:
    """Return the jobs that a viewer may see, as programs get them."""
    return [front.describe_job(t, job) for job in jobs.list_jobs(t, viewer=viewer, done=done)]


async def _get_job(call: OperationCall, given: JobParams) -> JobShape:
    found = await call.engine.feature_context.store.read(
        describe_named, given.job, viewer=call.context.viewer
    )
    return JobShape.model_validate(found)


def describe_named(t: Tx, name: str, *, viewer: Scope) -> dict[str, Any]:
    """Return a job by its name, as programs get it."""
    return front.describe_job(t, front.find_job(t, name, viewer=viewer))


async def _change_job(action: str, call: OperationCall, given: JobParams) -> JobShape:
    changed = await call.engine.feature_context.store.write(
        change_named, action, given.job, viewer=call.context.viewer
    )
    return JobShape.model_validate(changed)


def change_named(t: Tx, action: str, name: str, *, viewer: Scope) -> dict[str, Any]:
    """Pause, resume, run or remove a job by its name; return it, or as it was."""
    job = front.find_job(t, name, viewer=viewer)
    before = front.describe_job(t, job)
    change_job(t, job, action)
    return before if action == "remove" else describe_named(t, job.id, viewer=viewer)


async def _edit_job(call: OperationCall, given: EditJobParams) -> JobShape:
    edit = ScheduleEdit(**given.model_dump(include=_EDIT_FIELDS))
    edited = await call.engine.feature_context.store.write(
        edit_named, given.job, edit, viewer=call.context.viewer
    )
    return JobShape.model_validate(edited)


def edit_named(t: Tx, name: str, edit: ScheduleEdit, *, viewer: Scope) -> dict[str, Any]:
    """Change when a job fires by its name, and return it."""
    job = edit_schedule(t, front.find_job(t, name, viewer=viewer), edit)
    return describe_named(t, job.id, viewer=viewer)


async def _list_fires(call: OperationCall, given: LogParams) -> FireList:
    found = await call.engine.feature_context.store.read(
        describe_fires, given.job, limit=given.limit, viewer=call.context.viewer
    )
    return FireList.model_validate({"items": found})


def describe_fires(t: Tx, name: str, *, limit: int, viewer: Scope) -> list[dict[str, Any]]:
    """Return the last fires of a job, newest first, as programs get them."""
    return front.describe_fires(t, front.find_job(t, name, viewer=viewer), limit=limit)


_ADD: Final = RpcMethod(
    name="job.add",
    params=AddJobParams,
    result=JobShape,
    summary="Add a job; the answer names its next three fires.",
    errors=(ErrorCode.INVALID_VALUE, ErrorCode.NOT_FOUND),
)
_ADD_OVER_HTTP: Final = HttpBinding(
    method="POST",
    path=_PATH,
    summary="Add a job",
    answer="The job, with its next fires",
    body=AddJobRequest,
)
_of_job = partial(HttpBinding, answer="The job", subject="job")


def _make_reader(
    definition: RpcMethod[Any, Any],
    handler: Callable[[OperationCall, Any], Awaitable[BaseModel]],
    http: HttpBinding,
) -> AnyOperation:
    return make_operation(definition, handler, CLIENTS, http, is_ordered=False)


def _make_change(action: str, summary: str, http: HttpBinding) -> AnyOperation:
    definition = RpcMethod(
        name=f"job.{action}",
        params=JobParams,
        result=JobShape,
        summary=summary,
        errors=(ErrorCode.NOT_FOUND,),
    )
    return make_operation(definition, partial(_change_job, action), CLIENTS, http)


_READERS: Final = (
    _make_reader(
        RpcMethod(name="job.list", params=ListJobsParams, result=JobList, summary="The jobs."),
        _list_jobs,
        HttpBinding(
            method="GET",
            path=_PATH,
            summary="What runs by itself",
            answer="The jobs, oldest first",
            query=ListJobsQuery,
        ),
    ),
    _make_reader(
        RpcMethod(
            name="job.get",
            params=JobParams,
            result=JobShape,
            summary="A job, with its next three fires.",
            errors=(ErrorCode.NOT_FOUND,),
        ),
        _get_job,
        _of_job(method="GET", path=_JOB_PATH, summary="A job"),
    ),
    _make_reader(
        RpcMethod(
            name="job.log",
            params=LogParams,
            result=FireList,
            summary="What became of each slot of a job, newest first.",
            errors=(ErrorCode.NOT_FOUND,),
        ),
        _list_fires,
        _of_job(
            method="GET",
            path=f"{_JOB_PATH}/fires",
            summary="What became of each slot",
            answer="The fires, newest first",
            query=LogQuery,
        ),
    ),
)
_EDIT: Final = make_operation(
    RpcMethod(
        name="job.edit",
        params=EditJobParams,
        result=JobShape,
        summary="Change the times or the time zone of a job, from its next slot on.",
        errors=(ErrorCode.INVALID_VALUE, ErrorCode.NOT_FOUND),
    ),
    _edit_job,
    CLIENTS,
    _of_job(
        method="PATCH",
        path=_JOB_PATH,
        summary="Change the times or the time zone of a job, from its next slot on",
        body=EditJobRequest,
    ),
)
_CHANGES: Final = (
    ("run", "POST", "/run", "Run a job as soon as possible, beside its schedule."),
    ("pause", "POST", "/pause", "Stop a job until it is resumed."),
    ("resume", "POST", "/resume", "Let a paused job fire again."),
    ("remove", "DELETE", "", "Remove a job and its log; a run that has begun goes on."),
)
_KNOWN: Final[Mapping[str, AnyOperation]] = {
    one.name: one
    for one in (
        *_READERS,
        _EDIT,
        *(
            _make_change(
                action,
                summary,
                _of_job(method=method, path=f"{_JOB_PATH}{path}", summary=summary.rstrip(".")),
            )
            for action, method, path, summary in _CHANGES
        ),
    )
}
