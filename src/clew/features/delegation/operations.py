"""The operations of tasks, for HTTP and JSON-RPC."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

from pydantic import Field

from clew.api.operation_scope import CLIENTS
from clew.api.operations import HttpBinding, make_operation
from clew.api.schemas import QueryParams, RequestBody
from clew.features.delegation import front
from clew.store.transactions.conversations import get_visible_conversation, resolve_conversation
from clew.wire.errors import ErrorCode
from clew.wire.methods import RpcMethod
from clew.wire.models import WireModel
from clew.wire.params import Params

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from clew.api.operation_call import OperationCall
    from clew.api.operations import AnyOperation
    from clew.core.scope import Scope
    from clew.features.delegation.settings import DelegationSettings
    from clew.store.contract import Tx

_PATH: Final = "/api/agents"
_TASK_PATH: Final = f"{_PATH}/{{task}}"


class TaskUsage(WireModel):
    """Tokens, and the cost in millionths of a US dollar if the price is known."""

    input_tokens: int
    cached_tokens: int
    output_tokens: int
    cost_micros: int | None


class TaskShape(WireModel):
    """A task that an agent was given by another."""

    #: Its conversation, which can be read as every other.
    id: str
    title: str
    #: The kind of agent that works on it; none for the usual one.
    agent: str | None
    state: str
    reason: str | None
    parent: str
    root: str
    depth: int
    background: bool
    started: str
    ended: str | None
    steps: int
    max_steps: int
    max_tokens: int
    #: Somebody has to answer a question of it.
    waits: bool
    #: Of it and all below it.
    usage: TaskUsage


class TaskList(WireModel):
    """Tasks, each parent before its own; with a conversation, the usage of it and all of them."""

    items: list[TaskShape]
    usage: TaskUsage | None


class TaskAnswer(WireModel):
    """A part of what a task has answered, or has said so far."""

    text: str
    start: int
    #: Characters of all of it.
    size: int


class ListTasksParams(Params):
    """The conversation whose tasks are listed, and whether those that have ended are."""

    conversation: str | None = Field(default=None, max_length=200)
    done: bool = False


class TaskParams(Params):
    """A task: its id, the first characters of it, or its title."""

    task: str = Field(min_length=1, max_length=200)


class ReadTaskParams(TaskParams):
    """A part of the answer of a task."""

    start: int = Field(default=0, ge=0)


class TellTaskParams(TaskParams):
    """A message to a task."""

    text: str = Field(min_length=1)


class ListTasksQuery(QueryParams):
    conversation: str | None = Field(default=None, max_length=200)
    done: bool = Field(default=False, strict=False)


class ReadTaskQuery(QueryParams):
    start: int = Field(default=0, ge=0, strict=False)


class TellTaskRequest(RequestBody):
    """A message to a task."""

    text: str = Field(min_length=1)


async def _list_tasks(call: OperationCall, given: ListTasksParams) -> TaskList:
    found = await call.engine.feature_context.store.read(
        describe_all, given.conversation, viewer=call.context.viewer, done=given.done
    )
    return TaskList.model_validate(found)


def describe_all(t: Tx, name: str | None, *, viewer: Scope, done: bool) -> dict[str, Any]:
    """Return the tasks of a conversation, or all that a viewer may see, as programs get them."""
    top = None if name is None else resolve_conversation(t, name)
    if top is not None:
        get_visible_conversation(t, top, viewer=viewer, name=name)
    return front.describe_tasks(t, viewer=viewer, top=top, done=done)


async def _get_task(call: OperationCall, given: TaskParams) -> TaskShape:
    found = await call.engine.feature_context.store.read(
        describe_named, given.task, viewer=call.context.viewer
    )
    return TaskShape.model_validate(found)


def describe_named(t: Tx, name: str, *, viewer: Scope) -> dict[str, Any]:
    """Return a task by its name, as programs get it."""
    return front.describe_task(t, front.find_task(t, name, viewer=viewer))


async def _read_task(call: OperationCall, given: ReadTaskParams) -> TaskAnswer:
    found = await call.engine.feature_context.store.read(
        describe_answer, given.task, viewer=call.context.viewer, start=given.start
    )
    return TaskAnswer.model_validate(found)


def describe_answer(t: Tx, name: str, *, viewer: Scope, start: int) -> dict[str, Any]:
    """Return a part of the answer of a task, as programs get it."""
    part = front.read_part(t, front.find_task(t, name, viewer=viewer), start=start)
    return {"text": part.text, "start": part.start, "size": part.size}


async def _stop_task(call: OperationCall, given: TaskParams) -> TaskShape:
    stopped = await call.engine.feature_context.store.write(
        stop_named, given.task, viewer=call.context.viewer
    )
    return TaskShape.model_validate(stopped)


def stop_named(t: Tx, name: str, *, viewer: Scope) -> dict[str, Any]:
    """Stop a task by its name, and all below it."""
    child = front.stop_task(t, front.find_task(t, name, viewer=viewer), reason="stopped")
    return front.describe_task(t, child)


def tell_named(
    t: Tx, name: str, text: str, *, viewer: Scope, settings: DelegationSettings, item: str
) -> dict[str, Any]:
    """Tell a task something as a person."""
    child = front.find_task(t, name, viewer=viewer)
    told = front.tell_by_person(t, child, text, settings, item=front.as_input(item))
    return front.describe_task(t, told)


async def _tell_task(
    get_settings: Callable[[], DelegationSettings], call: OperationCall, given: TellTaskParams
) -> TaskShape:
    services = call.engine.feature_context
    told = await services.store.write(
        tell_named,
        given.task,
        given.text,
        viewer=call.context.viewer,
        settings=get_settings(),
        item=services.ids.new_inbox_id(),
    )
    return TaskShape.model_validate(told)


def find_operation(name: str, get_settings: Callable[[], DelegationSettings]) -> object:
    """Return an operation by its name."""
    return _make_tell(get_settings) if name == "agent.tell" else _OPERATIONS[name]


def _make_tell(get_settings: Callable[[], DelegationSettings]) -> AnyOperation:
    return make_operation(
        RpcMethod(
            name="agent.tell",
            params=TellTaskParams,
            result=TaskShape,
            summary="Tell a task something; one that has ended works on.",
            errors=(ErrorCode.INVALID_VALUE, ErrorCode.NOT_FOUND),
        ),
        partial(_tell_task, get_settings),
        CLIENTS,
        HttpBinding(
            method="POST",
            path=f"{_TASK_PATH}/tell",
            summary="Tell it something; one that has ended works on",
            answer="The task",
            body=TellTaskRequest,
            subject="task",
        ),
    )


_OPERATIONS: Final[Mapping[str, AnyOperation]] = {
    "agent.list": make_operation(
        RpcMethod(
            name="agent.list",
            params=ListTasksParams,
            result=TaskList,
            summary="The tasks that agents were given by others, with what they have used.",
            errors=(ErrorCode.NOT_FOUND,),
        ),
        _list_tasks,
        CLIENTS,
        HttpBinding(
            method="GET",
            path=_PATH,
            summary="The tasks of agents",
            answer="The tasks, and the usage of the conversation with all of them",
            query=ListTasksQuery,
        ),
        is_ordered=False,
    ),
    "agent.get": make_operation(
        RpcMethod(
            name="agent.get",
            params=TaskParams,
            result=TaskShape,
            summary="A task: its state, budget and usage.",
            errors=(ErrorCode.NOT_FOUND,),
        ),
        _get_task,
        CLIENTS,
        HttpBinding(
            method="GET", path=_TASK_PATH, summary="A task", answer="The task", subject="task"
        ),
        is_ordered=False,
    ),
    "agent.read": make_operation(
        RpcMethod(
            name="agent.read",
            params=ReadTaskParams,
            result=TaskAnswer,
            summary="The answer of a task, or what it has said so far.",
            errors=(ErrorCode.NOT_FOUND,),
        ),
        _read_task,
        CLIENTS,
        HttpBinding(
            method="GET",
            path=f"{_TASK_PATH}/answer",
            summary="Its answer, or what it has said so far",
            answer="A part of the answer",
            query=ReadTaskQuery,
            subject="task",
        ),
        is_ordered=False,
    ),
    "agent.stop": make_operation(
        RpcMethod(
            name="agent.stop",
            params=TaskParams,
            result=TaskShape,
            summary="Stop a task and all below it; what it has so far is its answer.",
            errors=(ErrorCode.NOT_FOUND,),
        ),
        _stop_task,
        CLIENTS,
        HttpBinding(
            method="POST",
            path=f"{_TASK_PATH}/stop",
            summary="Stop it and all below it",
            answer="The task",
            subject="task",
        ),
    ),
}
