"""
The table of double text: each rule at each moment, what is expected of it, and what came of it.

Message *a* leads to one call and an answer; message *b* comes at a moment of its turn.
"""

from __future__ import annotations

import itertools
from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pydantic_ai.exceptions import ModelHTTPError

from clew.core.double_text import DoubleText
from clew.core.inbox import InboxOutcome
from clew.core.turn import TurnOutcome
from tests.line import compacting, strict
from tests.line.plans import respond

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pydantic_ai.messages import ModelMessage, ModelResponse

    from clew.core.inbox import AcceptResult
    from tests.line.model import Respond
    from tests.line.world import World

RULES = tuple(DoubleText)
#: Rules that end the running turn.
STOPPING = (DoubleText.INTERRUPT, DoubleText.ROLLBACK)
JOINING = (DoubleText.STEER, DoubleText.COLLECT)
#: The provider's words.
TOO_LONG = "400 context length exceeded"
NOTICE = {
    DoubleText.INTERRUPT: "interrupted by a new message",
    DoubleText.ROLLBACK: "taken back for a new message",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Moment:
    name: str
    #: The point at which *b* comes; ``None``: while the turn waits for a person.
    point: str | None
    tool: str = "look"
    streamed: bool = False
    #: No step comes after this one.
    final: bool = False
    #: Entries of the turn when it is stopped here; ``!`` ends cancelled ones.
    stored: tuple[str, ...] = ("a",)
    #: The context is compacted here, once: before this request of the turn.
    compacts: int = 0
    #: The provider refuses that request as too long, and that is why.
    overflows: bool = False


_ANSWERING = ("a", "look?", "look!")
_SUMMARISED = (strict.SUMMARY, "a", "look?", "look!")
MOMENTS = (
    Moment(name="model call", point="model asked for look"),
    Moment(name="last call", point="model asked for an answer", final=True, stored=_ANSWERING),
    Moment(name="stream", point="piece look", streamed=True),
    Moment(
        name="last stream",
        point="piece 'to'",
        streamed=True,
        final=True,
        stored=(*_ANSWERING, '"answer to"'),
    ),
    Moment(name="async tool", point="look begins", stored=("a", "look?", "look!cancelled: ")),
    Moment(
        name="sync tool",
        point="read begins",
        tool="read",
        stored=("a", "read?", "read!cancelled: "),
    ),
    Moment(name="approval wait", point=None, tool="pay", stored=("a", "pay?", "pay!cancelled: ")),
    Moment(name="compaction before a turn", point=compacting.BEGINS, compacts=1),
    Moment(name="compaction in mid turn", point=compacting.BEGINS, compacts=2, stored=_ANSWERING),
    Moment(
        name="compaction on overflow",
        point=compacting.BEGINS,
        compacts=2,
        overflows=True,
        stored=(*_ANSWERING, f"[{TOO_LONG}]"),
    ),
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Found:
    """Actual or expected result."""

    first: TurnOutcome
    second: InboxOutcome
    log: list[str]
    #: The last request to the model.
    sent: list[str]


def expected(rule: DoubleText, moment: Moment) -> Found:
    """The table of the design."""
    denied = "" if moment.point else "not approved: the user wrote instead"
    failed = [f"[{TOO_LONG}]"] if moment.overflows else []
    asked = ["a", f"{moment.tool}?", f"{moment.tool}!", *failed]
    whole = [*asked, '"answer to a"']
    if rule is DoubleText.REJECT:
        return _found(InboxOutcome.REJECTED, moment, whole)
    if rule in STOPPING:
        return _stopped(rule, moment)
    if rule is DoubleText.QUEUE or moment.final:
        return _found(InboxOutcome.TURN, moment, [*whole, "b", '"answer to b"'])
    # Before the first request there is nothing yet but the message; what comes last is answered.
    before = ["a"] if moment.compacts == 1 else ["a", asked[1], f"{asked[2]}{denied}", *failed]
    return _found(InboxOutcome.STEERED, moment, [*before, "b", '"answer to a b"'])


def _stopped(rule: DoubleText, moment: Moment) -> Found:
    why = NOTICE[rule]
    stored = [word + why if word.endswith(": ") else word for word in moment.stored]
    kept = _said(stored) if rule is DoubleText.INTERRUPT else []
    unanswered = any(word == "a" for word in kept) and '"answer to"' not in kept
    answer = '"answer to a b"' if unanswered else '"answer to b"'
    return Found(
        first=TurnOutcome.CANCELLED,
        second=InboxOutcome.TURN,
        log=[*stored, f"[{why}]", "b", answer],
        # No rotation where a compaction was stopped.
        sent=[*_WARM, *kept, "b"],
    )


def _found(second: InboxOutcome, moment: Moment, log: list[str]) -> Found:
    before = [strict.SUMMARY] if moment.compacts else _WARM
    return Found(
        first=TurnOutcome.ANSWERED, second=second, log=log, sent=[*before, *_said(log[:-1])]
    )


def _said(log: Sequence[str]) -> list[str]:
    """Return the part of a log that is sent."""
    return [word for word in log if not word.startswith("[")]


_WARM = ["warm", '"answer to warm"']
_numbers = itertools.count(1)


async def play(world: World, rule: DoubleText, moment: Moment) -> Found:
    """Say *a*, and *b* at the moment; wait until both have ended."""
    name = f"talk-{next(_numbers)}"
    warm = (await world.end(await world.say("warm:", to=name))).conversation
    said: list[AcceptResult] = []

    async def say_second() -> None:
        said.append(await world.say("b:", rule, to=name))
        if rule is DoubleText.COLLECT:
            # Its window is over before the next step begins.
            world.clock.advance(seconds=1)
            world.engine.wake_conversation(warm)

    async def at_point() -> None:
        await say_second()
        if rule in STOPPING:
            # It is to be stopped at this moment, and at no later one.
            await world.over.wait()

    world.points.arm(moment.point, at_point)
    world.model.script = _script(world, moment)
    with world.means.event_bus.subscribe(warm) if moment.streamed else nullcontext():
        first = await world.say(f"a: {moment.tool}", to=name)
        if moment.point is None:
            question = await world.question(warm)
            await say_second()
            if rule in (DoubleText.QUEUE, DoubleText.REJECT):
                await world.engine.answer_approval(question.id, yes=True)
        ended = await world.end(first)
    assert ended.turn is not None
    assert ended.turn.outcome is not None
    return Found(
        first=ended.turn.outcome,
        second=(await world.end(said[0])).outcome,
        log=(await world.shape(warm))[2:],
        sent=strict.shape_of(world.model.sent[-1]),
    )


def _script(world: World, moment: Moment) -> Respond:
    """The model's, under which the context is compacted at the moment."""
    if moment.compacts == 1:
        world.compacting.arm()
    asked = itertools.count(1)

    def script(messages: Sequence[ModelMessage]) -> ModelResponse:
        number = next(asked)
        if moment.overflows and number == moment.compacts:
            world.compacting.arm(overflow=True)
            raise ModelHTTPError(400, "scripted", body={"message": "context length exceeded"})
        if moment.compacts == number + 1 and not moment.overflows:
            world.compacting.arm()
        return respond(messages)

    return script
