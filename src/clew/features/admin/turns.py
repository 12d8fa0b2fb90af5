"""The operation that shows what all gateways of a store work on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from clew.api.operation_scope import LOCAL_CLIENTS
from clew.api.operations import HttpBinding, make_operation
from clew.store.transactions.activity import read_activity
from clew.wire.methods import RpcMethod
from clew.wire.models import WireModel
from clew.wire.params import NoParams
from clew.wire.serializers import format_timestamp

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clew.api.operation_call import OperationCall
    from clew.api.operations import AnyOperation
    from clew.store.transactions.activity import Activity, OpenCall, OpenTurn, QueuedInput

#: Turns, calls and inputs that are returned at most.
_LIMIT: Final = 500


class RunningCall(WireModel):
    """A tool call that has begun and has no result."""

    tool: str
    since: str
    #: It waits for an answer.
    waits: bool


class LeaseHolder(WireModel):
    """The process that works on a turn."""

    #: As ``serve``, ``chat``.
    role: str
    host: str
    pid: int
    until: str
    #: It is alive; a dead one's turn is taken over.
    alive: bool


class RunningTurn(WireModel):
    """A turn that has no outcome."""

    id: str
    conversation: str
    title: str | None
    scope: str
    #: ``running``, or ``waiting`` for an answer.
    state: str
    #: It was asked to stop.
    stopping: bool
    since: str
    #: Steps that are complete: answers of the model.
    steps: int
    model: str | None
    #: The beginning of what it answers.
    text: str
    calls: list[RunningCall]
    #: Null if nobody works on it now.
    holder: LeaseHolder | None


class WaitingInput(WireModel):
    """An input that waits."""

    inbox_id: str
    kind: str
    #: Its beginning.
    text: str
    received_at: str


class WaitingQueue(WireModel):
    """The inputs that wait in a conversation, and the first of them."""

    conversation: str
    title: str | None
    scope: str
    waiting: int
    items: list[WaitingInput]


class TurnList(WireModel):
    items: list[RunningTurn]
    queues: list[WaitingQueue]
    #: There is more than is shown.
    more: bool


def describe_activity(found: Activity, *, limit: int) -> TurnList:
    """Return open work as programs get it."""
    queues: dict[str, list[QueuedInput]] = {}
    for one in found.queued[:limit]:
        queues.setdefault(one.conversation, []).append(one)
    return TurnList(
        items=[_describe_turn(turn, found) for turn in found.turns[:limit]],
        queues=[_describe_queue(inputs) for inputs in queues.values()],
        more=len(found.turns) > limit or len(found.queued) > limit,
    )


def _describe_turn(turn: OpenTurn, found: Activity) -> RunningTurn:
    return RunningTurn(
        id=turn.id,
        conversation=turn.conversation,
        title=turn.title,
        scope=turn.scope,
        state=turn.state.value,
        stopping=turn.stop is not None,
        since=format_timestamp(turn.started_at) or "",
        steps=turn.steps,
        model=turn.model,
        text=turn.text,
        calls=[_describe_call(one) for one in found.calls if one.turn == turn.id],
        holder=_describe_holder(turn, found),
    )


def _describe_call(one: OpenCall) -> RunningCall:
    return RunningCall(
        tool=one.tool, since=format_timestamp(one.started_at) or "", waits=one.suspended
    )


def _describe_holder(turn: OpenTurn, found: Activity) -> LeaseHolder | None:
    if turn.owner is None or (process := found.owners.get(turn.owner)) is None:
        return None
    return LeaseHolder(
        role=process.role,
        host=process.host,
        pid=process.pid,
        until=format_timestamp(turn.lease_until) or "",
        alive=process.id in found.living,
    )


def _describe_queue(inputs: Sequence[QueuedInput]) -> WaitingQueue:
    first = inputs[0]
    return WaitingQueue(
        conversation=first.conversation,
        title=first.title,
        scope=first.scope,
        waiting=first.waiting,
        items=[
            WaitingInput(
                inbox_id=one.id,
                kind=one.kind.value,
                text=one.text,
                received_at=format_timestamp(one.received_at) or "",
            )
            for one in inputs
        ],
    )


async def _list_turns(call: OperationCall, given: NoParams) -> TurnList:
    store = call.engine.feature_context.store
    return describe_activity(await store.read(read_activity, limit=_LIMIT + 1), limit=_LIMIT)


OPERATIONS: Final[tuple[AnyOperation, ...]] = (
    make_operation(
        RpcMethod(
            name="turn.list",
            params=NoParams,
            result=TurnList,
            summary="The turns that all gateways work on, and the inputs that wait.",
        ),
        _list_turns,
        LOCAL_CLIENTS,
        HttpBinding(
            method="GET",
            path="/api/turns",
            summary="What is worked on, and what waits",
            answer="The unfinished turns, oldest first, and the queues",
        ),
        is_ordered=False,
    ),
)
