"""Double text: what a message that arrives in mid turn leads to."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.clock import EPOCH
from clew.core.double_text import (
    MAX_COLLECTED,
    MAX_WINDOW,
    QUIET_PERIOD,
    DoubleText,
    parse_rule,
    window_end,
)
from clew.core.ids import ConversationId, InboxId
from clew.core.inbox import InboxItem, InboxKind
from clew.core.route import RouteKey
from clew.core.work_queue import (
    RunCommand,
    StartTurn,
    WaitUntil,
    next_work,
    select_interruption,
    select_steering,
)
from clew.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

NOW = EPOCH + timedelta(days=20_000)
LATER = NOW + timedelta(seconds=1)


def item(
    n: int,
    rule: DoubleText = DoubleText.QUEUE,
    kind: InboxKind = InboxKind.MESSAGE,
    due_at: datetime = NOW,
    route: str = "r",
) -> InboxItem:
    return InboxItem(
        n=n,
        id=InboxId(f"inb_{n}"),
        conversation_id=ConversationId("cnv"),
        route=RouteKey(route),
        kind=kind,
        text="",
        payload="{}",
        double_text=rule,
        received_at=NOW,
        due_at=due_at,
    )


def _numbered(items: list[InboxItem]) -> list[InboxItem]:
    return [replace(one, n=n, id=InboxId(f"inb_{n}")) for n, one in enumerate(items)]


LINES = st.lists(
    st.builds(
        item,
        st.just(0),
        st.sampled_from(DoubleText),
        st.sampled_from(InboxKind),
        st.sampled_from([NOW, LATER]),
        st.sampled_from(["r", "s"]),
    ),
    max_size=14,
).map(_numbered)


def test_auto_collects_from_people_and_queues_from_programs() -> None:
    assert parse_rule("auto", people=True) is DoubleText.COLLECT
    assert parse_rule("auto", people=False) is DoubleText.QUEUE


@pytest.mark.parametrize("rule", DoubleText)
def test_a_rule_is_taken_by_its_name(rule: DoubleText) -> None:
    assert parse_rule(rule.value, people=True) is rule


def test_an_unknown_rule_is_refused_with_those_that_there_are() -> None:
    with pytest.raises(UsageError, match="auto, queue, steer"):
        parse_rule("later", people=True)


def test_a_window_closes_after_some_quiet() -> None:
    assert window_end(NOW, earlier=[]) == NOW + QUIET_PERIOD
    assert window_end(NOW, earlier=[NOW - QUIET_PERIOD]) == NOW + QUIET_PERIOD


def test_a_window_closes_a_while_after_its_first_message_whatever_comes() -> None:
    first = NOW - MAX_WINDOW + QUIET_PERIOD / 2
    assert window_end(NOW, earlier=[first, NOW]) == first + MAX_WINDOW


def test_a_window_closes_when_it_is_full() -> None:
    assert window_end(NOW, earlier=[NOW] * (MAX_COLLECTED - 1)) == NOW
    assert window_end(NOW, earlier=[NOW] * (MAX_COLLECTED - 2)) == NOW + QUIET_PERIOD


@given(st.lists(st.integers(0, 3000).map(lambda ms: NOW - timedelta(milliseconds=ms)), max_size=12))
def test_a_window_never_closes_late(earlier: Sequence[datetime]) -> None:
    closes = window_end(NOW, earlier=earlier)
    assert closes <= NOW + QUIET_PERIOD
    assert closes <= min(earlier, default=NOW) + MAX_WINDOW or closes == NOW


def test_an_empty_line_asks_for_nothing() -> None:
    assert next_work([], NOW) is None


@pytest.mark.parametrize("rule", [rule for rule in DoubleText if rule is not DoubleText.COLLECT])
def test_a_message_begins_a_turn_of_its_own(rule: DoubleText) -> None:
    line = [item(1, rule), item(2, rule)]
    assert next_work(line, NOW) == StartTurn(items=(line[0],))


def test_a_burst_begins_one_turn_up_to_whatever_is_no_part_of_it() -> None:
    collect = DoubleText.COLLECT
    burst = [item(1, collect), item(2, collect)]
    for other in (
        item(3), item(3, collect, due_at=LATER), item(3, collect, route="s"),
        item(3, collect, InboxKind.COMMAND),
    ):  # fmt: skip
        line = [*burst, other, item(4, collect)]
        assert next_work(line, NOW) == StartTurn(items=tuple(burst))


def test_a_burst_is_not_larger_than_a_window() -> None:
    line = [item(n, DoubleText.COLLECT) for n in range(MAX_COLLECTED + 3)]
    assert next_work(line, NOW) == StartTurn(items=tuple(line[:MAX_COLLECTED]))


def test_a_message_that_still_collects_is_waited_for_with_all_behind_it() -> None:
    line = [item(1, DoubleText.COLLECT, due_at=LATER), item(2)]
    assert next_work(line, NOW) == WaitUntil(until=LATER)


@pytest.mark.parametrize("kind", [InboxKind.COMMAND, InboxKind.EXPIRY])
def test_a_command_is_carried_out_in_its_place(kind: InboxKind) -> None:
    line = [item(1, kind=kind), item(2)]
    assert next_work(line, NOW) == RunCommand(item=line[0])
    assert next_work(line[::-1], NOW) == StartTurn(items=(line[1],))


@given(LINES)
def test_the_line_is_first_in_first_out(line: list[InboxItem]) -> None:
    work = next_work(line, NOW)
    taken: tuple[InboxItem, ...] = ()
    if isinstance(work, StartTurn):
        taken = work.items
    elif isinstance(work, RunCommand):
        taken = (work.item,)
    assert list(taken) == line[: len(taken)]


@given(LINES)
def test_nothing_is_taken_before_it_is_due(line: list[InboxItem]) -> None:
    work = next_work(line, NOW)
    if isinstance(work, StartTurn):
        assert all(one.due_at <= NOW for one in work.items)
    if isinstance(work, WaitUntil):
        assert work.until > NOW


def test_messages_that_steer_join_and_those_that_queue_stay() -> None:
    steer, queue = item(1, DoubleText.STEER), item(2)
    collect, late = item(3, DoubleText.COLLECT), item(4, DoubleText.COLLECT, due_at=LATER)
    assert select_steering([steer, queue, collect, late], NOW) == (steer, collect)


def test_completions_begin_a_turn_with_the_message_behind_them_or_when_they_are_due() -> None:
    ended, other = item(1, kind=InboxKind.COMPLETION), item(2, kind=InboxKind.COMPLETION)
    late, said = replace(other, due_at=LATER), item(3, DoubleText.STEER)
    burst = [item(n, DoubleText.COLLECT) for n in (3, 4)]
    command = item(5, kind=InboxKind.COMMAND)
    for line, work in (
        ([ended, other, *burst, said], StartTurn(items=(ended, other, *burst))),
        ([ended, other, said, command], StartTurn(items=(ended, other, said))),
        ([ended, late, said], StartTurn(items=(ended,))),
        ([late, command], WaitUntil(until=LATER)),
        ([ended] * 12, StartTurn(items=(ended,) * 10)),
    ):
        assert next_work(line, NOW) == work, line
    steering = [replace(one, double_text=DoubleText.STEER) for one in (ended, late, said)]
    assert select_steering(steering, NOW) == (steering[0], steering[2])
    assert select_interruption(steering, NOW) == (steering[2],)
    assert select_interruption(steering[:1], NOW) == ()
    far = replace(steering[0], payload='{"unattended": true, "hops": 6}')
    assert select_steering([far, steering[0], steering[2]], NOW) == (steering[2],)


def test_nothing_steers_past_a_command() -> None:
    command = item(1, DoubleText.STEER, InboxKind.COMMAND)
    assert select_steering([command, item(2, DoubleText.STEER)], NOW) == ()


@given(LINES)
def test_a_steering_message_precedes_every_command_and_is_due(line: list[InboxItem]) -> None:
    said = (InboxKind.MESSAGE, InboxKind.COMPLETION)
    commands = [n for n, one in enumerate(line) if one.kind not in said]
    for one in select_steering(line, NOW):
        assert line.index(one) < min(commands, default=len(line))
        assert one.due_at <= NOW
        assert one.double_text in (DoubleText.STEER, DoubleText.COLLECT)
