"""The simulation's state, and the comparison of the store with the model."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

import pytest

from clew.core.entry import NewEntry, Role
from clew.core.ids import ConversationId, EntryId, InboxId, OwnerId, SessionId
from clew.core.inbox import InboxKind
from clew.core.route import Route, local_route
from clew.errors import LeaseLost, NotFound, OperationRefused, UsageError
from clew.store.transactions import context, entries, inbox, turn_queries
from tests.contract import invariants

if TYPE_CHECKING:
    from clew.core.delivery import DeliveryState
    from clew.core.ids import DeliveryId
    from clew.core.inbox import InboxItem
    from clew.core.lease import Lease
    from clew.core.route import RouteKey
    from clew.store.contract import Row, Tx
    from tests.contract.desk import Desk
    from tests.contract.simulation.model import Run, Thread

P = ParamSpec("P")
T = TypeVar("T")
Compare = Callable[[Any], object]

FORMAT = "test/1"
ROUTES = (
    local_route("main"),
    Route(platform="telegram", kind="dm", chat="42"),
    Route(platform="telegram", kind="group", chat="42", user="7"),
)
#: Those that get deliveries.
CHATS = ROUTES[1:]


def compose(item: InboxItem) -> NewEntry:
    """The entry of an input: the same each time."""
    told: dict[str, object] = {"user": item.id, "text": item.text}
    if item.kind is InboxKind.COMPLETION:
        told["clew_cause"] = ["process", item.id]
    text = json.dumps(told)
    return NewEntry(
        id=EntryId(f"ent_{item.id}"), role=Role.USER, text=item.text, format=FORMAT, message=text
    )


def itself(result: object) -> object:
    return result


@dataclass(frozen=True, kw_only=True)
class Call:
    """A call that was answered, to be made again."""

    job: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    compare: Compare
    answer: object


class Sim:
    """Owners, conversations and their calls over one desk."""

    def __init__(self, desk: Desk) -> None:
        self.desk = desk
        self.world = desk.world
        self.owners: list[OwnerId] = []
        self.threads: dict[ConversationId, Thread] = {}
        self.deleted: list[ConversationId] = []
        self.routes: dict[RouteKey, ConversationId] = {}
        self.runs: list[Run] = []
        #: State that dead owners had in memory.
        self.ghosts: list[Run] = []
        self.events: dict[tuple[str, str, str], InboxId] = {}
        self.deliveries: dict[DeliveryId, DeliveryState] = {}
        self.sending: dict[DeliveryId, OwnerId] = {}
        self.history: list[Call] = []
        #: The next answer is lost: its caller calls again.
        self.lose_answer = False
        #: Conversations that were touched in this step.
        self.touched: set[ConversationId] = set()
        self._count = 0

    def new(self, prefix: str) -> str:
        self._count += 1
        return f"{prefix}_{self._count}"

    def session_ids(self, _millis: int) -> SessionId:
        """Now and then the first proposal is taken."""
        self._count += 1
        threads = list(self.threads.values())
        if threads and self._count % 3 == 0:
            return threads[-1].head.id
        return SessionId(f"ses_{self._count}")

    def draft(self, role: Role, *, calls: tuple[str, ...] = (), **more: Any) -> NewEntry:
        name = self.new("ent")
        return NewEntry(
            id=EntryId(name),
            role=role,
            text=name,
            calls=calls,
            format=FORMAT,
            message=json.dumps({role.value: name}),
            **more,
        )

    def call(
        self,
        compare: Compare,
        job: Callable[Concatenate[Tx, P], T],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        """Run a job that may be repeated; once in a while its answer is lost and it is."""
        result = self.desk.do(job, *args, **kwargs)
        call = Call(job=job, args=args, kwargs=kwargs, compare=compare, answer=compare(result))
        self.history.append(call)
        self._lose(call)
        return result

    def move(
        self,
        compare: Compare,
        job: Callable[Concatenate[Tx, P], T],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        """As ``call``, for what names a state and no id: repeated at once, never later."""
        result = self.desk.do(job, *args, **kwargs)
        self._lose(Call(job=job, args=args, kwargs=kwargs, compare=compare, answer=compare(result)))
        return result

    def _lose(self, call: Call) -> None:
        if self.lose_answer:
            self.lose_answer = False
            self.repeat(call, strict=True)

    def repeat(self, call: Call, *, strict: bool) -> None:
        """The same call again: the same answer, or refused where time has gone by; no change."""
        before = self.desk.snapshot()
        try:
            answer = call.compare(self.desk.do(call.job, *call.args, **call.kwargs))
        except (OperationRefused, NotFound):
            assert not strict, f"{call.job.__name__} cannot be repeated"
        else:
            assert answer == call.answer, f"{call.job.__name__} answers differently"
        assert self.desk.snapshot() == before, f"{call.job.__name__}, repeated, changed something"

    def refused(
        self,
        error: type[OperationRefused | UsageError],
        job: Callable[Concatenate[Tx, P], object],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> None:
        with pytest.raises(error):
            self.desk.do(job, *args, **kwargs)

    def holds(self, run: Run) -> bool:
        lease = run.thread.lease
        return (
            run.thread.id in self.threads
            and lease is not None
            and (lease.owner, lease.fence) == (run.lease.owner, run.lease.fence)
        )

    def under(
        self,
        run: Run,
        compare: Compare,
        job: Callable[Concatenate[Tx, Lease, P], T],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T | None:
        """Run a job under a lease; ``None`` if the lease was lost, as the store must notice."""
        self.touched.add(run.thread.id)
        if self.holds(run):
            return self.call(compare, job, run.lease, *args, **kwargs)
        self.refused(LeaseLost, job, run.lease, *args, **kwargs)
        self.drop(run)
        return None

    def drop(self, run: Run) -> None:
        if run in self.runs:
            self.runs.remove(run)
            self.ghosts.append(run)

    def verify(self) -> None:
        """The whole store keeps the invariants; what was touched equals the model."""
        seen, violations = self.desk.do(_look, sorted(self.touched & self.threads.keys()))
        assert not violations, "\n".join(violations)
        for now in seen:
            _compare(self.threads[now.conversation], now)
        self.touched.clear()


@dataclass(frozen=True, kw_only=True)
class Seen:
    conversation: ConversationId
    context: context.Context
    turn: tuple[str, str, str | None, int] | None
    items: list[InboxItem]
    lease: Row | None


def _look(t: Tx, conversations: list[ConversationId]) -> tuple[list[Seen], list[str]]:
    return [_look_at(t, one) for one in conversations], invariants.quick(t)


def _look_at(t: Tx, conversation: ConversationId) -> Seen:
    turn = turn_queries.find_unfinished_turn(t, conversation)
    return Seen(
        conversation=conversation,
        context=context.read_head_context(t, conversation),
        turn=None
        if turn is None
        else (turn.id, turn.state.value, turn.stop and turn.stop.value, turn.steps),
        items=inbox.list_open_items(t, conversation),
        lease=t.fetch_one(
            "SELECT owner, fence FROM lease WHERE conversation_id = $1", conversation
        ),
    )


def _compare(thread: Thread, seen: Seen) -> None:
    assert seen.context.last_seq == len(thread.log)
    assert seen.context.session.id == thread.head.id
    assert seen.context.session.is_open is thread.open
    assert tuple(message.message for message in seen.context.messages) == thread.context
    doing = thread.turn
    expected = doing and (doing.id, doing.state.value, doing.stop and doing.stop.value, doing.steps)
    assert seen.turn == expected
    assert [item.id for item in seen.items] == list(thread.items)
    assert [item.text for item in seen.items] == [item.text for item in thread.items.values()]
    holder = thread.lease
    assert seen.lease is not None
    assert seen.lease[0] == (holder and holder.owner)
    assert holder is None or seen.lease[1] == holder.fence


def compare_logs(sim: Sim) -> None:
    """Every log is what was said, to the letter and in order; every chain holds."""
    assert sim.desk.do(invariants.check) == []
    for thread in sim.threads.values():
        stored = sim.desk.do(entries.read_entries_after, thread.id, after=0, limit=10_000)
        assert [(e.seq, e.id, e.message, e.kind) for e in stored] == [
            (seq, draft.id, draft.message, draft.kind) for seq, draft in enumerate(thread.log, 1)
        ]
