"""
The sweep: something is done to a turn at each of its points, one run for each.

Message *a* leads to two calls at once, one in the loop and one in a thread, a third, and an answer.
Where it *compacts*, what was said before is summarised between the first two requests.
"""

from __future__ import annotations

import itertools
from collections import Counter
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from clew.core.double_text import DoubleText
from clew.core.inbox import InboxOutcome
from clew.core.route import local_route
from clew.core.session import COMPRESSION
from clew.core.turn import StopRequest, TurnOutcome
from tests.line import compacting, strict
from tests.line.double_text import JOINING, STOPPING
from tests.line.plans import respond

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pydantic_ai.messages import ModelMessage, ModelResponse

    from clew.core.ids import ConversationId
    from clew.core.inbox import AcceptResult
    from clew.core.turn import Turn
    from tests.line.model import Respond
    from tests.line.world import World

PLAN = "a: look read; send"
#: A message with this rule, a stop, or a new conversation for the route.
Act = DoubleText | str
STOP, NEW = "/stop", "/new"
ACTS: tuple[Act, ...] = (*DoubleText, STOP, NEW)

_numbers = itertools.count(1)
_NEVER = 10_000
_BEFORE_THE_ROTATION = (compacting.BEGINS, compacting.ENDS, "context.read_head_context before")
#: Tokens: all of *a* and *b*, and not all that was said before.
_KEPT = 50
_ASKED = ["a", "look?", "read?", "look!", "read!", "send?", "send!"]
_WHOLE = [*_ASKED, '"answer to a"']


@dataclass(kw_only=True)
class Run:
    """One run and what came of it."""

    act: Act
    point: str = ""
    turn: Turn | None = None
    second: InboxOutcome | None = None
    log: list[str] = field(default_factory=list[str])
    #: The last request to the model.
    sent: list[str] = field(default_factory=list[str])
    complaints: list[str] = field(default_factory=list[str])


class Sweep:
    """Runs in one world, each in a conversation of its own."""

    def __init__(self, world: World, *, streamed: bool = False, compacts: bool = False) -> None:
        self._world, self._streamed, self._compacts = world, streamed, compacts
        #: Summaries before this run; and whether what runs was stopped in it.
        self._summaries, self._over = 0, False

    async def compaction(self) -> list[int]:
        """The numbers of the points that a compaction has."""
        assert self._compacts
        await self.run(STOP, _NEVER)
        names = self._world.points.names
        first = names.index("locks.try_acquire_compression_lock before")
        last = names.index("locks.release_compression_lock after")
        return list(range(first + 1, last + 2))

    async def run(self, act: Act, at: int) -> Run | None:
        """Act at the point with this number; ``None`` if the turn has no such point."""
        world, name = self._world, f"sweep-{next(_numbers)}"
        warm = (await world.end(await world.say("warm:", to=name))).conversation
        world.model.sent.clear()
        world.tools.ran = Counter()
        second: list[AcceptResult] = []
        self._summaries, self._over = world.compacting.summaries, False
        if self._compacts:
            world.model.script = self._compacting_once()
        world.points.arm(at, lambda: self._do(act, name, warm, second))
        with world.means.event_bus.subscribe(warm) if self._streamed else nullcontext():
            first = await world.say(PLAN, to=name)
            ended = await world.end(first)
            reached = await world.points.acted()
            await world.idle(warm)
        world.model.script = respond
        world.compacting.disarm()
        if not reached:
            return None
        run = Run(act=act, point=world.points.names[at - 1], turn=ended.turn)
        run.second = (await world.end(second[0])).outcome if second else None
        await self._judge(run, warm, name)
        return run

    def _compacting_once(self) -> Respond:
        asked = itertools.count(1)

        def script(messages: Sequence[ModelMessage]) -> ModelResponse:
            if next(asked) == 1 and not self._over:
                self._world.compacting.arm(keep=_KEPT)
            return respond(messages)

        return script

    async def _do(
        self, act: Act, name: str, conversation: ConversationId, second: list[AcceptResult]
    ) -> None:
        if act in (*STOPPING, STOP, NEW):
            # Else what comes next would find the context as long as it was.
            self._over = True
            self._world.compacting.disarm()
        if isinstance(act, DoubleText):
            second.append(await self._world.say("b:", act, to=name))
            if act is DoubleText.COLLECT:
                self._world.clock.advance(seconds=1)
                self._world.engine.wake_conversation(conversation)
        elif act == STOP:
            await self._world.engine.request_stop(conversation)
        else:
            await self._world.engine.start_new_conversation(local_route(name))

    async def _judge(self, run: Run, conversation: ConversationId, name: str) -> None:
        world = self._world
        entries = await world.log(conversation)
        log = strict.log_bits(entries)
        run.log = strict.shape(entries)[2:]
        run.sent = _since_warm(world.model.sent[-1]) if world.model.sent else []
        run.complaints = strict.complaints(log)
        for sent in map(strict.bits, world.model.sent):
            run.complaints += strict.complaints(sent)
            run.complaints += [f"sent {sent}"] * (not strict.is_within(sent, log))
        run.complaints += [f"{call} ran {n} times" for call, n in world.tools.ran.items() if n > 1]
        expected_seconds = int(run.second in (InboxOutcome.TURN, InboxOutcome.STEERED))
        if run.log.count("b") != expected_seconds:
            run.complaints.append(f"b is {run.log.count('b')} times in the log")
        run.complaints += _against_the_table(run)
        if self._compacts:
            run.complaints += await self._rotations(run, conversation)
        if run.act == NEW:
            run.complaints += await self._left(conversation, name)

    async def _rotations(self, run: Run, conversation: ConversationId) -> list[str]:
        """One for a summary at most, and none where the turn was stopped before."""
        sessions = (await self._world.engine.get_view(conversation)).sessions
        made = [session.end_reason for session in sessions].count(COMPRESSION)
        stopped = run.turn is not None and run.turn.stop is not None
        if stopped and run.point in _BEFORE_THE_ROTATION:
            return [f"{made} rotations, although it was stopped before"] * (made != 0)
        asked = self._world.compacting.summaries - self._summaries
        return [f"{asked} summaries, {made} rotations"] * (
            made > 1 or (made < asked and not stopped)
        )

    async def _left(self, conversation: ConversationId, name: str) -> list[str]:
        view = await self._world.engine.get_view(conversation)
        ended = view.sessions[-1].end_reason
        still = await self._world.engine.resolve_name(local_route(name).key) == conversation
        wrong = ["the head was not ended by the reset"] * (ended != "reset")
        return wrong + ["the route has not moved"] * still


def _since_warm(sent: Sequence[ModelMessage]) -> list[str]:
    """Return the request without the messages before *a*, or without their summary."""
    before = ("warm", '"answer to warm"', strict.SUMMARY)
    return list(itertools.dropwhile(before.__contains__, strict.shape_of(sent)))


def _against_the_table(run: Run) -> list[str]:
    if run.turn is None:
        # It was still in line.
        allowed = run.act == NEW and run.log == []
    elif run.act in JOINING:
        allowed = _may_join(run)
    elif run.act in STOPPING:
        allowed = _may_stop(run)
    elif run.act in (STOP, NEW):
        allowed = _is_stopped(run.log) or (run.log == _WHOLE and _answered(run))
    elif run.act is DoubleText.REJECT and run.second is InboxOutcome.REJECTED:
        allowed = run.log == _WHOLE
    else:
        allowed = _follows(run)
    return [] if allowed else [f"not as the table says: {run.log}"]


def _answered(run: Run) -> bool:
    return run.turn is not None and run.turn.outcome is TurnOutcome.ANSWERED


def _follows(run: Run) -> bool:
    """*b* has a turn of its own after all of *a*'s."""
    own = run.second is InboxOutcome.TURN and _answered(run)
    return own and run.log == [*_WHOLE, "b", '"answer to b"'] and run.sent == [*_WHOLE, "b"]


def _may_join(run: Run) -> bool:
    if run.second is InboxOutcome.TURN:
        return _follows(run)
    # After its results or before the first request; what is said last is answered first.
    joined = [[*_ASKED[:n], "b"] for n in (1, 5, 7)]
    right = any(run.log == [*log, '"answer to a b"'] and run.sent == log for log in joined)
    return right and _answered(run) and run.second is InboxOutcome.STEERED


def _may_stop(run: Run) -> bool:
    assert run.turn is not None
    if run.second is not InboxOutcome.TURN or "b" not in run.log:
        return False
    if run.turn.stop is None:
        # It had ended before.
        return _follows(run)
    place = run.log.index("b")
    before = run.log[:place]
    if run.turn.stop is StopRequest.ROLLBACK:
        return _is_stopped(before) and run.sent == ["b"]
    kept = [word for word in before if not word.startswith("[")]
    was_right = _is_stopped(before) if not _answered(run) else before == _WHOLE
    return was_right and run.sent == [*kept, "b"]


def _is_stopped(log: Sequence[str]) -> bool:
    """Return whether a log is the beginning of the whole, plus the notice."""
    said = [word.partition("cancelled: ")[0] for word in log[:-1]]
    last = said[-1] if said else ""
    if last.startswith('"') and '"answer to a"'.startswith(last[:-1]):
        said.pop()
    return bool(log) and log[-1].startswith("[") and _WHOLE[: len(said)] == said
