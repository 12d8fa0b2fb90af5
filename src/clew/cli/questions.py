"""The questions of a line-by-line chat: which were shown, and which line answers which."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from clew.core.escapes import make_visible

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clew.cli.typed import TypedLine
    from clew.core.approval import Approval
    from clew.core.ids import ApprovalId

_YES: Final = frozenset({"y", "yes"})
_NO: Final = frozenset({"n", "no"})
_ALL: Final = frozenset({"a", "all"})
WORDS: Final = _YES | _NO | _ALL
#: The chat commands that say the same.
_COMMANDS: Final = {"/approve": "y", "/approve 1": "y", "/deny": "n", "/approve all": "a"}


class Meaning(enum.Enum):
    """What a line is beside a question."""

    #: An answer to the questions that ``Answer`` names.
    ANSWER = enum.auto()
    #: A word of an answer for which there is no question that was shown before it was typed.
    STRAY = enum.auto()
    #: Anything else: a message or a command, and no consent.
    MESSAGE = enum.auto()


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """The meaning of a line, and the questions that it answers."""

    meaning: Meaning
    yes: bool = False
    questions: tuple[Approval, ...] = ()


class Questions:
    """
    The open questions, as far as they were shown.

    Only the exact words count, typed by hand on a line that was begun after its question was
    shown. A question that follows another one is shown anew before it can be answered.
    """

    def __init__(self) -> None:
        self._asked: list[Approval] = []
        #: Those that were shown before the line that is typed now was begun.
        self._armed: tuple[ApprovalId, ...] = ()
        self._answered: set[ApprovalId] = set()
        #: An answer was given, and nothing was shown since: another one is the same once more.
        self._echo = False

    @property
    def open(self) -> Sequence[Approval]:
        return self._asked

    def update(self, asked: Sequence[Approval]) -> bool:
        """Take in what the store asks now; return whether there is something new to show."""
        self._asked = [one for one in asked if one.id not in self._answered]
        ids = [one.id for one in self._asked]
        self._armed = tuple(each for each in self._armed if each in ids)
        return bool(set(ids) - set(self._armed))

    def is_to_be_shown(self) -> bool:
        """Return whether a question is open that cannot be answered yet."""
        return len(self._armed) < len(self._asked)

    def arm(self) -> None:
        """Let the questions be answered: all of them were just shown."""
        self._armed = tuple(one.id for one in self._asked)
        self._echo = False

    def something_shown(self) -> None:
        """Take note that the turn went on visibly: a word of an answer is a message again."""
        self._echo = False

    def read(self, line: TypedLine) -> Answer:
        """Return what a line means; the questions that it answers are not open any more."""
        word = _COMMANDS.get(line.text.strip().lower(), line.text.strip().lower())
        if word not in WORDS or not (self._asked or self._echo):
            return Answer(meaning=Meaning.MESSAGE)
        if not (self._armed and line.fresh and line.by_hand):
            return Answer(meaning=Meaning.STRAY)
        armed = [one for one in self._asked if one.id in self._armed]
        return self._answer(armed if word in _ALL else armed[:1], yes=word not in _NO)

    def _answer(self, chosen: Sequence[Approval], *, yes: bool) -> Answer:
        self._answered |= {one.id for one in chosen}
        self._asked = [one for one in self._asked if one.id not in self._answered]
        self._armed, self._echo = (), True
        return Answer(meaning=Meaning.ANSWER, yes=yes, questions=tuple(chosen))

    def is_armed(self) -> bool:
        """Return whether a line could answer now."""
        return bool(self._armed)


def shown(questions: Sequence[Approval]) -> list[str]:
    """Return the lines that show questions: every argument to the letter, all of them."""
    count = len(questions)
    lines = [
        f"? {f'{place} of {count}: ' if count > 1 else ''}{call(one)}"
        for place, one in enumerate(questions, start=1)
    ]
    return [*lines, _HOW_TO_ANSWER_ONE if count == 1 else _how_to_answer(count)]


def call(question: Approval) -> str:
    """Return a call as it would run, every character visible."""
    return f"{make_visible(question.tool)}({make_visible(question.args)})"


_HOW_TO_ANSWER_ONE: Final = (
    "(y allows it, n refuses it; anything else is sent as a message and allows nothing)"
)


def _how_to_answer(count: int) -> str:
    return (
        f"(y allows the first, n refuses it, a allows all {count}; anything else is sent as a "
        "message and allows nothing)"
    )
