"""
Chat commands: the context of a call, and the registry that every front reads.

A registry holds the built-in commands and those of features; a name belongs to one command.
"""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

from clew.core.inbox import InboxOutcome
from clew.errors import NotFound, SettingsError, UsageError
from clew.record import Record

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from clew.core.access import ChannelActor
    from clew.core.events import InputCompleted
    from clew.core.ids import ConversationId
    from clew.core.inbox import AcceptResult
    from clew.core.message_order import WrittenMessage
    from clew.core.route import Route
    from clew.core.scope import Scope
    from clew.engine.engine import Engine
    from clew.plugin.context import FeatureContext


class ChatCommandReply(Record):
    """The reply to a chat command, and the conversation that it leads to."""

    text: str
    #: The conversation that the command concerned, or moved the route to.
    conversation: ConversationId | None = None
    #: A message that was submitted again: a front that shows answers follows it.
    accepted: AcceptResult | None = None
    #: This process ends, and the next one replies to what it finds without a reply.
    replies_after_restart: bool = False


class CommandContext(Record):
    """The context of one chat command."""

    engine: Engine
    commands: CommandRegistry
    #: Route on which it was written; ``None`` if the conversation was named by its id.
    route: Route | None
    #: The conversation of the route, if there is one yet.
    conversation_id: ConversationId | None
    viewer: Scope
    #: True if the writer may also manage people.
    operator: bool = False
    #: The writer, on chat platforms.
    who: ChannelActor | None = None
    #: Their message, on chat platforms.
    written: WrittenMessage | None = None
    #: A program sent it, which may have read a question or not: it has to name the question's id.
    from_program: bool = False
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

    @property
    def services(self) -> FeatureContext:
        """The services of features."""
        return self.engine.feature_context

    async def find_conversation(self) -> ConversationId | None:
        """Return the conversation, also one that the command has opened."""
        if self.conversation_id is not None or self.route is None:
            return self.conversation_id
        try:
            return await self.engine.resolve_name(self.route.key, viewer=self.viewer)
        except NotFound:
            return None

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


class ChatCommand(Record):
    """One chat command: its row in the table, and its handler."""

    name: str
    aliases: tuple[str, ...] = ()
    #: As shown in help: ``[title]``.
    arguments: str = ""
    help: str
    #: Answers at once, also while a turn runs.
    control: bool = False
    #: Only for operators.
    operator: bool = False
    #: Reply of the next process where this one ended before its own; a general notice without it.
    interrupted_reply: str | None = None
    #: ``/ONE:TWO …`` is a call of it with the argument ``ONE TWO …``.
    takes_prefixed: bool = False
    run: Callable[[CommandContext, str], Awaitable[ChatCommandReply]]

    @property
    def usage(self) -> str:
        return f"/{self.name} {self.arguments}".rstrip()


class CommandRegistry:
    """
    The chat commands of a program, in the order of ``/help``; it never changes.

    Names and aliases are case-insensitive, and unique among all owners.
    """

    def __init__(self, commands: Iterable[ChatCommand], *, owner: str = "clew") -> None:
        """
        Register the commands of one owner.

        :raises SettingsError: if two of them have the same name
        """
        self.commands: tuple[ChatCommand, ...] = ()
        #: Warnings in ``/status``, for as long as the program runs.
        self.warnings: tuple[str, ...] = ()
        self._by_name: dict[str, ChatCommand] = {}
        self._owners: dict[str, str] = {}
        self._register_all(commands, owner)

    def with_commands(self, commands: Iterable[ChatCommand], *, owner: str) -> CommandRegistry:
        """
        Return a registry with another owner's commands added.

        :raises SettingsError: if a name is taken; it names both owners
        """
        extended = CommandRegistry(())
        extended.commands, extended.warnings = self.commands, self.warnings
        extended._by_name, extended._owners = dict(self._by_name), dict(self._owners)
        extended._register_all(commands, owner)
        return extended

    def with_warning(self, warning: str) -> CommandRegistry:
        """Return a registry whose ``/status`` shows a warning as well."""
        extended = self.with_commands((), owner="")
        extended.warnings += (warning,)
        return extended

    def _register_all(self, commands: Iterable[ChatCommand], owner: str) -> None:
        for command in commands:
            for name in (command.name, *command.aliases):
                if name in self._owners:
                    raise SettingsError(
                        f"the chat command /{name} is defined by {self._owners[name]} and by "
                        f"{owner}: disable or rename one of them"
                    )
                self._by_name[name], self._owners[name] = command, owner
            self.commands += (command,)

    def find_command(self, name: str) -> ChatCommand | None:
        """Return the command of a name or alias, in any case."""
        return self._by_name.get(name.lower())

    def find_call(self, name: str, argument: str) -> tuple[ChatCommand | None, str]:
        """
        Return the command of a call, and its argument.

        A command of two words takes the call from the one of its first word: ``/undo files``.
        ``/files:review`` is for the command that takes such names.
        """
        if ":" in name:
            taking = next((one for one in self.commands if one.takes_prefixed), None)
            return taking, f"{name.replace(':', ' ', 1)} {argument}".rstrip()
        word, _, rest = argument.partition(" ")
        if word and (longer := self.find_command(f"{name} {word}")) is not None:
            return longer, rest.strip()
        return self.find_command(name), argument

    def find_similar_name(self, name: str) -> str | None:
        """Return the most similar name, for a hint."""
        near = difflib.get_close_matches(name.lower(), self._by_name, n=1, cutoff=0.5)
        return near[0] if near else None
