"""The kill points: every row of the design's table of crashes, place by place."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from clew.core.double_text import DoubleText
from clew.store.transactions import approvals, compactions, journal, locks, submissions, turns
from tests.killing.killer import REQUEST, Place, job_name
from tests.killing.plans import BLANK

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(frozen=True, kw_only=True, slots=True)
class Point:
    """A named point, and messages that lead there."""

    #: The row of the design's table.
    row: str
    place: Place
    plans: tuple[str, ...]
    rule: DoubleText = DoubleText.QUEUE
    #: The place where the process that continues is killed as well.
    then: Place | None = None
    #: The difference to another point at the same place.
    note: str = ""
    #: Requests to the summariser until everything has ended.
    summaries: int = 0
    #: Left to the soak.
    long: bool = False

    @property
    def name(self) -> str:
        nth = f" ({self.place.nth})" if self.place.nth > 1 else ""
        then = f", then {self.then.name}" if self.then else ""
        return f"{self.row}: {self.place.name}{nth}{then}{self.note}"


#: Calls of several effects side by side, and a message that waits for its turn.
MIXED = ("look put send read", "")
ALONE = ("",)
_ROUND = ("before", "inside", "after")

_ACCEPT = job_name(submissions.submit_input)
_BEGIN = job_name(turns.begin_work)
_STEP = job_name(turns.store_step)
_STEER = job_name(turns.steer_turn)
_WAIT = job_name(turns.suspend_turn)
_FINISH = job_name(turns.finish_turn)
_INTEND = job_name(journal.record_intent)
_AGAIN = job_name(journal.count_rerun)
_SETTLE = job_name(journal.record_result)
_RESULTS = job_name(turns.store_request)
_ASK = job_name(approvals.request_approval)
_ANSWER = job_name(approvals.answer_approval)
_LOCK = job_name(locks.try_acquire_compression_lock)
_COUNT = job_name(compactions.save_compaction_state)
_COMPRESS = job_name(compactions.rotate_compacted)
_UNLOCK = job_name(locks.release_compression_lock)


def _points() -> Iterator[Point]:
    for moment in _ROUND:
        row = "accept, after commit" if moment == "after" else "accept, before commit"
        yield _at(row, f"{_ACCEPT} {moment}", ALONE)
    yield _at("accept, before commit", f"{_ACCEPT} before", MIXED, nth=2)
    yield _at("accept, after commit", f"{_ACCEPT} after", MIXED, nth=2)
    burst = ("look", "send", "put")
    yield _at("collect window", "front: all delivered", burst, rule=DoubleText.COLLECT)
    yield _at("collect window", f"{_ACCEPT} after", burst, nth=2, rule=DoubleText.COLLECT)
    for moment in _ROUND:
        yield _at("begin", f"{_BEGIN} {moment}", ("look",))
    yield from _in_the_model_call()
    yield from _in_the_tools()
    yield from _while_asking()
    yield from _in_a_compaction()
    for moment in _ROUND:
        yield _at("finish", f"{_FINISH} {moment}", ("look", ""))
    yield _at("finish", "front: end told", ("send", ""))


def _in_the_model_call() -> Iterator[Point]:
    yield _at("request under way", REQUEST, ALONE)
    yield _at("request under way", REQUEST, ("look put",), nth=2)
    yield _at("stream under way", "front: delta", ALONE)
    yield _at("stream under way", "front: delta", ("send",), nth=4)
    for moment in ("before", "inside"):
        yield _at("request under way", f"{_STEP} {moment}", MIXED)
    yield _at("response stored, no intent", f"{_STEP} after", MIXED)
    yield Point(
        row="response stored, no intent",
        place=Place(name=f"{_STEP} after"),
        plans=(f"{BLANK}; look", ""),
        note=", a reply without sense",
    )
    yield _at("response stored, no intent", f"{_INTEND} before", MIXED, nth=2)
    yield _at("response stored, no intent", f"{_INTEND} inside", MIXED, nth=3)


def _in_the_tools() -> Iterator[Point]:
    yield _at("intent stored", f"{_INTEND} after", MIXED, nth=2)
    for tool in ("look", "read", "put", "send", "wipe", "pay"):
        for moment in ("before", "after"):
            plans = (f"read {tool} put", "") if tool != "read" else MIXED
            yield _at("intent stored", f"tool {tool} {moment}", plans)
    for moment in ("before", "inside", "after"):
        yield _at("intent stored", f"{_SETTLE} {moment}", MIXED, nth=2)
    yield Point(
        row="intent stored",
        place=Place(name="tool put after"),
        then=Place(name=f"{_AGAIN} after"),
        plans=("put",),
    )
    yield _at("results complete", f"{_SETTLE} after", MIXED, nth=4)
    for moment in _ROUND:
        yield _at("results complete", f"{_RESULTS} {moment}", MIXED)
    for moment in ("inside", "after"):
        steered = ("look; look", "send", "put")
        yield _at("results complete", f"{_STEER} {moment}", steered, rule=DoubleText.STEER)


def _while_asking() -> Iterator[Point]:
    plans = ("look pay", "")
    for moment in _ROUND:
        yield _at("approval wait", f"{_ASK} {moment}", plans)
        yield _at("approval wait", f"{_WAIT} {moment}", plans)
        yield _at("approval wait", f"{_ANSWER} {moment}", plans)
    yield _at("approval wait", "front: approval seen", plans)


#: The context is too long before the turn, in its middle, and by a result that can be cleared.
BEFORE_A_TURN: tuple[str, ...] = ("put # long", "look # long", "")
IN_MID_TURN: tuple[str, ...] = ("put # long", "dump; send", "")
_CLEARED: tuple[str, ...] = ("dump", "send # some", "")
_LEADING: dict[tuple[str, ...], str] = {
    BEFORE_A_TURN: ", before a turn",
    IN_MID_TURN: ", in mid turn",
    _CLEARED: ", results cleared",
}


def _in_a_compaction() -> Iterator[Point]:
    before, after = "compaction, before its rotation", "compaction, after its rotation"
    yield _compacting(before, f"{_LOCK} after", 1, long=True)
    yield _compacting(before, f"{_COUNT} after", 1, long=True)
    yield _compacting(before, REQUEST, 2, nth=3)
    yield _compacting(before, f"{_COMPRESS} before", 2, long=True)
    yield _compacting(before, f"{_COMPRESS} inside", 2, IN_MID_TURN)
    yield _compacting(before, f"{_COMPRESS} inside", 0, _CLEARED, long=True)
    yield _compacting(after, f"{_COMPRESS} after", 1, long=True)
    yield _compacting(after, f"{_COMPRESS} after", 1, IN_MID_TURN)
    yield _compacting(after, f"{_COMPRESS} after", 0, _CLEARED)
    yield _compacting(after, f"{_UNLOCK} before", 1, long=True)


def _compacting(
    row: str,
    place: str,
    summaries: int,
    plans: tuple[str, ...] = BEFORE_A_TURN,
    *,
    nth: int = 1,
    long: bool = False,
) -> Point:
    return Point(
        row=row,
        place=Place(name=place, nth=nth),
        plans=plans,
        note=_LEADING[plans],
        summaries=summaries,
        long=long,
    )


def _at(
    row: str,
    place: str,
    plans: tuple[str, ...],
    *,
    nth: int = 1,
    rule: DoubleText = DoubleText.QUEUE,
) -> Point:
    return Point(row=row, place=Place(name=place, nth=nth), plans=plans, rule=rule)


POINTS = tuple(_points())
