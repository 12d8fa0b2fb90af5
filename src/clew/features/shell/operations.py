"""The operations of processes, for HTTP and JSON-RPC."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pydantic import BaseModel, Field

from clew.api.operation_scope import CLIENTS
from clew.api.operations import HttpBinding, make_operation
from clew.api.schemas import QueryParams, RequestBody
from clew.core.scope import LOCAL
from clew.errors import UsageError
from clew.features.shell import front, processes
from clew.wire.errors import ErrorCode
from clew.wire.methods import RpcMethod
from clew.wire.models import WireModel
from clew.wire.params import Params

if TYPE_CHECKING:
    from collections.abc import Mapping

    from clew.api.operation_call import OperationCall
    from clew.api.operations import AnyOperation
    from clew.features.shell.processes import ShellProcess

_PATH: Final = "/api/processes"
_PROCESS_PATH: Final = f"{_PATH}/{{process}}"


class ProcessShape(WireModel):
    """A command that the agent has started, and what became of it."""

    id: str
    command: str
    conversation: str
    turn: str
    scope: str
    #: The machine that it runs on.
    host: str
    #: The level of its sandbox.
    level: str
    #: ``asked``, ``running``, ``exited``, ``stopped`` or ``lost``.
    state: str
    #: How it ended, in words.
    ending: str | None
    #: As the shell has it: 128 + N for a death by signal N.
    exit_code: int | None
    signal: int | None
    #: The model is told its end; else a call waits for it.
    background: bool
    #: Bytes of its output, and its last characters, once it has ended.
    size: int | None
    tail: str | None
    created_at: str
    ended_at: str | None


class ProcessList(WireModel):
    items: list[ProcessShape]


class ProcessOutput(WireModel):
    """A part of the output of a process; what was not kept is left out."""

    start: int
    end: int
    #: Bytes of the whole output so far.
    size: int
    text: str


class _ListFields(BaseModel):
    limit: int = Field(default=50, ge=1, le=1000, strict=False)


class ListProcessesParams(_ListFields, Params):
    """The number of processes that are listed."""


class ListProcessesQuery(_ListFields, QueryParams):
    """The number of processes that are listed."""


class ProcessParams(Params):
    """A process: its id, or the first characters of it."""

    process: str = Field(min_length=1, max_length=200)


class _OutputFields(BaseModel):
    #: The first byte; without it, the end of the output.
    start: int | None = Field(default=None, ge=0, strict=False)
    length: int = Field(default=8000, ge=1, le=front.MOST_BYTES, strict=False)


class ProcessOutputParams(_OutputFields, ProcessParams):
    """A part of the output of a process."""


class ProcessOutputQuery(_OutputFields, QueryParams):
    """A part of the output of a process."""


class _InputFields(BaseModel):
    text: str = Field(default="", max_length=front.MOST_BYTES)
    #: Close the input.
    end: bool = False


class ProcessInputParams(_InputFields, ProcessParams):
    """Input of a process in the background."""


class ProcessInputRequest(_InputFields, RequestBody):
    """Input of a process in the background."""


async def _find(call: OperationCall, name: str) -> ShellProcess:
    return await call.engine.feature_context.store.read(
        front.find_process, name, viewer=call.context.viewer
    )


def _to_shape(process: ShellProcess) -> ProcessShape:
    return ProcessShape.model_validate(front.describe_process(process))


async def _list(call: OperationCall, given: ListProcessesParams) -> ProcessList:
    found = await call.engine.feature_context.store.read(
        processes.list_processes, viewer=call.context.viewer, limit=given.limit
    )
    return ProcessList(items=[_to_shape(one) for one in found])


async def _get(call: OperationCall, given: ProcessParams) -> ProcessShape:
    return _to_shape(await _find(call, given.process))


async def _read(call: OperationCall, given: ProcessOutputParams) -> ProcessOutput:
    process = await _find(call, given.process)
    part = front.read_part(
        call.engine.feature_context, process, start=given.start, length=given.length
    )
    return ProcessOutput.model_validate(part)


async def _send(call: OperationCall, given: ProcessInputParams) -> ProcessShape:
    if call.context.viewer != LOCAL:
        raise UsageError("only operators give input to a command: it may be a shell")
    process = await _find(call, given.process)
    context = call.engine.feature_context
    front.send_input(context, process, context.ids.new_operation_id(), given.text, end=given.end)
    return _to_shape(process)


async def _stop(call: OperationCall, given: ProcessParams) -> ProcessShape:
    process = await _find(call, given.process)
    stopped = await front.stop_process(
        call.engine.feature_context, process, by="a person (process.stop)"
    )
    return _to_shape(stopped)


OPERATIONS: Final[Mapping[str, AnyOperation]] = {
    "process.list": make_operation(
        RpcMethod(
            name="process.list",
            params=ListProcessesParams,
            result=ProcessList,
            summary="The commands that the agent has started: those that run, then the newest.",
        ),
        _list,
        CLIENTS,
        HttpBinding(
            method="GET",
            path=_PATH,
            summary="The commands that the agent has started",
            answer="The processes: those that run, then the newest that ended",
            query=ListProcessesQuery,
        ),
        is_ordered=False,
    ),
    "process.get": make_operation(
        RpcMethod(
            name="process.get",
            params=ProcessParams,
            result=ProcessShape,
            summary="A command that the agent has started.",
            errors=(ErrorCode.NOT_FOUND,),
        ),
        _get,
        CLIENTS,
        HttpBinding(
            method="GET",
            path=_PROCESS_PATH,
            summary="A command that the agent has started",
            answer="The process",
            subject="process",
        ),
        is_ordered=False,
    ),
    "process.output": make_operation(
        RpcMethod(
            name="process.output",
            params=ProcessOutputParams,
            result=ProcessOutput,
            summary="A part of the output of a process; without ``start`` its end.",
            errors=(ErrorCode.NOT_FOUND, ErrorCode.INVALID_VALUE),
        ),
        _read,
        CLIENTS,
        HttpBinding(
            method="GET",
            path=f"{_PROCESS_PATH}/output",
            summary="A part of its output",
            answer="The part, and the size of the whole",
            query=ProcessOutputQuery,
            subject="process",
        ),
        is_ordered=False,
    ),
    "process.input": make_operation(
        RpcMethod(
            name="process.input",
            params=ProcessInputParams,
            result=ProcessShape,
            summary="Give input to a process that was begun in the background.",
            errors=(ErrorCode.NOT_FOUND, ErrorCode.INVALID_VALUE),
        ),
        _send,
        CLIENTS,
        HttpBinding(
            method="POST",
            path=f"{_PROCESS_PATH}/input",
            summary="Give it input",
            answer="The process",
            body=ProcessInputRequest,
            subject="process",
        ),
    ),
    "process.stop": make_operation(
        RpcMethod(
            name="process.stop",
            params=ProcessParams,
            result=ProcessShape,
            summary="Have a process end: it is asked to, and killed 5 seconds later.",
            errors=(ErrorCode.NOT_FOUND, ErrorCode.INVALID_VALUE),
        ),
        _stop,
        CLIENTS,
        HttpBinding(
            method="POST",
            path=f"{_PROCESS_PATH}/stop",
            summary="Have it end",
            answer="The process",
            subject="process",
        ),
    ),
}
