"""
Owners that die, stall and repeat themselves, in any order: every invariant holds after every step.

Hypothesis chooses the moves; ``simulation`` carries them out on a real database and compares the
store with a small model. ``make soak state_machine`` runs the same for far longer.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from clew.core.approval import ApprovalState
from clew.core.delivery import DeliveryState
from clew.core.double_text import DoubleText
from clew.core.effect import Effect
from clew.core.inbox import InboxKind
from clew.core.journal import CallStatus
from clew.core.turn import StopRequest, TurnOutcome
from tests.contract.desk import Desk, desk_at
from tests.contract.simulation import deliveries, faults, inputs, sessions, turns
from tests.contract.simulation.sim import ROUTES, Sim, compare_logs

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from clew.core.ids import OwnerId
    from clew.core.route import Route
    from tests.contract.simulation.model import Run, Thread

STEPS = 50
PHASES = (
    (Phase.generate,)
    if os.environ.get("CLEW_NO_SHRINK")
    else (Phase.reuse, Phase.generate, Phase.shrink)
)
#: Examples per database, some 1,000 steps together; `make soak state_machine` takes far more.
EXAMPLES = {"sqlite": 14, "postgres": 6}

ANY = st.integers(0, 47)
ROUTE = st.sampled_from(ROUTES)
RULES = st.sampled_from(DoubleText)
#: Milliseconds: within a collect window, past it, past a lease, past an approval.
WAITS = st.sampled_from([1, 200, 700, 3_100, 8_000, 16_000, 70_000])


class Owners(RuleBasedStateMachine):
    """Each rule is one move, of one owner or of fate."""

    desk: Desk
    #: Moves made, over all examples.
    steps = 0

    @initialize()
    def begin_world(self) -> None:
        self.desk.fresh()
        self.sim = Sim(self.desk)
        for _ in range(2):
            faults.new_owner(self.sim)
        inputs.accept(self.sim, ROUTES[0], InboxKind.MESSAGE, DoubleText.QUEUE, event=True)

    @invariant()
    def every_invariant_holds(self) -> None:
        if hasattr(self, "sim"):
            type(self).steps += 1
            self.sim.verify()

    def teardown(self) -> None:
        if hasattr(self, "sim"):
            compare_logs(self.sim)

    def owner(self, index: int) -> OwnerId:
        return self.sim.owners[index % len(self.sim.owners)]

    def thread(self, index: int) -> Thread:
        return list(self.sim.threads.values())[index % len(self.sim.threads)]

    def thread_with_work(self, index: int) -> Thread:
        threads = list(self.sim.threads.values())
        busy = [thread for thread in threads if thread.busy] or threads
        return busy[index % len(busy)]

    def run_of(self, index: int) -> Run:
        return self.sim.runs[index % len(self.sim.runs)]

    def working(self) -> bool:
        return bool(self.sim.runs)

    def has_threads(self) -> bool:
        return bool(self.sim.threads)

    def has_few_threads(self) -> bool:
        return 0 < len(self.sim.threads) < 4

    def has_batches(self) -> bool:
        return any(run.thread.batch_open for run in self.sim.runs)

    def has_approvals(self) -> bool:
        return any(t.turn is not None and t.turn.approvals for t in self.sim.threads.values())

    def has_items(self) -> bool:
        return any(thread.items for thread in self.sim.threads.values())

    def has_long_threads(self) -> bool:
        return any(len(thread.log) > 3 for thread in self.sim.threads.values())

    def has_deliveries(self) -> bool:
        return bool(self.sim.deliveries)

    # Actions of fronts.

    @rule(route=ROUTE, double_text=RULES, event=st.booleans())
    def accept_a_message(self, route: Route, double_text: DoubleText, event: bool) -> None:
        inputs.accept(self.sim, route, InboxKind.MESSAGE, double_text, event=event)

    @precondition(has_threads)
    @rule(which=ANY, kind=st.sampled_from(InboxKind), double_text=RULES)
    def accept_by_id(self, which: int, kind: InboxKind, double_text: DoubleText) -> None:
        inputs.accept(self.sim, self.thread(which).id, kind, double_text, event=False)

    @precondition(lambda self: bool(self.sim.events))
    @rule(which=ANY, route=ROUTE)
    def redeliver_an_event(self, which: int, route: Route) -> None:
        inputs.redeliver(self.sim, which, route)

    @precondition(has_items)
    @rule(which=ANY, item=ANY, edited=st.booleans())
    def touch_the_line(self, which: int, item: int, edited: bool) -> None:
        thread = self.thread(which)
        if thread.items:
            (inputs.edit if edited else inputs.cancel)(self.sim, thread, item)

    @precondition(has_threads)
    @rule(which=ANY, stop=st.sampled_from(StopRequest))
    def ask_to_stop(self, which: int, stop: StopRequest) -> None:
        turns.request_stop(self.sim, self.thread(which), stop)

    @precondition(has_approvals)
    @rule(which=ANY, state=st.sampled_from(list(ApprovalState)[1:]))
    def answer_an_approval(self, which: int, state: ApprovalState) -> None:
        turns.answer(self.sim, self.thread(which), state)

    @rule()
    def let_approvals_expire(self) -> None:
        turns.expire(self.sim)

    @precondition(has_threads)
    @rule(which=ANY, route=ROUTE)
    def move_a_route(self, which: int, route: Route) -> None:
        inputs.move_route(self.sim, route, self.thread(which))

    @precondition(has_threads)
    @rule(which=ANY, point=ANY)
    def look_back(self, which: int, point: int) -> None:
        sessions.look_back(self.sim, self.thread(which), point)
        inputs.resolve(self.sim, self.thread(which), point)

    # Actions of owners: mostly the next due one, so that turns make progress.

    @rule(which=ANY, choices=st.lists(ANY, min_size=1, max_size=8))
    def work(self, which: int, choices: list[int]) -> None:
        for choice in choices:
            self._work(which, choice)
            self.every_invariant_holds()

    def _work(self, which: int, choice: int) -> None:
        if self.sim.runs:
            turns.work(self.sim, self.run_of(which), choice)
        elif not any(thread.busy for thread in self.sim.threads.values()):
            inputs.accept(
                self.sim, ROUTES[0], InboxKind.MESSAGE, list(DoubleText)[choice % 3], event=False
            )
        else:
            turns.begin(self.sim, self.owner(choice), self.thread_with_work(which))
            self.sim.world.now += 250 * (choice % 4)

    @rule(which=ANY, choices=st.lists(ANY, min_size=4, max_size=12))
    def work_hard(self, which: int, choices: list[int]) -> None:
        self.work(which, choices)

    @precondition(has_threads)
    @rule(owner=ANY, which=ANY)
    def begin(self, owner: int, which: int) -> None:
        turns.begin(self.sim, self.owner(owner), self.thread_with_work(which))

    @rule(owner=ANY)
    def see_what_is_due(self, owner: int) -> None:
        turns.see_what_is_due(self.sim, self.owner(owner))

    @precondition(working)
    @rule(which=ANY)
    def begin_again(self, which: int) -> None:
        turns.begin_again(self.sim, self.run_of(which))

    @precondition(working)
    @rule(which=ANY)
    def note_an_attempt(self, which: int) -> None:
        turns.note_attempt(self.sim, self.run_of(which))

    @precondition(has_batches)
    @rule(which=ANY, call=ANY, effect=st.sampled_from(Effect), status=st.sampled_from(CallStatus))
    def touch_a_tool(self, which: int, call: int, effect: Effect, status: CallStatus) -> None:
        busy = [run for run in self.sim.runs if run.thread.batch_open]
        run = busy[which % len(busy)]
        turns.run_tool(self.sim, run, call, effect)
        turns.settle(self.sim, run, call, status)

    @precondition(has_batches)
    @rule(which=ANY, call=ANY, now=st.integers(0, 3))
    def ask_and_wait(self, which: int, call: int, now: int) -> None:
        busy = [run for run in self.sim.runs if run.thread.batch_open]
        run = busy[which % len(busy)]
        turns.ask(self.sim, run, call)
        if now:
            turns.wait(self.sim, run)

    @precondition(working)
    @rule(which=ANY, outcome=st.sampled_from(TurnOutcome), count=st.integers(0, 2))
    def finish(self, which: int, outcome: TurnOutcome, count: int) -> None:
        turns.finish(self.sim, self.run_of(which), outcome, count)

    @precondition(working)
    @rule(which=ANY, renewed=st.booleans())
    def renew_or_drain(self, which: int, renewed: bool) -> None:
        (turns.renew if renewed else turns.drain)(self.sim, self.run_of(which))

    # The current session.

    @precondition(working)
    @rule(which=ANY, cut=ANY)
    def compress(self, which: int, cut: int) -> None:
        sessions.compress(self.sim, self.run_of(which), cut)

    @precondition(working)
    @rule(which=ANY, to=ANY)
    def rewind(self, which: int, to: int) -> None:
        sessions.rewind(self.sim, self.run_of(which), to)

    @precondition(working)
    @rule(which=ANY)
    def restore(self, which: int) -> None:
        sessions.restore(self.sim, self.run_of(which))

    @precondition(working)
    @rule(which=ANY, stale_seq=st.booleans(), old=ANY)
    def expect_the_past(self, which: int, stale_seq: bool, old: int) -> None:
        sessions.conflict(self.sim, self.run_of(which), stale_seq=stale_seq)
        sessions.append_to_the_past(self.sim, self.run_of(which), old)

    @precondition(has_few_threads)
    @rule(which=ANY)
    def branch(self, which: int) -> None:
        sessions.branch(self.sim, self.thread(which))

    # Actions of channels.

    @precondition(has_deliveries)
    @rule(owner=ANY, route=ROUTE)
    def claim_a_delivery(self, owner: int, route: Route) -> None:
        deliveries.claim(self.sim, route, self.owner(owner))

    @precondition(has_deliveries)
    @rule(which=ANY, owner=ANY, state=st.sampled_from(DeliveryState))
    def move_a_delivery(self, which: int, owner: int, state: DeliveryState) -> None:
        deliveries.move(self.sim, which, state, self.owner(owner))

    @precondition(has_deliveries)
    @rule(which=ANY)
    def send_a_part(self, which: int) -> None:
        deliveries.send(self.sim, which)

    # Failures.

    @rule(millis=WAITS)
    def let_time_pass(self, millis: int) -> None:
        self.sim.world.now += millis

    @rule(which=ANY, really=st.booleans())
    def lose_an_owner(self, which: int, really: bool) -> None:
        (faults.kill if really else faults.lose_touch)(self.sim, self.owner(which))
        faults.new_owner(self.sim)

    @precondition(lambda self: bool(self.sim.ghosts))
    @rule(which=ANY, what=ANY)
    def use_a_lost_lease(self, which: int, what: int) -> None:
        faults.use_ghost(self.sim, self.sim.ghosts[which % len(self.sim.ghosts)], what)

    @rule()
    def lose_the_next_answer(self) -> None:
        self.sim.lose_answer = True

    @precondition(lambda self: bool(self.sim.history))
    @rule(which=st.integers(0, 1000))
    def repeat_an_earlier_call(self, which: int) -> None:
        faults.repeat(self.sim, which)

    @precondition(has_long_threads)
    @rule(which=ANY)
    def delete(self, which: int) -> None:
        faults.delete(self.sim, self.thread(which))

    @precondition(lambda self: bool(self.sim.deleted))
    @rule(which=ANY)
    def delete_a_slice(self, which: int) -> None:
        faults.delete_slice(self.sim, which)


def explore(desk: Desk, examples: int) -> int:
    """Run so many examples; how many steps that made."""
    machine = type("OwnersOnOneDesk", (Owners,), {"desk": desk})
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=examples,
            deadline=None,
            stateful_step_count=STEPS,
            report_multiple_bugs=False,
            phases=PHASES,
            suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
        ),
    )
    return machine.steps


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_every_invariant_holds_whatever_owners_and_fate_do(
    store_url: str, tmp_path: Path, record_property: Callable[[str, object], None]
) -> None:
    """3.1 to 3.12, together."""
    desk = desk_at(store_url, tmp_path)
    kind = "sqlite" if store_url.startswith("sqlite") else "postgres"
    examples = int(os.environ.get("CLEW_TEST_EXAMPLES", "0")) or EXAMPLES[kind]
    try:
        steps = explore(desk, examples)
    finally:
        desk.close()
    record_property("summary", f"state machine on {kind}: {steps:,} steps")
