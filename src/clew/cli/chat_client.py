"""Client of one conversation: submits inputs and follows their events."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from clew.cli.record_printer import add_list_hint
from clew.commands.builtin import BUILTIN_REGISTRY
from clew.commands.runner import CommandRunner
from clew.core.events import ConversationEvent, InputCompleted
from clew.core.ids import InboxId
from clew.core.inbox import AcceptResult
from clew.core.scope import LOCAL
from clew.core.turn import TurnState
from clew.errors import NotFound
from clew.record import Record

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from clew.cli.output import Output
    from clew.commands.registry import ChatCommand, ChatCommandReply, CommandRegistry
    from clew.core.approval import Approval
    from clew.core.grant import GrantTerm
    from clew.core.ids import ApprovalId, ClientId, ConversationId
    from clew.core.inbox import InboxItem
    from clew.core.turn import Turn
    from clew.engine.engine import Engine
    from clew.runtime import Application

#: Events that the followers of an input receive.
InputEvent = ConversationEvent | InputCompleted
#: Seconds between polls for approvals: they are in the store, without an event.
POLL_INTERVAL: Final = 0.5


class PendingInput(Record):
    """An earlier input that is not answered yet."""

    accepted: AcceptResult
    text: str


class ChatClient:
    """Client of the engine for one conversation."""

    def __init__(
        self, engine: Engine, name: str, commands: CommandRegistry = BUILTIN_REGISTRY
    ) -> None:
        """
        Resolve the target.

        :raises UsageError: if ``name`` can be neither an id nor a NAME
        """
        self._engine, self._name, self._commands = engine, name, commands
        self._target = engine.parse_target(name)
        self._client: ClientId | None = None

    async def attach_to(self, conversation: ConversationId) -> None:
        """Mark the conversation, and no other, as open in this client until ``detach``."""
        clients = self._engine.clients
        done = await clients.attach(conversation, front="chat", client=self._client)
        self._client = done.client

    async def detach(self) -> None:
        """Mark the conversation as closed here: its session ends unless others use it."""
        if self._client is not None:
            await self._engine.clients.close(self._client)

    async def find_conversation(self) -> ConversationId | None:
        """
        Return the conversation; ``None`` for a NAME that was not used yet.

        :raises UsageError: for an unknown id
        """
        try:
            return await self._engine.resolve_name(self._name)
        except NotFound as error:
            if isinstance(self._target, str):
                raise add_list_hint(error) from error
            return None

    async def submit_message(self, text: str) -> AcceptResult:
        """
        Submit a message; it is stored when this returns.

        :raises UsageError: if it is empty, too long, or for an unknown id
        """
        try:
            return await self._engine.submit(text, target=self._target)
        except NotFound as error:
            raise add_list_hint(error) from error

    async def run_command(self, text: str) -> ChatCommandReply:
        """
        Run a chat command.

        :raises UsageError: for an unknown id
        """
        await self.find_conversation()
        runner = CommandRunner(self._engine, self._commands)
        return await runner.run_command(text, target=self._target, viewer=LOCAL)

    def parse_command_name(self, text: str) -> str | None:
        """Return the name of the chat command in a text; ``None`` for an unknown one."""
        command = self.find_command(text)
        return None if command is None else command.name

    def find_command(self, text: str) -> ChatCommand | None:
        """Return the chat command in a text; ``None`` for an unknown one."""
        name = text.strip().removeprefix("/").split(maxsplit=1)[0]
        return self._commands.find_command(name.partition("@")[0])

    async def list_pending_inputs(
        self, conversation: ConversationId, *, before: InboxId | None = None
    ) -> list[PendingInput]:
        """Return the unanswered inputs in order; with ``before``, those ahead of that input."""
        found: list[PendingInput] = []
        turn = await self._engine.get_unfinished_turn(conversation)
        if turn is not None:
            found.append(await self._load_started_input(turn))
        line = _items_before(await self._engine.list_queue(conversation), before)
        found.extend(_make_pending_input(item.id, conversation, item.text) for item in line)
        return [one for one in found if one.accepted.inbox_id != before]

    async def _load_started_input(self, turn: Turn) -> PendingInput:
        (entry,) = await self._engine.read_entries(
            turn.conversation_id, after=turn.first_seq - 1, limit=1
        )
        # The entry of an input has the input's id with another prefix.
        inbox_id = InboxId(f"inb_{entry.id.removeprefix('ent_')}")
        return _make_pending_input(inbox_id, turn.conversation_id, entry.text)

    def wake_conversation(self, conversation: ConversationId) -> None:
        """Work on the conversation although nothing was submitted here."""
        self._engine.wake_conversation(conversation)

    async def list_open_approvals(
        self, conversation: ConversationId | None = None
    ) -> Sequence[Approval]:
        """
        Return the tool calls that wait for approval.

        Empty until all requests of a step are stored. Without an id, those of the
        conversation that the name leads to now.
        """
        found = conversation or await self.find_conversation()
        turn = None if found is None else await self._engine.get_unfinished_turn(found)
        if found is None or turn is None or turn.state is not TurnState.WAITING:
            return ()
        return await self._engine.list_approvals(found)

    async def answer_approval(
        self,
        approval: ApprovalId,
        *,
        yes: bool,
        keep: GrantTerm | None = None,
        note: str | None = None,
    ) -> None:
        """
        Allow or refuse a tool call; the first answer counts.

        :raises ClewError: if it was already answered, or has expired
        """
        await self._engine.answer_approval(approval, yes=yes, by=LOCAL, keep=keep, note=note)

    def follow_input(self, accepted: AcceptResult) -> InputEventStream:
        """Collect the events of an input from now on, however late they are read."""
        return InputEventStream(self._engine, accepted)

    async def interrupt_input(self, accepted: AcceptResult) -> None:
        """Cancel the input, or stop the turn that answers it."""
        if not await self._engine.cancel_input(accepted.inbox_id):
            await self._engine.request_stop(accepted.conversation_id)


async def open_client(product: Application, name: str, notes: Output) -> ChatClient:
    """
    Return the client of a name: of the conversation with that title where no NAME is so.

    :raises UsageError: if ``name`` can be neither an id nor a NAME
    """
    engine = product.engine
    client = ChatClient(engine, name, product.commands)
    if await client.find_conversation() is not None:
        return client
    listed = (await engine.list_conversations(viewer=LOCAL, title=name)).items
    titled = [one for one in listed if (one.title or "").casefold() == name.casefold()]
    if len(titled) != 1:
        return client
    notes.print_dim(
        f"(no conversation has this name; this one has it as its title: {titled[0].id})"
    )
    return ChatClient(engine, titled[0].id, product.commands)


class InputEventStream:
    """Stream of one input's events, collected from its creation; ends with ``InputCompleted``."""

    def __init__(self, engine: Engine, accepted: AcceptResult) -> None:
        self._engine, self._accepted = engine, accepted
        self._queue: asyncio.Queue[InputEvent | None] = asyncio.Queue()
        self._task = asyncio.create_task(self._collect_events(), name="follow")

    async def _collect_events(self) -> None:
        try:
            async for event in self._engine.stream_input(self._accepted):
                self._queue.put_nowait(event)
        finally:
            self._queue.put_nowait(None)

    async def __aiter__(self) -> AsyncIterator[InputEvent]:
        while (event := await self._queue.get()) is not None:
            yield event
        await self._task  # raises the error of the task, if any

    def close(self) -> None:
        self._task.cancel()


def _items_before(line: Sequence[InboxItem], before: InboxId | None) -> Sequence[InboxItem]:
    if before is None:
        return line
    ids = [item.id for item in line]
    return line[: ids.index(before)] if before in ids else ()


def _make_pending_input(inbox_id: InboxId, conversation: ConversationId, text: str) -> PendingInput:
    accepted = AcceptResult(
        inbox_id=inbox_id, conversation_id=conversation, duplicate=False, position=0
    )
    return PendingInput(accepted=accepted, text=text)
