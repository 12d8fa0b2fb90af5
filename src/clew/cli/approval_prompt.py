"""Approval prompts of a line-by-line chat: which were shown, and which line answers them."""

from __future__ import annotations

import enum
import re
from typing import TYPE_CHECKING, Final

from clew.core.escapes import make_visible
from clew.core.grant import GRANT_TERMS
from clew.record import Record

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clew.cli.typeahead import TypedLine
    from clew.core.approval import Approval
    from clew.core.grant import GrantTerm
    from clew.core.ids import ApprovalId

_YES: Final = frozenset({"y", "yes"})
_NO: Final = frozenset({"n", "no"})
_ALL: Final = frozenset({"a", "all"})
ANSWER_WORDS: Final = _YES | _NO | _ALL | GRANT_TERMS.keys()
#: ``no, because it is late``: what follows is the reason.
_REASON: Final = re.compile(r"(n|no),? because\b[\s:,]*(.+)", re.IGNORECASE | re.DOTALL)
#: Equivalent chat commands.
_COMMANDS: Final = {
    "/approve": "y",
    "/approve 1": "y",
    "/deny": "n",
    "/approve all": "a",
    "/approve hour": "hour",
    "/approve always": "always",
}


class LineMeaning(enum.Enum):
    """The meaning of a line while approvals are open."""

    #: An answer to the approvals that ``InterpretedLine`` names.
    ANSWER = enum.auto()
    #: An answer word without an approval that was shown before it was typed.
    STRAY = enum.auto()
    #: Anything else: a message or a command, no approval.
    MESSAGE = enum.auto()


class InterpretedLine(Record):
    """The meaning of a line, and the approvals that it answers."""

    meaning: LineMeaning
    yes: bool = False
    approvals: tuple[Approval, ...] = ()
    #: Its duration, beyond the call.
    keep: GrantTerm | None = None
    #: The reason for a denial, for the model.
    note: str | None = None


def _split_reason(text: str) -> tuple[str, str | None]:
    """Return the answer word of a line, and the reason behind it."""
    if (found := _REASON.fullmatch(text)) is not None:
        return "n", found[2].strip()
    word = text.lower()
    return _COMMANDS.get(word, word), None


class ApprovalPrompt:
    """
    The open approvals, and which of them were shown.

    Only exact words count, typed by hand on a line started after the prompt was shown. The
    next prompt is shown again before it can be answered.
    """

    def __init__(self) -> None:
        self._asked: list[Approval] = []
        #: Those shown before the current line was started.
        self._armed: tuple[ApprovalId, ...] = ()
        self._answered: set[ApprovalId] = set()
        #: An answer was given and nothing shown since: another one repeats it.
        self._echo = False

    @property
    def open(self) -> Sequence[Approval]:
        return self._asked

    def update(self, asked: Sequence[Approval]) -> bool:
        """Replace the open approvals; return ``True`` if there is something new to show."""
        self._asked = [one for one in asked if one.id not in self._answered]
        ids = [one.id for one in self._asked]
        self._armed = tuple(each for each in self._armed if each in ids)
        return bool(set(ids) - set(self._armed))

    def needs_display(self) -> bool:
        """Return ``True`` if an open approval cannot be answered yet."""
        return len(self._armed) < len(self._asked)

    def arm_answers(self) -> None:
        """Accept answers from now on: every open approval was just shown."""
        self._armed = tuple(one.id for one in self._asked)
        self._echo = False

    def note_output(self) -> None:
        """Record that the turn printed output: an answer word is a message again."""
        self._echo = False

    def interpret_line(self, line: TypedLine) -> InterpretedLine:
        """Return the meaning of a line, and close the approvals that it answers."""
        word, note = _split_reason(line.text.strip())
        if word not in ANSWER_WORDS or not (self._asked or self._echo):
            return InterpretedLine(meaning=LineMeaning.MESSAGE)
        if not (self._armed and line.fresh and line.by_hand):
            return InterpretedLine(meaning=LineMeaning.STRAY)
        armed = [one for one in self._asked if one.id in self._armed]
        keep = GRANT_TERMS.get(word)
        if keep is not None and armed[0].offer is None:
            return InterpretedLine(meaning=LineMeaning.STRAY)
        chosen = armed if word in _ALL else armed[:1]
        return self._record_answer(chosen, yes=word not in _NO, keep=keep, note=note)

    def _record_answer(
        self,
        chosen: Sequence[Approval],
        *,
        yes: bool,
        keep: GrantTerm | None,
        note: str | None,
    ) -> InterpretedLine:
        self._answered |= {one.id for one in chosen}
        self._asked = [one for one in self._asked if one.id not in self._answered]
        self._armed, self._echo = (), True
        return InterpretedLine(
            meaning=LineMeaning.ANSWER, yes=yes, approvals=tuple(chosen), keep=keep, note=note
        )

    def is_armed(self) -> bool:
        """Return whether a line can answer now."""
        return bool(self._armed)


def format_prompts(questions: Sequence[Approval]) -> list[str]:
    """Return the lines that show approvals, with every argument in full."""
    count = len(questions)
    lines = [
        line
        for place, one in enumerate(questions, start=1)
        for line in _format_question(one, f"{place} of {count}: " if count > 1 else "")
    ]
    hint = _SINGLE_ANSWER_HINT if count == 1 else _answer_hint(count)
    return [*lines, *_format_offer(questions[0]), hint]


def _format_question(question: Approval, place: str) -> list[str]:
    shown = [] if question.preview is None else question.preview.splitlines()
    why = [] if question.why is None else [f"  (asked because {make_visible(question.why)})"]
    return [f"? {place}{format_call(question)}", *(f"  {make_visible(one)}" for one in shown), *why]


def _format_offer(question: Approval) -> list[str]:
    if question.offer is None:
        return []
    says = make_visible(question.offer.says)
    return [f"(hour allows it for an hour here, always for good, and whatever is alike: {says})"]


def format_call(question: Approval) -> str:
    """Format a tool call as it would run, with every character visible."""
    return f"{make_visible(question.tool)}({make_visible(question.args)})"


_SINGLE_ANSWER_HINT: Final = (
    "(y allows it, n refuses it, n because … says why; anything else is sent as a message and "
    "allows nothing)"
)


def _answer_hint(count: int) -> str:
    return (
        f"(y allows the first, n refuses it, a allows all {count}; anything else is sent as a "
        "message and allows nothing)"
    )
