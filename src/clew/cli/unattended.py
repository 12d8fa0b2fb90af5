"""Approvals in a one-shot chat: shown once, and waited for with a timeout."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from clew.cli.approval_prompt import format_call
from clew.cli.chat_client import POLL_INTERVAL
from clew.errors import ClewError, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clew.cli.chat_client import ChatClient
    from clew.cli.output import Output
    from clew.core.approval import Approval
    from clew.core.inbox import AcceptResult

_APPROVAL_COMMANDS: Final = frozenset({"approve", "deny"})
#: The prefix of approval ids.
_APPROVAL_ID_PREFIX: Final = "apr_"


class ApprovalTimeout(ClewError):
    """No one allowed a tool call in time; it did not run and still waits."""

    def __init__(self, questions: Sequence[Approval], *, command: str, seconds: float) -> None:
        asked = "\n".join(
            f"  {format_call(one)}\n{_answer_commands(one, command)}" for one in questions
        )
        super().__init__(
            f"nobody allowed within {seconds:g} seconds what the agent wants to run, so it did "
            f"not run:\n{asked}\nIt still waits: use one of these commands, or answer on a "
            f"terminal with: {command}"
        )
        self.approvals = tuple(questions)


def _answer_commands(question: Approval, command: str) -> str:
    return (
        f'    {command} "/approve {question.id}" allows it\n'
        f'    {command} "/deny {question.id}" refuses it'
    )


class ApprovalWatcher:
    """Poller for open approvals while an answer is awaited."""

    def __init__(
        self,
        talk: ChatClient,
        accepted: AcceptResult,
        notes: Output,
        *,
        command: str,
        patience: float,
    ) -> None:
        """``command`` reaches this conversation from a shell."""
        self._talk, self._accepted, self._notes = talk, accepted, notes
        self._command, self._patience = command, patience
        self._shown: set[str] = set()

    async def run(self) -> None:
        """
        Show each open approval once, until one has waited too long.

        :raises ApprovalTimeout: when one was open for ``patience`` seconds
        """
        waited: float | None = None
        clock = asyncio.get_running_loop().time
        asked: Sequence[Approval] = ()
        while True:
            # The follower of the turn waits for a store that is unavailable for a moment.
            with suppress(ClewError):
                asked = await self._talk.list_open_approvals(self._accepted.conversation_id)
            if not asked:
                waited = None
            else:
                waited = clock() if waited is None else waited
                self._show_approvals(asked)
                if clock() - waited >= self._patience:
                    raise ApprovalTimeout(asked, command=self._command, seconds=self._patience)
            await asyncio.sleep(min(POLL_INTERVAL, self._patience or POLL_INTERVAL))

    def _show_approvals(self, asked: Sequence[Approval]) -> None:
        for question in asked:
            if question.id not in self._shown:
                self._shown.add(question.id)
                self._notes.end_line()
                self._notes.write(
                    f"? {format_call(question)}\n{_answer_commands(question, self._command)}\n"
                )


async def require_named_approval(talk: ChatClient, text: str) -> None:
    """
    Check that an approving or denying command names an open approval.

    :raises UsageError: with the open approvals, if it names none or an unknown one
    """
    if talk.parse_command_name(text) not in _APPROVAL_COMMANDS:
        return
    asked = await talk.list_open_approvals()
    named = [*text.split(), ""][1]
    if named in [one.id for one in asked]:
        return
    if named.startswith(_APPROVAL_ID_PREFIX):
        raise UsageError(f"no question {named} waits here: it was answered, or has expired")
    if asked:
        known = "\n".join(f"  {one.id}: {format_call(one)}" for one in asked)
        raise UsageError(
            f"name the call that you answer, for example {text.split(maxsplit=1)[0]} "
            f"{asked[0].id}; these wait:\n{known}"
        )


async def find_resumed_input(talk: ChatClient, text: str) -> AcceptResult | None:
    """Return the input whose turn resumes after an answer to its last open approval."""
    if talk.parse_command_name(text) not in _APPROVAL_COMMANDS:
        return None
    conversation = await talk.find_conversation()
    earlier = [] if conversation is None else await talk.list_pending_inputs(conversation)
    return earlier[0].accepted if earlier and not await talk.list_open_approvals() else None
