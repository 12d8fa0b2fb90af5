"""
A long talk in which things are said once and asked for much later.

The model is scripted and remembers nothing: it answers from the request that it gets, or says that
it does not know. The summariser writes down every fact that it reads. So a wrong answer means that
the request lacked what was promised to be in it.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from clew.testing import Calls, ScriptedCall, Text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from clew.testing import ProviderRequest, Reply

#: In tokens; a turn takes some 450.
WINDOW = 8000


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """Length of a conversation, and the turns after which each action happens."""

    turns: int
    restarts: Sequence[int]
    switch: int
    #: At least.
    compactions: int

    @property
    def questions(self) -> int:
        return self.turns // 3


LONG = Plan(turns=60, restarts=(14, 29, 44), switch=35, compactions=5)
SHORT = Plan(turns=33, restarts=(9, 18, 25), switch=21, compactions=2)
#: The beginning of a cleared result.
CLEARED = "[result cleared: "
#: A module with the tool of this talk, as a person would write it.
TOOLS = """
from tests.context.recall import value_of


def look_up(what: str) -> str:
    \"\"\"Look something up.\"\"\"
    return f"As is well known, the {what} is {value_of(what)}." + " And so on." * 600


tools = [look_up]
"""

_FACT = re.compile(r"the (\w+ of \w+) is (\w+)")
_QUESTION = re.compile(r"What is the (\w+ of \w+)\?")
_SUMMARISE = "You keep the memory of a conversation"
_FILLING = " It goes without saying." * 45
_WAYS = ("told", "decided", "looked up")
_IDS = itertools.count(1)


@dataclass(frozen=True, kw_only=True, slots=True)
class Turn:
    """Message of the person, and the facts that the answer must name."""

    text: str
    fact: str | None = None


def talk(turns: int) -> Iterator[Turn]:
    """A third of the turns are questions, by turns about old, new and looked up facts."""
    known: list[str] = []
    for number in range(1, turns + 1):
        if number % 3 == 0:
            yield _question(known, number // 3 - 1)
            continue
        fact, way = f"code of item{number}", _WAYS[len(known) % len(_WAYS)]
        known.append(fact)
        yield Turn(text=f"{_saying(fact, way)}{_FILLING}")


def _question(known: Sequence[str], asked: int) -> Turn:
    # Long enough ago that the result was cleared, and then summarised.
    looked_up = known[len(_WAYS) - 1 :: len(_WAYS)] or known
    kinds = (known[asked // 3], known[-1 - asked // 3 % 3], looked_up[max(0, asked // 3 - 1)])
    fact = kinds[asked % len(kinds)]
    return Turn(text=f"What is the {fact}?{_FILLING}", fact=fact)


def _saying(fact: str, way: str) -> str:
    match way:
        case "told":
            return f"Mind that the {fact} is {value_of(fact)}."
        case "decided":
            return f"Decide on the {fact}."
        case _:
            return f"Look up the {fact}."


def value_of(fact: str) -> str:
    """State of a fact."""
    return f"v{sum(ord(letter) * 7**place for place, letter in enumerate(fact)) % 10**6}"


@dataclass(kw_only=True)
class Memoryless:
    """The provider's script, and what it was asked for."""

    #: Requests by kind: ``summary``, ``known``, ``unknown``, ``looked up again``.
    asked: Counter[str] = field(default_factory=Counter[str])

    def __call__(self, request: ProviderRequest) -> Reply:
        text = request.last_user_text
        if text.startswith(_SUMMARISE):
            self.asked["summary"] += 1
            return Text(_summary(text))
        if question := _QUESTION.match(text):
            return self._answer(request, question[1])
        if text.startswith("Look up the ") and not request.new_results:
            return _look_up(text.removeprefix("Look up the ").partition(".")[0])
        if text.startswith("Decide on the "):
            fact = text.removeprefix("Decide on the ").partition(".")[0]
            return Text(f"So be it: the {fact} is {value_of(fact)}.")
        return Text("So noted.")

    def _answer(self, request: ProviderRequest, fact: str) -> Reply:
        if (value := _in(request, fact)) is not None:
            self.asked["known"] += 1
            return Text(f"It is {value}.")
        results = [result.text for message in request.messages for result in message.results]
        if any(result.startswith(CLEARED) for result in results):
            # It was promised only that it can be looked up again.
            self.asked["looked up again"] += 1
            return _look_up(fact)
        self.asked["unknown"] += 1
        return Text("I do not know.")


def _look_up(fact: str) -> Reply:
    return Calls([ScriptedCall("look_up", {"what": fact}, id=f"call_{next(_IDS)}")])


def _in(request: ProviderRequest, fact: str) -> str | None:
    """The value of a fact, wherever in a request it stands."""
    texts = [text for message in request.messages for text in message.texts]
    texts += [result.text for message in request.messages for result in message.results]
    return next(
        (found[1] for text in texts for found in _FACT.findall(text) if found[0] == fact), None
    )


def _summary(transcript: str) -> str:
    facts = dict(_FACT.findall(transcript))
    lines = "\n".join(f"- the {fact} is {value}" for fact, value in facts.items())
    return (
        f"## Intent\nTo have codes at hand.\n\n## Artifacts\n{lines}\n\n## Done\n{'Noted. ' * 30}"
    )


class Driver(Protocol):
    """Party that continues the conversation."""

    async def say(self, text: str) -> str:
        """The answer."""
        ...

    async def restart(self) -> None:
        """End the process and start another one."""
        ...

    async def switch(self) -> None:
        """Let another model answer from now on."""
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class Recalled:
    """Result of a conversation."""

    right: int
    wrong: Sequence[str]


async def carry_on(driver: Driver, plan: Plan) -> Recalled:
    """Say everything, restart and switch in between, and count what was recalled."""
    right, wrong = 0, list[str]()
    for number, turn in enumerate(talk(plan.turns), 1):
        answer = await driver.say(turn.text)
        if turn.fact is not None:
            if answer == f"It is {value_of(turn.fact)}.":
                right += 1
            else:
                wrong.append(f"turn {number}: the {turn.fact}: {answer!r}")
        if number in plan.restarts:
            await driver.restart()
        if number == plan.switch:
            await driver.switch()
    return Recalled(right=right, wrong=wrong)
