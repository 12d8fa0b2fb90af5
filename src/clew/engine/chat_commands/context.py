"""The context in which a chat command runs, and its reply."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from clew.core.inbox import InboxOutcome
from clew.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from clew.core.events import InputCompleted
    from clew.core.ids import ConversationId
    from clew.core.inbox import AcceptResult
    from clew.core.route import Route
    from clew.core.scope import Scope
    from clew.engine.engine import Engine
    from clew.store.transactions.channel_inbox import ChannelActor


@dataclass(frozen=True, kw_only=True, slots=True)
class ChatCommandReply:
    """The reply to a chat command, and the conversation that it leads to."""

    text: str
    #: The conversation that the command concerned, or moved the route to.
    conversation: ConversationId | None = None
    #: A message that was submitted again: a front that shows answers follows it.
    accepted: AcceptResult | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class CommandContext:
    """The context of one chat command."""

    engine: Engine
    #: Where it was written; ``None`` if the conversation was named by its id.
    route: Route | None
    #: The conversation of the route, if there is one yet.
    conversation_id: ConversationId | None
    viewer: Scope
    #: Whether the writer may also manage people.
    operator: bool = False
    #: The writer, on chat platforms.
    who: ChannelActor | None = None
    #: Called once the command is queued: later messages come after it.
    on_filed: Callable[[], None] = lambda: None

    @property
    def required_conversation(self) -> ConversationId:
        """
        Return the conversation.

        :raises UsageError: if there is none here yet
        """
        if self.conversation_id is None:
            raise UsageError("there is no conversation here yet: write something first")
        return self.conversation_id

    @property
    def required_route(self) -> Route:
        """
        Return the route.

        :raises UsageError: if the conversation was named by an id
        """
        if self.route is None:
            raise UsageError("this needs a name or a chat to act on, not the id of a conversation")
        return self.route

    def reply(self, text: str) -> ChatCommandReply:
        return ChatCommandReply(text=text, conversation=self.conversation_id)

    async def wait_for_command(self, filed: AcceptResult) -> str | None:
        """
        Return the note of a queued command once executed; ``None`` while a turn delays it.

        :raises UsageError: if it could not be executed
        """
        self.on_filed()
        if await self.engine.get_unfinished_turn(filed.conversation_id) is not None:
            # Read last: the turn may have begun after the command was executed.
            end = await self.engine.get_input_result(filed.inbox_id)
            return None if end is None else get_execution_note(end)
        return get_execution_note(await self.engine.wait_for_input(filed))


def get_execution_note(end: InputCompleted) -> str:
    """
    Return the note of an executed command.

    :raises UsageError: if it could not be executed
    """
    if end.outcome is not InboxOutcome.EXECUTED:
        raise UsageError(end.note or "it was not carried out")
    return end.note or ""


WAITING_FOR_TURN = "That will be done when the running turn has ended; /stop ends it now."


def parse_number(argument: str, *, default: int | None = None) -> int:
    """
    Return the number of an argument.

    :raises UsageError: if it is no number from 1
    """
    if not argument and default is not None:
        return default
    if not (argument.isascii() and argument.isdigit() and int(argument) >= 1):
        raise UsageError(f"{argument!r} is no number: write one from 1")
    return int(argument)
