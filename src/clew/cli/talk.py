"""A person's side of a conversation: inputs handed in, and what becomes of each, in order."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from clew.cli.reading import no_such
from clew.core.events import ConversationEvent, InputCompleted
from clew.core.ids import InboxId
from clew.core.inbox import AcceptResult
from clew.core.scope import LOCAL
from clew.core.turn import TurnState
from clew.engine.slash import find_command
from clew.errors import NotFound

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from clew.core.approval import Approval
    from clew.core.ids import ApprovalId, ClientId, ConversationId
    from clew.core.inbox import InboxItem
    from clew.core.turn import Turn
    from clew.engine.engine import Engine
    from clew.engine.slash import ChatCommand, ChatCommandReply

#: What those who follow an input are told.
Told = ConversationEvent | InputCompleted
#: Seconds between looks for questions: they stand in the store, without an event.
LOOK: Final = 0.5


@dataclass(frozen=True, kw_only=True, slots=True)
class Earlier:
    """An input of before that is not answered yet."""

    accepted: AcceptResult
    text: str


class Talk:
    """Hands inputs to the engine and follows them."""

    def __init__(self, engine: Engine, name: str) -> None:
        """:raises UsageError: if ``name`` can be neither an id nor a NAME"""
        self._engine, self._name = engine, name
        self._target = engine.parse_target(name)
        self._client: ClientId | None = None

    async def attach(self, conversation: ConversationId) -> None:
        """Say that a person looks at this conversation, and at no other, until ``leave``."""
        clients = self._engine.clients
        done = await clients.attach(conversation, front="chat", client=self._client)
        self._client = done.client

    async def leave(self) -> None:
        """Say that the person has closed it: unless others use it, its session ends."""
        if self._client is not None:
            await self._engine.clients.close(self._client)

    async def find(self) -> ConversationId | None:
        """
        The conversation; ``None`` for a NAME that was not used yet.

        :raises UsageError: for an id of nothing
        """
        try:
            return await self._engine.resolve_name(self._name)
        except NotFound as error:
            if isinstance(self._target, str):
                raise no_such(error) from error
            return None

    async def submit(self, text: str) -> AcceptResult:
        """
        Hand a message in; when this returns it is stored.

        :raises UsageError: if it is empty, too long, or for an id of nothing
        """
        try:
            return await self._engine.submit(text, target=self._target)
        except NotFound as error:
            raise no_such(error) from error

    async def command(self, text: str) -> ChatCommandReply:
        """
        Carry out a chat command.

        :raises UsageError: for an id of nothing
        """
        await self.find()
        return await self._engine.run_command(text, target=self._target, viewer=LOCAL)

    async def earlier(
        self, conversation: ConversationId, *, before: InboxId | None = None
    ) -> list[Earlier]:
        """What is still to be answered, in order; with ``before``, ahead of that input."""
        found: list[Earlier] = []
        turn = await self._engine.get_unfinished_turn(conversation)
        if turn is not None:
            found.append(await self._begun(turn))
        line = _ahead(await self._engine.list_queue(conversation), before)
        found.extend(_earlier(item.id, conversation, item.text) for item in line)
        return [one for one in found if one.accepted.inbox_id != before]

    async def _begun(self, turn: Turn) -> Earlier:
        (entry,) = await self._engine.read_entries(
            turn.conversation_id, after=turn.first_seq - 1, limit=1
        )
        # The entry of an input has the input's id but for the prefix.
        inbox_id = InboxId(f"inb_{entry.id.removeprefix('ent_')}")
        return _earlier(inbox_id, turn.conversation_id, entry.text)

    def attend(self, conversation: ConversationId) -> None:
        """Work on what the conversation has to do, though nothing was handed in here."""
        self._engine.wake_conversation(conversation)

    async def questions(self, conversation: ConversationId | None = None) -> Sequence[Approval]:
        """
        Return the tool calls that wait for a person, once all that a step asks for is asked.

        Without an id, those of the conversation that the name leads to now.
        """
        found = conversation or await self.find()
        turn = None if found is None else await self._engine.get_unfinished_turn(found)
        if found is None or turn is None or turn.state is not TurnState.WAITING:
            return ()
        return await self._engine.list_approvals(found)

    async def answer(self, approval: ApprovalId, *, yes: bool) -> None:
        """
        Allow or refuse a call; the first answer counts.

        :raises ClewError: if it was answered already, or has expired
        """
        await self._engine.answer_approval(approval, yes=yes, by=LOCAL)

    def follow(self, accepted: AcceptResult) -> Following:
        """Follow an input from now on, however late its events are read."""
        return Following(self._engine, accepted)

    async def interrupt(self, accepted: AcceptResult) -> None:
        """Take the input back, or stop the turn that answers it."""
        if not await self._engine.cancel_input(accepted.inbox_id):
            await self._engine.request_stop(accepted.conversation_id)


class Following:
    """The events of one input, collected from the start; the last one is its ``InputEnded``."""

    def __init__(self, engine: Engine, accepted: AcceptResult) -> None:
        self._engine, self._accepted = engine, accepted
        self._queue: asyncio.Queue[Told | None] = asyncio.Queue()
        self._task = asyncio.create_task(self._collect(), name="follow")

    async def _collect(self) -> None:
        try:
            async for event in self._engine.stream_input(self._accepted):
                self._queue.put_nowait(event)
        finally:
            self._queue.put_nowait(None)

    async def __aiter__(self) -> AsyncIterator[Told]:
        while (event := await self._queue.get()) is not None:
            yield event
        await self._task  # raises what went wrong

    def close(self) -> None:
        self._task.cancel()


def answers_at_once(text: str) -> bool:
    """Whether a chat command is answered while a turn runs; the others stand in line."""
    command = _find(text)
    return command is None or command.control


def command_of(text: str) -> str | None:
    """Return the name of the chat command that a text is; ``None`` for one that is unknown."""
    command = _find(text)
    return None if command is None else command.name


def _find(text: str) -> ChatCommand | None:
    name = text.strip().removeprefix("/").split(maxsplit=1)[0]
    return find_command(name.partition("@")[0])


def _ahead(line: Sequence[InboxItem], before: InboxId | None) -> Sequence[InboxItem]:
    if before is None:
        return line
    ids = [item.id for item in line]
    return line[: ids.index(before)] if before in ids else ()


def _earlier(inbox_id: InboxId, conversation: ConversationId, text: str) -> Earlier:
    accepted = AcceptResult(
        inbox_id=inbox_id, conversation_id=conversation, duplicate=False, position=0
    )
    return Earlier(accepted=accepted, text=text)
