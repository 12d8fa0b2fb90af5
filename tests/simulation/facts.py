"""What a seed did, as facts that a judge from elsewhere can replay."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from clew.store.transactions.turns import StartedWork
from tests.simulation.provider import EFFECTS

if TYPE_CHECKING:
    from clew.store.contract import Tx
    from tests.simulation.disk import Disk


class Facts:
    """Effects, stored steps, take-overs, requests and answers of people, in their order."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self.told: list[dict[str, Any]] = []
        self._steps: dict[str, int] = {}
        self._done: set[str] = set()

    def tell(self, kind: str, thread: str, **more: object) -> None:
        """Add a fact about a turn."""
        self.told.append({"kind": kind, "thread": thread, **more})

    def acted(self, tool: str, call: str) -> None:
        """Tell of an effect that must not happen twice."""
        row = self._disk.run(_find_call, call)
        if EFFECTS[tool] == "once" and row is not None:
            self.tell("effect", row[0], task=row[1] + 1, effect=call)

    def committed(self) -> None:
        """Tell which turns have come further."""
        for turn, steps, state in self._disk.run(_list_turns):
            for step in range(self._steps.get(turn, 0), steps):
                # A commit that stores several steps at once, or none, is told as it is.
                if step == steps - 1:
                    self.tell("commit", turn, task=steps)
            self._steps[turn] = steps
            if state == "done" and turn not in self._done:
                self._done.add(turn)
                self.tell("complete", turn)

    def ran(self, name: str, args: tuple[Any, ...], outcome: object) -> None:
        """Tell of take-overs, and of answers to approvals."""
        if isinstance(outcome, StartedWork) and outcome.resumed and outcome.turn is not None:
            self.tell("recover", outcome.turn.id, task=outcome.turn.steps + 1)
        if name == "answer_approval":
            refused = isinstance(outcome, BaseException)
            thread = self._disk.run(_find_asker, args[0])
            self.tell("answer", str(thread), checkpoint=args[0], value=args[1].value,
                      refused=refused)  # fmt: skip


def _find_call(t: Tx, call: str) -> Any:
    return t.fetch_one("SELECT turn_id, step FROM journal WHERE call_id = $1", call)


def _list_turns(t: Tx) -> list[Any]:
    return t.fetch_all("SELECT id, steps, state FROM turn ORDER BY started_at, id")


def _find_asker(t: Tx, approval: str) -> Any:
    return t.fetch_value("SELECT turn_id FROM approval WHERE id = $1", approval)
