"""Tool calls that wait for a person, where nobody sits: said, and not waited for without end."""

from __future__ import annotations

import asyncio
import shlex
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from clew.cli.questions import call
from clew.cli.talk import LOOK, command_of
from clew.errors import ClewError, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clew.cli.talk import Talk
    from clew.cli.terminal import Output
    from clew.core.approval import Approval
    from clew.core.inbox import AcceptResult

_CONSENT: Final = frozenset({"approve", "deny"})
#: How the ids of questions begin.
_ID: Final = "apr_"


class ApprovalMissing(ClewError):
    """Nobody allowed a tool call in time; it did not run and still waits."""

    def __init__(self, questions: Sequence[Approval], *, name: str, seconds: float) -> None:
        asked = "\n".join(f"  {call(one)}\n{_ways(one, name)}" for one in questions)
        super().__init__(
            f"nobody allowed within {seconds:g} seconds what the agent wants to run, so it did "
            f"not run:\n{asked}\nIt still waits: use one of these commands, or answer on a "
            f"terminal with: clew chat -c {shlex.quote(name)}"
        )
        self.questions = tuple(questions)


def _ways(question: Approval, name: str) -> str:
    place = f"clew chat -c {shlex.quote(name)}"
    return (
        f'    {place} "/approve {question.id}" allows it\n'
        f'    {place} "/deny {question.id}" refuses it'
    )


class Watch:
    """Looks for questions while an answer is waited for."""

    def __init__(
        self, talk: Talk, accepted: AcceptResult, notes: Output, *, name: str, patience: float
    ) -> None:
        self._talk, self._accepted, self._notes = talk, accepted, notes
        self._name, self._patience = name, patience
        self._shown: set[str] = set()

    async def run(self) -> None:
        """
        Show each question once, for as long as none waits too long.

        :raises ApprovalMissing: when one was open for longer than there is patience
        """
        waited: float | None = None
        clock = asyncio.get_running_loop().time
        asked: Sequence[Approval] = ()
        while True:
            # A store that is away for a moment is waited for by whoever follows the turn.
            with suppress(ClewError):
                asked = await self._talk.questions(self._accepted.conversation_id)
            if not asked:
                waited = None
            else:
                waited = clock() if waited is None else waited
                self._show(asked)
                if clock() - waited >= self._patience:
                    raise ApprovalMissing(asked, name=self._name, seconds=self._patience)
            await asyncio.sleep(min(LOOK, self._patience or LOOK))

    def _show(self, asked: Sequence[Approval]) -> None:
        for question in asked:
            if question.id not in self._shown:
                self._shown.add(question.id)
                self._notes.end_line()
                self._notes.write(f"? {call(question)}\n{_ways(question, self._name)}\n")


async def refuse_blind_consent(talk: Talk, text: str) -> None:
    """
    Check that a command which allows or refuses names what it answers.

    :raises UsageError: with all that waits, if it names nothing, or what does not wait
    """
    if command_of(text) not in _CONSENT:
        return
    asked, named = await talk.questions(), text.rsplit(maxsplit=1)[-1]
    if named in [one.id for one in asked]:
        return
    if named.startswith(_ID):
        raise UsageError(f"no question {named} waits here: it was answered, or has expired")
    if asked:
        known = "\n".join(f"  {one.id}: {call(one)}" for one in asked)
        raise UsageError(
            f"name the call that you answer, for example {text.split(maxsplit=1)[0]} "
            f"{asked[0].id}; these wait:\n{known}"
        )


async def released(talk: Talk, text: str) -> AcceptResult | None:
    """Return the input whose turn goes on after an answer to its last question."""
    if command_of(text) not in _CONSENT:
        return None
    conversation = await talk.find()
    earlier = [] if conversation is None else await talk.earlier(conversation)
    return earlier[0].accepted if earlier and not await talk.questions() else None
