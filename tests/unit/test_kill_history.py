"""The judge of the kill campaigns: a good history is good, and each planted fault is found."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from clew.testing.provider import CapturedRequest
from tests.killing.history import History, in_time, judge, overlaps, resume_times, seen
from tests.killing.records import (
    Acknowledged,
    Allowed,
    Effect,
    Ended,
    Handed,
    Ready,
    Record,
    Resumed,
)

if TYPE_CHECKING:
    from collections.abc import Callable

_times = itertools.count(1)

Json = dict[str, Any]
SYSTEM: Json = {"role": "system", "content": "Do what the message says."}


def user(text: str) -> Json:
    return {"role": "user", "content": text}


def said(text: str) -> Json:
    return {"role": "assistant", "content": text}


def calls(**tools: str) -> Json:
    found = [
        {"id": what, "type": "function", "function": {"name": tool, "arguments": "{}"}}
        for what, tool in tools.items()
    ]
    return {"role": "assistant", "content": None, "tool_calls": found}


def result(what: str, text: str) -> Json:
    return {"role": "tool", "tool_call_id": what, "content": text}


FIRST = [SYSTEM, user("c1m1: look put send pay")]
CALLED = [
    *FIRST,
    calls(c1m1s0p0="look", c1m1s0p1="put", c1m1s0p2="send", c1m1s0p3="pay"),
    result("c1m1s0p0", "look c1m1s0p0 done"),
    result("c1m1s0p1", "put c1m1s0p1 done"),
    result("c1m1s0p2", "send c1m1s0p2 done"),
    result("c1m1s0p3", "pay c1m1s0p3 done"),
]
SECOND = [*CALLED, said("answer to c1m1"), user("c1m2: ")]


def request(
    number: int, messages: list[Json], text: str, outcome: str = "answered"
) -> CapturedRequest:
    body = {"model": "fake-model", "messages": messages}
    return CapturedRequest(
        number=number,
        format="chat",
        path="/v1/chat/completions",
        headers={},
        body=json.dumps(body).encode(),
        json=body,
        stream=False,
        started=float(number),
        ended=number + 0.5,
        outcome=outcome,  # pyright: ignore[reportArgumentType]
        text=text,
    )


def at() -> dict[str, Any]:
    return {"pid": 1, "at": float(next(_times))}


def handed(key: str) -> list[Record]:
    number = key[-1]
    return [
        Handed(key=key, text=f"{key}: ", rule="queue", **at()),
        Acknowledged(
            key=key, inbox_id=f"inb_{number}", conversation="cnv_1", duplicate=False, **at()
        ),
    ]


def ended(key: str, text: str) -> Ended:
    return Ended(
        key=key, outcome="turn", turn=f"trn_{key}", turn_outcome="answered", text=text, **at()
    )


def effect(what: str, tool: str, kind: str, *, key: str | None = None) -> Effect:
    return Effect(what=what, tool=tool, effect=kind, key=key or what, **at())


class World:
    """A good history that a test spoils."""

    def __init__(self) -> None:
        self.fronts: list[Record] = [
            *handed("c1m1"),
            *handed("c1m2"),
            Allowed(what="c1m1s0p3", **at()),
            ended("c1m1", "answer to c1m1"),
            ended("c1m2", "answer to c1m2"),
        ]
        # The process was killed between: what may be repeated was repeated.
        self.effects = [
            effect("c1m1s0p0", "look", "pure"),
            effect("c1m1s0p0", "look", "pure"),
            effect("c1m1s0p1", "put", "idempotent"),
            effect("c1m1s0p1", "put", "idempotent"),
            effect("c1m1s0p2", "send", "once"),
            effect("c1m1s0p3", "pay", "once"),
        ]
        self.requests = [
            request(1, FIRST, "", "client_gone"),
            request(2, FIRST, ""),
            request(3, CALLED, "answer to c1m1"),
            request(4, CALLED, "answer to c1m1"),
            request(5, SECOND, "answer to c1m2"),
        ]

    def history(self) -> History:
        return History(fronts=self.fronts, effects=self.effects, requests=seen(self.requests))

    def replace_last(self, messages: list[Json], text: str = "answer to c1m2") -> None:
        self.requests[-1] = request(5, messages, text)

    def replace_end(self, **changes: str) -> None:
        last = self.fronts[-1]
        assert isinstance(last, Ended)
        self.fronts[-1] = replace(last, **changes)


def test_a_history_in_which_all_went_well_is_good() -> None:
    assert judge(World().history()) == []


def _lost(world: World) -> None:
    world.replace_last([SYSTEM, user("c1m2: ")])


def _doubled(world: World) -> None:
    world.replace_last([*SECOND, user("c1m2: ")])


def _reordered(world: World) -> None:
    world.replace_last([SYSTEM, user("c1m2: "), *SECOND[1:-1]])


def _stranger(world: World) -> None:
    world.replace_last([*SECOND[:-1], user("c1m3: ")], "answer to c1m3")


def _no_outcome(world: World) -> None:
    del world.fronts[-1]


def _two_outcomes(world: World) -> None:
    world.fronts.append(replace(ended("c1m2", "answer to c1m2"), turn="trn_other"))


def _accepted_twice(world: World) -> None:
    world.fronts.append(
        Acknowledged(key="c1m2", inbox_id="inb_9", conversation="cnv_1", duplicate=False, **at())
    )


def _never_accepted(world: World) -> None:
    world.fronts.append(Handed(key="c1m3", text="c1m3: ", rule="queue", **at()))


def _failed(world: World) -> None:
    world.replace_end(turn_outcome="failed", text="That failed: no reason.")


def _silent(world: World) -> None:
    world.replace_end(text="")


def _told_otherwise(world: World) -> None:
    world.replace_end(text="answer to somebody else")


def _answered_twice(world: World) -> None:
    world.replace_last([*SECOND[:-1], said("answer to c1m1"), user("c1m2: ")])


def _not_answered(world: World) -> None:
    world.replace_last([*CALLED, user("c1m2: ")])


def _refused(world: World) -> None:
    world.requests.append(request(6, SECOND, "", "refused"))


def _changed_prefix(world: World) -> None:
    world.replace_last([{**SYSTEM, "content": "Do what you like."}, *SECOND[1:]])


def _no_result(world: World) -> None:
    world.replace_last([*SECOND[:3], *SECOND[4:]])


def _two_results(world: World) -> None:
    world.replace_last([*SECOND[:4], *SECOND[3:]])


def _result_of_nothing(world: World) -> None:
    world.replace_last([*SECOND[:7], result("c1m1s0p9", "look c1m1s0p9 done"), *SECOND[7:]])


def _pure_unknown(world: World) -> None:
    changed = result("c1m1s0p0", "interrupted, outcome unknown: who knows")
    world.replace_last([*SECOND[:3], changed, *SECOND[4:]])


def _lied(world: World) -> None:
    world.effects = [one for one in world.effects if one.what != "c1m1s0p2"]


def _sent_twice(world: World) -> None:
    world.effects.append(effect("c1m1s0p2", "send", "once"))


def _paid_unasked(world: World) -> None:
    world.fronts = [record for record in world.fronts if not isinstance(record, Allowed)]


def _other_key(world: World) -> None:
    world.effects.append(effect("c1m1s0p1", "put", "idempotent", key="another"))


def _shared_key(world: World) -> None:
    world.effects.append(effect("c1m2s0p0", "put", "idempotent", key="c1m1s0p1"))


def _wiped_thrice(world: World) -> None:
    wiped = [effect("c1m1s0p4", "wipe", "ask") for _ in range(3)]
    world.effects += wiped
    world.fronts.append(Allowed(what="c1m1s0p4", **at()))


FAULTS: dict[Callable[[World], None], str] = {
    _lost: "request 5 of c1 has ['c1m2'], said was ['c1m1']",
    _doubled: "has c1m2 2 times",
    _reordered: "has ['c1m2', 'c1m1'], said was",
    _stranger: "has c1m3, which nobody said there",
    _no_outcome: "c1m2 has 0 outcomes",
    _two_outcomes: "c1m2 has 2 outcomes",
    _accepted_twice: "c1m2 was accepted as 2 inputs",
    _never_accepted: "c1m3 was accepted as 0 inputs",
    _failed: "c1m2 ended as turn, its turn as failed",
    _silent: "c1m2 ended in silence",
    _told_otherwise: "c1m2 was told 'answer to somebody else'",
    _answered_twice: "c1m1 has 2 answers",
    _not_answered: "c1m1 has 0 answers",
    _refused: "request 6 of c1 was refused",
    _changed_prefix: "request 5 of c1 does not begin as request 4 did",
    _no_result: "call c1m1s0p0 of c1 has 0 results",
    _two_results: "call c1m1s0p0 of c1 has 2 results",
    _result_of_nothing: "there is a result of c1m1s0p9",
    _pure_unknown: "look c1m1s0p0 was done 2 times, its result is 'interrupted, outcome unknown",
    _lied: "send c1m1s0p2 was done 0 times, its result is 'send c1m1s0p2 done'",
    _sent_twice: "c1m1s0p2 had its effect 2 times",
    _paid_unasked: "c1m1s0p3 was done before anybody allowed it",
    _other_key: "c1m1s0p1 was repeated with another key",
    _shared_key: "have the key c1m1s0p1",
    _wiped_thrice: "c1m1s0p4 had its effect 3 times, allowed were 1",
}


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__.strip("_"))
def test_a_planted_fault_is_found(fault: Callable[[World], None]) -> None:
    world = World()
    fault(world)
    found = judge(world.history())
    assert any(FAULTS[fault] in sentence for sentence in found), found


def test_a_message_whose_failure_is_expected_must_fail() -> None:
    world = World()
    assert any(
        "c1m2 ended as turn" in sentence for sentence in judge(world.history(), failed=["c1m2"])
    )
    _failed(world)
    assert judge(world.history(), failed=["c1m2"]) == []


def test_an_interrupted_once_call_has_an_unknown_outcome() -> None:
    world = World()
    changed = result("c1m1s0p2", "interrupted, outcome unknown: it was begun before a restart")
    messages = [*SECOND[:5], changed, *SECOND[6:]]
    world.requests[2:] = [
        request(3, messages[:7], "answer to c1m1"),
        request(5, messages, "answer to c1m2"),
    ]
    assert judge(world.history()) == []
    _lied(world)
    assert judge(world.history()) == []


def test_in_a_turn_that_failed_only_what_had_no_effect_is_called_off() -> None:
    world = World()
    first, second = world.fronts[-2:]
    assert isinstance(first, Ended)
    world.fronts[-2:] = [replace(first, turn_outcome="failed", text="It failed."), second]
    called_off = result("c1m1s0p2", "cancelled: the turn failed")
    messages = [*SECOND[:5], called_off, *SECOND[6:7], user("c1m2: ")]
    world.requests[2:] = [request(5, messages, "answer to c1m2")]
    found = judge(world.history(), failed=["c1m1"])
    assert found == ["send c1m1s0p2 was done 1 times, its result is 'cancelled: the turn failed'"]
    _lied(world)
    assert judge(world.history(), failed=["c1m1"]) == []


def test_only_what_a_link_held_back_is_left_out() -> None:
    whole = [request(1, FIRST, ""), request(2, CALLED, "answer to c1m1"), request(3, SECOND, "")]
    other = [SYSTEM, user("c1m1: something else")]
    for late, left_out in ((FIRST, True), (CALLED, True), (SECOND, False), (other, False)):
        kept = in_time(seen([*whole, request(4, late, "")]))
        assert [each.number for each in kept] == [1, 2, 3] + [4] * (not left_out)


def test_requests_that_are_under_way_together_are_found() -> None:
    world = World()
    assert overlaps(world.history()) == []
    world.requests[0] = replace(world.requests[0], ended=2.2)
    assert overlaps(world.history()) == []
    world.requests[1] = replace(world.requests[1], ended=3.2)
    assert overlaps(world.history()) == ["requests 2 and 3 of c1 overlap"]


def test_the_time_to_resume_is_counted_from_when_a_process_was_ready() -> None:
    records: list[Record] = [
        Resumed(turn="trn_0", pid=1, at=0.5),
        Ready(pid=1, at=1.0),
        Resumed(turn="trn_1", pid=1, at=1.25),
        Resumed(turn="trn_1", pid=1, at=9.0),
        Ready(pid=2, at=10.0),
        Resumed(turn="trn_1", pid=2, at=10.5),
    ]
    assert resume_times(records) == [0.25, 0.5]
