"""Items of another system in the order that every provider accepts: each call with its result."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from clew.core.entry import Role
from clew.foreign.conversations import ForeignEvent, ForeignMessage, ForeignResult
from clew.record import replace

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from clew.foreign.conversations import ForeignCall, ForeignItem

#: The result of a call that has none.
NO_RESULT: Final = "(no result is recorded: the call was interrupted)"


class StepOrderer:
    """
    Orderer of the items of one conversation.

    The calls of a step are one message, their results the next. A call without a result gets one
    that says so; a result without a call becomes an event. What came between waits for the
    results. Ids of calls that repeat are numbered.
    """

    def __init__(self) -> None:
        self._step: _Step | None = None
        #: The ids of the calls as they were, and how often each has been used.
        self._origins: dict[str, str] = {}
        self._used: dict[str, int] = {}
        self.missing_results = 0
        self.lost_results = 0
        #: Ids of items that became part of another one.
        self.merged: dict[str, str] = {}
        #: Items at the end that are left for the next time.
        self.waiting = 0

    def order_items(
        self, items: Sequence[ForeignItem], *, is_growing: bool = False
    ) -> Iterator[ForeignItem]:
        """Yield the items; of a growing conversation without an unfinished step at its end."""
        opened = 0
        for place, item in enumerate(items):
            before = self._step
            yield from self._read_item(item)
            opened = opened if self._step is before else place
        if is_growing and self._step is not None:
            # All that came after its calls is in the step: it has held nothing back before them.
            self.waiting = len(items) - opened
        else:
            yield from self._finish_step()

    def _read_item(self, item: ForeignItem) -> Iterator[ForeignItem]:
        if isinstance(item, ForeignMessage):
            yield from self._read_message(item)
        elif isinstance(item, ForeignEvent):
            yield from self._hold_or_yield(item)
        else:
            yield from self._finish_step()
            yield item

    def _read_message(self, item: ForeignMessage) -> Iterator[ForeignItem]:
        if item.role is Role.TOOL:
            yield from self._add_results(item)
        elif not item.calls:
            yield from self._hold_or_yield(item)
        elif self._step is not None and self._step.is_untouched:
            self._step.add_calls(self._number_calls(item))
            self.merged[item.id] = self._step.message.id
        else:
            yield from self._finish_step()
            self._step = _Step(self._number_calls(item))

    def _hold_or_yield(self, item: ForeignItem) -> Iterator[ForeignItem]:
        if self._step is None:
            yield item
        else:
            self._step.held.append(item)

    def _number_calls(self, item: ForeignMessage) -> ForeignMessage:
        return replace(item, calls=tuple(map(self._number_call, item.calls)))

    def _number_call(self, call: ForeignCall) -> ForeignCall:
        name = call.id
        while not name or name in self._origins:
            count = self._used[call.id] = self._used.get(call.id, 1) + 1
            name = f"{call.id or 'call'}~{count}"
        self._origins[name] = call.id
        return replace(call, id=name)

    def _add_results(self, item: ForeignMessage) -> Iterator[ForeignItem]:
        for number, result in enumerate(item.results):
            call = self._find_call(result)
            if self._step is None or call is None:
                self.lost_results += 1
                yield _make_lost_result(item, result, number)
            else:
                self._step.add_result(item, call, result)
                self.merged[item.id] = self._step.message.id
        if self._step is not None and self._step.is_complete:
            yield from self._finish_step()

    def _find_call(self, result: ForeignResult) -> ForeignCall | None:
        """Return the open call that a result answers."""
        calls = () if self._step is None else self._step.open_calls
        return next((one for one in calls if self._origins[one.id] == result.call_id), None)

    def _finish_step(self) -> Iterator[ForeignItem]:
        step, self._step = self._step, None
        if step is not None:
            self.missing_results += len(step.message.calls) - len(step.results)
            yield step.message
            yield step.make_result_message()
            yield from step.held


class _Step:
    """A message with calls, and what has come after it."""

    def __init__(self, message: ForeignMessage) -> None:
        self.message = message
        #: By the id of the call.
        self.results: dict[str, ForeignResult] = {}
        self.held: list[ForeignItem] = []
        self._first: ForeignMessage | None = None

    @property
    def is_complete(self) -> bool:
        return len(self.results) == len(self.message.calls)

    @property
    def is_untouched(self) -> bool:
        """Return whether nothing has come after its calls but calls."""
        return not self.results and not self.held

    def add_calls(self, more: ForeignMessage) -> None:
        """Add a message of the same step, as systems that store each call by itself have it."""
        ours = self.message
        self.message = replace(
            ours,
            text="\n".join(filter(None, (ours.text, more.text))),
            reasoning="\n".join(filter(None, (ours.reasoning, more.reasoning))),
            calls=(*ours.calls, *more.calls),
            usage=more.usage or ours.usage,
        )

    @property
    def open_calls(self) -> Sequence[ForeignCall]:
        return [call for call in self.message.calls if call.id not in self.results]

    def add_result(self, item: ForeignMessage, call: ForeignCall, result: ForeignResult) -> None:
        """Add the result of an open call."""
        self._first = self._first or item
        self.results[call.id] = replace(result, call_id=call.id, name=result.name or call.name)

    def make_result_message(self) -> ForeignMessage:
        """Return the results in the order of the calls, as an agent of ours stores them."""
        calls = self.message.calls
        results = tuple(self.results.get(call.id) or _make_missing(call) for call in calls)
        if self._first is None:
            ours = self.message
            return ForeignMessage(
                id=f"{ours.id}:no-result", role=Role.TOOL, at=ours.at, results=results
            )
        return replace(self._first, results=results)


def _make_missing(call: ForeignCall) -> ForeignResult:
    return ForeignResult(call_id=call.id, name=call.name, text=NO_RESULT, is_error=True)


def _make_lost_result(item: ForeignMessage, result: ForeignResult, number: int) -> ForeignEvent:
    return ForeignEvent(
        id=f"{item.id}#{number}",
        at=item.at,
        kind="result-without-call",
        text=f"Result of a call of {result.name or 'a tool'} that is not recorded: {result.text}",
    )
