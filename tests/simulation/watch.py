"""What must hold: the invariants of the store, and what clients, provider and tools saw."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any

from pydantic_ai.messages import (
    ModelRequest,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)

from clew.agent import messages as codec
from clew.agent.turn_context import get_turn_context
from clew.core.inbox import InboxOutcome
from clew.core.turn import TurnOutcome
from clew.errors import ClewError
from clew.store.checks import registry
from clew.store.transactions import context
from tests.contract import invariants
from tests.simulation.loop import PROCESS
from tests.simulation.provider import EFFECTS, split_texts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pydantic_ai.messages import ModelMessage

    from clew.store.contract import Tx
    from tests.simulation.facts import Facts
    from tests.simulation.people import Said
    from tests.simulation.world import World

_ANSWERED_BY = (InboxOutcome.TURN, InboxOutcome.MERGED, InboxOutcome.STEERED)


class Violated(Exception):
    """Something that must hold does not."""


class Watch:
    """Looks at everything; raises at the end of the step in which something is wrong."""

    def __init__(self, world: World, *, every: int) -> None:
        self._world, self._every = world, every
        self._commits = 0
        self.checks = 0
        self.effects = Counter[str]()
        self.complaints: list[str] = []
        #: For a judge from elsewhere, where one listens.
        self.facts: Facts | None = None

    def complain(self, sentence: str) -> None:
        """Keep what is wrong; the run ends at the next step."""
        self.complaints.append(sentence)
        self._world.chances.note(sentence)

    def committed(self) -> None:
        """After a commit: the invariants, each time or each n-th."""
        self._commits += 1
        if self.facts is not None:
            self.facts.committed()
        if self._commits % self._every == 0:
            self.checks += 1
            self._world.disk.run(self._find_fast)

    def _find_fast(self, t: Tx) -> None:
        for check, found in registry.find_fast(t):
            self.complain(f"{check.name}: {found.conversation} {found.seq}: {found.detail}")

    def acted(self, tool: str, call: str) -> None:
        """A tool has its effect."""
        self.effects[call] += 1
        if self.facts is not None:
            self.facts.acted(tool, call)
        self._world.chances.note(f"{PROCESS.get()} {tool} {call}")
        if EFFECTS[tool] in ("once", "ask") and self.effects[call] > 1:
            self.complain(f"{tool} {call} has had its effect {self.effects[call]} times")
        ids = get_turn_context()
        deleted = ids is not None and ids.conversation in self._world.people.deleted
        if not deleted and not self._world.disk.run(_is_journaled, call):
            self.complain(f"{tool} {call} runs, and no intent is stored")

    def sent(self, messages: Sequence[ModelMessage]) -> None:
        """A request arrives at the provider."""
        ids = get_turn_context()
        shape = shape_of(messages)
        self._world.chances.note(f"{PROCESS.get()} asks {shape}")
        doubled = [name for name, times in Counter(shape).items() if times > 1 and _is_once(name)]
        if doubled:
            self.complain(f"the provider is sent twice: {doubled}")
        if wrong := unpaired(messages):
            self.complain(wrong)
        if self.facts is not None and ids is not None:
            self.facts.tell("request", str(ids.turn), valid=wrong is None, reason=wrong or "")
        if ids is not None:
            try:
                self._world.disk.run(self._compare, str(ids.conversation), shape)
            except ClewError:
                return

    def _compare(self, t: Tx, conversation: str, shape: list[str]) -> None:
        owner = t.fetch_value("SELECT owner FROM lease WHERE conversation_id = $1", conversation)
        mine = self._world.owner_of(PROCESS.get())
        if owner is None or owner != mine:
            return  # it has lost its lease, and will be told
        head: Any = context.read_head_context(t, conversation)  # pyright: ignore[reportArgumentType]
        stored = shape_of([codec.load_message(each.message) for each in head.messages])
        if stored != shape:
            self.complain(f"{conversation}: sent is {shape}, stored {stored}")

    def finish(self, said: Sequence[Said], deleted: set[str]) -> None:
        """When all is over."""
        self._world.disk.run(self._judge, said, deleted)
        for sentence in self._world.disk.run(_find_all):
            self.complain(sentence)

    def _judge(self, t: Tx, said: Sequence[Said], deleted: set[str]) -> None:
        for one in said:
            if one.conversation not in deleted:
                self._judge_one(t, one)

    def _judge_one(self, t: Tx, one: Said) -> None:
        rows = t.fetch_all("SELECT id, outcome FROM inbox WHERE text LIKE $1", f"{one.key}:%")
        if [row[0] for row in rows] != [one.id]:
            self.complain(f"{one.key} is stored as {rows}, acknowledged as {one.id}")
        if one.end is None:
            self.complain(f"{one.key} has no end")
            return
        if rows and rows[0][1] != one.end.outcome.value:
            self.complain(f"{one.key} ended as {rows}, told was {one.end.outcome}")
        entries = t.fetch_value(
            "SELECT count(*) FROM entry WHERE role = 'user' AND text LIKE $1", f"{one.key}:%"
        )
        consumed = one.end.outcome in _ANSWERED_BY
        if entries != consumed:
            self.complain(f"{one.key}: {one.end.outcome}, and {entries} entries")
        turn = one.end.turn
        answered = turn is not None and turn.outcome is TurnOutcome.ANSWERED
        if answered and one.key not in one.end.text:
            self.complain(f"{one.key} was answered with {one.end.text!r}")


def shape_of(messages: Sequence[ModelMessage]) -> list[str]:
    """Return what messages say: texts, calls and results, in order."""
    shape: list[str] = []
    for message in messages:
        for part in message.parts:
            if isinstance(part, UserPromptPart):
                shape += [f"said {text}" for text in split_texts(part)]
            elif isinstance(part, TextPart):
                shape.append(f"answered {part.content}")
            elif isinstance(part, ToolReturnPart):
                shape.append(f"result {part.tool_call_id}")
            elif isinstance(part, ToolCallPart):
                shape.append(f"call {part.tool_call_id}")
    return shape


def _is_once(name: str) -> bool:
    return name.startswith(("said c", "call ", "result ")) or "#" in name


def unpaired(messages: Sequence[ModelMessage]) -> str | None:
    """Return what is wrong with calls and results: each has one, right after it."""
    asked: list[str] = []
    for message in messages:
        if isinstance(message, ModelRequest):
            results = _results_in(message)
            if sorted(results) != sorted(asked):
                return f"calls {asked} are followed by results {results}"
            asked = []
        elif asked:
            return f"calls {asked} have no results"
        else:
            asked = [call.tool_call_id for call in message.tool_calls]
    return f"calls {asked} have no results" if asked else None


def _results_in(message: ModelRequest) -> list[str]:
    found = (getattr(part, "tool_call_id", None) for part in message.parts)
    return [call for call in found if call is not None]


def _is_journaled(t: Tx, call: str) -> bool:
    return t.exists("SELECT 1 FROM journal WHERE call_id = $1", call)


def _find_all(t: Tx) -> list[str]:
    return [sentence for sentence in invariants.check(t) if ": not so for " not in sentence]


def dump(value: object) -> str:
    """Return a value as one line."""
    return json.dumps(value, default=str)
