"""Moves of an owner: it begins turns, runs steps and tools, waits and finishes."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from clew.core import session as reasons
from clew.core.approval import ApprovalState
from clew.core.delivery import DeliveryKind, DeliveryState, NewDelivery
from clew.core.effect import Effect, ResumeAction, resume_action
from clew.core.entry import EntryKind, NewEntry, Role
from clew.core.ids import ApprovalId, ConversationId, DeliveryId, InboxId, OwnerId, TurnId
from clew.core.journal import CallKey, CallStatus
from clew.core.turn import StopRequest, TurnOutcome, TurnState
from clew.core.work_queue import RunCommand, StartTurn, select_interruption, select_steering
from clew.errors import InvalidTransition, LeaseHeld, LeaseLost, SessionEnded, TurnRolledBack
from clew.store.transactions import (
    approvals,
    entries,
    inbox,
    journal,
    leases,
    rewinds,
    turn_queries,
    turns,
)
from clew.store.transactions import due_work as work_of
from tests.contract.simulation import sessions
from tests.contract.simulation.inputs import due
from tests.contract.simulation.model import Doing, Run, Thread
from tests.contract.simulation.sim import FORMAT, ROUTES, Sim, compose, itself

if TYPE_CHECKING:
    from clew.core.journal import JournaledCall
    from clew.core.work_queue import Work
    from clew.store.contract import Tx

_DURATION_MS = leases.LEASE_DURATION // timedelta(milliseconds=1)


def held_by_another(sim: Sim, thread: Thread, owner: OwnerId) -> bool:
    lease = thread.lease
    if lease is None or lease.owner == owner or lease.owner not in sim.world.alive:
        return False
    expires_at = lease.expires_at.timestamp() * 1000
    return sim.world.now < expires_at <= sim.world.now + 2 * _DURATION_MS


def begun(result: turns.StartedWork | None) -> object:
    return result and (
        result.lease.owner, result.lease.fence, result.turn and result.turn.id, result.item
    )  # fmt: skip


def begin(sim: Sim, owner: OwnerId, thread: Thread) -> None:
    """An owner asks for work."""
    turn = TurnId(sim.new("trn"))
    if held_by_another(sim, thread, owner):
        sim.refused(
            LeaseHeld, turns.begin_work, thread.id, owner=owner, turn=turn, compose=compose,
            session_ids=sim.session_ids,
        )  # fmt: skip
        return
    work = sim.desk.do(due, thread.id)
    goes_on = _goes_on(sim, thread)
    result = sim.desk.do(
        turns.begin_work, thread.id, owner=owner, turn=turn, compose=compose,
        session_ids=sim.session_ids,
    )  # fmt: skip
    sim.touched.add(thread.id)
    for run in [run for run in sim.runs if run.thread is thread and run.owner == owner]:
        sim.drop(run)
    if result is None:
        assert not goes_on
        assert thread.turn is not None or not isinstance(work, StartTurn | RunCommand)
        thread.lease = None
        return
    thread.lease = result.lease
    _follow(sim, thread, result, work, goes_on=goes_on)
    sim.runs.append(
        Run(
            owner=owner,
            thread=thread,
            lease=result.lease,
            turn=result.turn and result.turn.id,
            item=result.item,
            session=thread.head.id,
        )
    )


def see_what_is_due(sim: Sim, owner: OwnerId) -> None:
    """A search for work finds every conversation with work, and no other."""
    listed = sim.desk.do(work_of.find_due_work, me=owner)
    for thread in sim.threads.values():
        now = listed.get(thread.id, sim.world.now + 1) <= sim.world.now
        if held_by_another(sim, thread, owner):
            assert not now, f"{thread.id} is held by another owner"
        elif thread.turn is not None:
            assert now is _goes_on(sim, thread), (
                f"{thread.id} has a turn that may go on, or may not"
            )
        else:
            ready = isinstance(sim.desk.do(due, thread.id), StartTurn | RunCommand)
            assert now is ready, f"{thread.id} has work that nobody would find, or has none"
            known = sim.desk.do(work_of.find_next_work, thread.id)
            assert (known is not None and known.at <= sim.world.now) is ready


def begin_again(sim: Sim, run: Run) -> None:
    """The answer to ``begin`` was lost: the same owner asks again and gets the same."""
    if run.turn is None or not sim.holds(run):
        return
    again = sim.desk.do(
        turns.begin_work, run.thread.id, owner=run.owner, turn=run.turn, compose=compose,
        session_ids=sim.session_ids,
    )  # fmt: skip
    assert again is not None
    assert again.turn is not None
    assert (again.turn.id, again.lease.fence) == (run.turn, run.lease.fence)
    run.thread.lease = run.lease = again.lease
    sim.touched.add(run.thread.id)


def _goes_on(sim: Sim, thread: Thread) -> bool:
    doing = thread.turn
    if doing is None:
        return False
    if doing.state is TurnState.RUNNING or doing.stop is not None or not doing.approvals:
        return True
    return bool(sim.desk.do(_interrupting, thread.id))


def _steering(t: Tx, conversation: ConversationId) -> list[InboxId]:
    now = turns.from_millis(t.now)
    return [item.id for item in select_steering(inbox.list_open_items(t, conversation), now)]


def _interrupting(t: Tx, conversation: ConversationId) -> bool:
    now = turns.from_millis(t.now)
    return bool(select_interruption(inbox.list_open_items(t, conversation), now))


def _follow(
    sim: Sim, thread: Thread, result: turns.StartedWork, work: Work | None, *, goes_on: bool
) -> None:
    assert result.resumed is goes_on
    if goes_on:
        assert thread.turn is not None
        assert result.turn is not None
        assert result.turn.id == thread.turn.id
        thread.turn.state = TurnState.RUNNING
        # A message that steers denies what is open.
        still_open = sim.desk.do(approvals.list_open_approvals, thread.id)
        assert {a.id for a in still_open} <= set(thread.turn.approvals.values())
        thread.turn.approvals = {a.call_id: a.id for a in still_open}
        return
    assert thread.turn is None
    if isinstance(work, RunCommand):
        assert result.item == work.item
        assert result.turn is None
        return
    assert isinstance(work, StartTurn)
    assert result.turn is not None
    for item in work.items:
        del thread.items[item.id]
    if not thread.open:
        head = sim.desk.do(turns.get_head, thread.id)
        assert head.opened_by == reasons.REOPEN
        thread.opened(head.id, thread.context)
    thread.turn = Doing(id=result.turn.id)
    thread.said([compose(item) for item in work.items])


def respond(sim: Sim, run: Run, calls: int) -> None:
    """The model answers, asking for so many tool calls."""
    thread, turn = run.thread, run.turn
    if turn is None or (sim.holds(run) and thread.batch_open):
        return
    ids = tuple(sim.new("call") for _ in range(calls))
    drafts = [sim.draft(Role.ASSISTANT, calls=ids)]
    stored = sim.under(run, itself, turns.store_step, run.session, turn, drafts)
    if stored is not None:
        assert thread.turn is not None
        thread.said(drafts)
        thread.turn.steps += 1
        thread.turn.calls = dict.fromkeys(ids)


def note_attempt(sim: Sim, run: Run) -> None:
    """A cut stream is kept, outside the context."""
    drafts = [sim.draft(Role.ASSISTANT, kind=EntryKind.ATTEMPT)]
    if sim.holds(run) and not run.thread.open:
        sim.refused(
            SessionEnded, entries.append_entries, run.lease, run.session, drafts, turn=run.turn
        )
        return
    if (
        sim.under(run, itself, entries.append_entries, run.session, drafts, turn=run.turn)
        is not None
    ):
        run.thread.said(drafts)


def steer(sim: Sim, run: Run) -> None:
    thread, turn = run.thread, run.turn
    if turn is None or (sim.holds(run) and thread.batch_open):
        return
    step = thread.turn.steps + 1 if thread.turn is not None else 1
    stopped = thread.turn is not None and thread.turn.stop is not None
    expected = sim.desk.do(_steering, thread.id) if sim.holds(run) and not stopped else []
    items = (
        [item for item in sim.desk.do(inbox.list_open_items, thread.id) if item.id in expected]
        if expected
        else []
    )
    found = sim.under(
        run,
        itself,
        turns.steer_turn,
        run.session,
        turn,
        step=step,
        after=len(thread.log),
        compose=compose,
    )
    if found is None:
        return
    # Repeated later, it would also tell what came later.
    sim.history.pop()
    assert [entry.id for entry in found] == [compose(item).id for item in items]
    for item in items:
        del thread.items[item.id]
    thread.said([compose(item) for item in items])


def _key(run: Run, call: str) -> CallKey:
    assert run.turn is not None
    steps = run.thread.turn.steps if run.thread.turn is not None else 1
    return CallKey(turn_id=run.turn, step=max(steps, 1), call_id=call)


def _call(run: Run, index: int) -> str:
    doing = run.thread.turn
    calls = list(doing.calls) if doing is not None else []
    return calls[index % len(calls)] if calls else "call_0"


def _first(result: tuple[JournaledCall, bool]) -> object:
    return result[0].key, result[0].args, result[0].effect


def run_tool(sim: Sim, run: Run, index: int, effect: Effect) -> None:
    """The intent of a call is stored; one that was stored by an owner that is gone: by effect."""
    doing = run.thread.turn
    if run.turn is None or (sim.holds(run) and not run.thread.batch_open):
        return
    call = _call(run, index)
    key = _key(run, call)
    result = sim.under(
        run, _first, journal.record_intent, key, position=index, tool="t", args="{}", effect=effect
    )
    if result is None:
        return
    assert doing is not None
    known, first = result
    assert first is (doing.calls[call] is None)
    if first:
        doing.calls[call] = "intended"
    elif known.status is None and resume_action(known.effect) is ResumeAction.RUN:
        again = sim.desk.do(journal.count_rerun, run.lease, key)
        assert again.runs == known.runs + 1


def settle(sim: Sim, run: Run, index: int, status: CallStatus) -> None:
    """A call's result is stored; the first one stays."""
    doing = run.thread.turn
    if run.turn is None or (doing is not None and sim.holds(run) and not doing.calls):
        return
    call = _call(run, index)
    if sim.holds(run) and (doing is None or doing.calls.get(call) is None):
        return
    result = sim.new("result")
    stored = sim.under(
        run, _settled, journal.record_result, _key(run, call), status, format=FORMAT, result=result
    )
    if stored is not None:
        assert doing is not None
        assert (stored.result == result) is (doing.calls[call] == "intended")
        doing.calls[call] = "settled"


def _settled(call: JournaledCall) -> object:
    return call.key, call.status, call.result


def hand_in(sim: Sim, run: Run) -> None:
    """All calls of the batch have results: they become one entry, in call order."""
    doing = run.thread.turn
    if doing is None or run.turn is None or not sim.holds(run) or not doing.calls:
        return
    if any(state != "settled" for state in doing.calls.values()):
        return
    drafts = [sim.draft(Role.TOOL, answers=tuple(doing.calls))]
    stored = sim.under(run, itself, entries.append_entries, run.session, drafts, turn=run.turn)
    assert stored is not None
    run.thread.said(drafts)
    doing.calls = {}


def ask(sim: Sim, run: Run, index: int) -> None:
    doing = run.thread.turn
    if doing is None or run.turn is None or (sim.holds(run) and not doing.calls):
        return
    call, approval = _call(run, index), ApprovalId(sim.new("apr"))
    asked = sim.under(
        run, lambda asked: asked.id, approvals.request_approval, _key(run, call),
        approval=approval, tool="t",
        args="{}", route=None, expires_in=timedelta(seconds=60),
    )  # fmt: skip
    if asked is None:
        return
    if asked.id == approval and doing.calls[call] == "intended":
        # A call that has to be asked for has not begun; to begin it is a new call then.
        doing.calls[call] = None
        key = _key(run, call)
        sim.history = [
            c for c in sim.history if c.job is not journal.record_intent or key not in c.args
        ]
    if asked.state is ApprovalState.OPEN:
        assert asked.id in (approval, doing.approvals.get(call))
        doing.approvals[call] = asked.id
        doing.deadlines[asked.id] = int(asked.expires_at.timestamp() * 1000)


def answer(sim: Sim, thread: Thread, state: ApprovalState) -> None:
    doing = thread.turn
    if doing is None or not doing.approvals:
        return
    call, approval = list(doing.approvals.items())[-1]
    if doing.deadlines[approval] <= sim.world.now:
        sim.refused(InvalidTransition, approvals.answer_approval, approval, state, answered_by="p")
        return
    del doing.approvals[call]
    answered = sim.call(
        lambda a: (a.id, a.state), approvals.answer_approval, approval, state, answered_by="p"
    )
    assert (answered.call_id, answered.state) == (call, state)
    other = ApprovalState.EXPIRED if state is not ApprovalState.EXPIRED else ApprovalState.DENIED
    sim.refused(InvalidTransition, approvals.answer_approval, approval, other, answered_by="late")


def expire(sim: Sim) -> None:
    """Questions whose time is over end, and their turns may go on."""
    ended = sim.desk.do(approvals.expire_approvals)
    over: list[ConversationId] = []
    for thread in sim.threads.values():
        doing = thread.turn
        if doing is not None:
            left = {c: a for c, a in doing.approvals.items() if doing.deadlines[a] > sim.world.now}
            over += [thread.id] * (left != doing.approvals)
            doing.approvals = left
    assert sorted(ended) == sorted(over)


def wait(sim: Sim, run: Run) -> None:
    """Only approvals are open: the turn waits, the lease is let go."""
    doing = run.thread.turn
    if run.turn is None or (sim.holds(run) and (doing is None or not doing.approvals)):
        return
    if not sim.holds(run) and doing is not None and doing.state is TurnState.WAITING:
        return
    result = sim.under(run, lambda turn: (turn.id, turn.state), turns.suspend_turn, run.turn)
    if result is not None:
        assert doing is not None
        doing.state, run.thread.lease = TurnState.WAITING, None
        sim.drop(run)


def request_stop(sim: Sim, thread: Thread, stop: StopRequest) -> None:
    if thread.turn is None:
        return
    asked = sim.desk.do(turn_queries.request_stop, thread.turn.id, stop)
    assert asked is (thread.turn.stop is None)
    thread.turn.stop = thread.turn.stop or stop
    sim.touched.add(thread.id)


def finish(sim: Sim, run: Run, outcome: TurnOutcome, deliveries: int) -> None:
    """The last entries, the outcome and the deliveries: one commit."""
    thread, turn = run.thread, run.turn
    if turn is None:
        return
    doing = thread.turn
    if not sim.holds(run) and (doing is None or doing.id != turn):
        _finish_what_is_done(sim, run, turn)
        return
    if sim.holds(run) and doing is not None and doing.stop is StopRequest.ROLLBACK:
        sim.refused(TurnRolledBack, turns.finish_turn, run.lease, run.session, turn, outcome)
        _roll_back(sim, run, turn)
        return
    drafts = _last_words(sim, doing, outcome)
    new = [
        NewDelivery(
            id=DeliveryId(sim.new("dlv")),
            route=ROUTES[n % len(ROUTES)].key,
            kind=DeliveryKind.ANSWER,
            body="{}",
        )
        for n in range(deliveries)
    ]
    done = sim.under(
        run, itself, turns.finish_turn, run.session, turn, outcome, drafts=drafts, deliveries=new
    )
    if done is not None:
        assert done.outcome is outcome
        thread.said(drafts)
        thread.turn = thread.lease = None
        sim.deliveries |= dict.fromkeys([one.id for one in new], DeliveryState.PENDING)
        sim.drop(run)


def _roll_back(sim: Sim, run: Run, turn: TurnId) -> None:
    """The turn ends as cancelled, and the context is what it was before it."""
    thread = run.thread
    drafts = _last_words(sim, thread.turn, TurnOutcome.CANCELLED)
    before = sim.desk.do(turn_queries.get_turn, turn)
    done = sim.under(
        run, itself, rewinds.roll_back_turn, run.session, before, drafts=drafts,
        session_ids=sim.session_ids,
    )  # fmt: skip
    assert done is not None
    assert done.outcome is TurnOutcome.CANCELLED
    thread.said(drafts)
    head = sim.desk.do(turns.get_head, thread.id)
    thread.rewound(head.id, thread.after[before.first_seq - 1])
    thread.turn = thread.lease = None
    sim.drop(run)


def _last_words(sim: Sim, doing: Doing | None, outcome: TurnOutcome) -> list[NewEntry]:
    """An open batch gets its results; a turn that was answered ends with the answer."""
    drafts: list[NewEntry] = []
    if doing is not None and doing.calls:
        drafts.append(sim.draft(Role.TOOL, answers=tuple(doing.calls)))
    if outcome is TurnOutcome.ANSWERED:
        drafts.append(sim.draft(Role.ASSISTANT))
    return drafts


def _finish_what_is_done(sim: Sim, run: Run, turn: TurnId) -> None:
    """A stale owner finishes a turn that another one finished: it learns the outcome."""
    if run.thread.id not in sim.threads:
        return
    before = sim.desk.snapshot()
    known = sim.desk.do(turn_queries.get_turn, turn)
    again = sim.desk.do(
        turns.finish_turn, run.lease, run.session, turn, TurnOutcome.FAILED, error="x"
    )
    assert again == known
    assert sim.desk.snapshot() == before
    sim.drop(run)


def drain(sim: Sim, run: Run) -> None:
    """The process stops in order: the turn stays for the next owner."""
    sim.desk.do(leases.release_lease, run.lease)
    if sim.holds(run):
        run.thread.lease = None
    sim.drop(run)
    sim.touched.add(run.thread.id)


def renew(sim: Sim, run: Run) -> None:
    sim.touched.add(run.thread.id)
    if not sim.holds(run):
        sim.refused(LeaseLost, leases.renew_lease, run.lease)
        sim.drop(run)
        return
    run.thread.lease = run.lease = sim.desk.do(leases.renew_lease, run.lease)


def close_item(sim: Sim, run: Run) -> None:
    """A command was carried out: that is recorded, and the lease is let go."""
    item, thread = run.item, run.thread
    if item is None or not sim.holds(run):
        return
    first = sim.desk.do(inbox.mark_executed, item.id, note="done")
    assert first is (item.id in thread.items)
    thread.items.pop(item.id, None)
    drain(sim, run)


def work(sim: Sim, run: Run, choice: int) -> None:
    """The next thing to do, as the stored context says it, with a choice where there is one."""
    doing = run.thread.turn
    if run.item is not None:
        (sessions.carry_out if choice % 2 else close_item)(sim, run)
    elif doing is not None and doing.calls:
        _work_on_batch(sim, run, doing, choice)
    elif choice % 5 == 0:
        steer(sim, run)
    elif choice % 4 == 1:
        finish(sim, run, TurnOutcome.ANSWERED, choice % 3)
    else:
        respond(sim, run, choice % 4)


def _work_on_batch(sim: Sim, run: Run, doing: Doing, choice: int) -> None:
    states = list(doing.calls.values())
    effects, statuses = list(Effect), list(CallStatus)
    if None in states:
        run_tool(sim, run, states.index(None), effects[choice % len(effects)])
    elif "intended" in states:
        settle(sim, run, states.index("intended"), statuses[choice % len(statuses)])
    else:
        hand_in(sim, run)
