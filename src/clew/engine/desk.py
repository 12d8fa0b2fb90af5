"""Where a chat command is carried out: what it may use, and what it gives back."""

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
    from clew.store.transactions.hearing import ChannelActor


@dataclass(frozen=True, kw_only=True, slots=True)
class Reply:
    """What a person is told, and where the talk goes on."""

    text: str
    #: The conversation that the command was about, or has moved the route to.
    conversation: ConversationId | None = None
    #: A message that was handed in again: whoever shows answers follows it.
    accepted: AcceptResult | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Desk:
    """One command's place."""

    engine: Engine
    #: Where it was written; ``None`` where a conversation was named by an id.
    route: Route | None
    #: The conversation there, if there is one yet.
    found: ConversationId | None
    viewer: Scope
    #: Whether whoever writes may also manage people.
    operator: bool = False
    #: Who wrote it, where that is known: on chat platforms.
    who: ChannelActor | None = None
    #: Told once what the command files stands in the line: what is said next comes after it.
    on_filed: Callable[[], None] = lambda: None

    @property
    def conversation(self) -> ConversationId:
        """:raises UsageError: if nothing was said here yet"""
        if self.found is None:
            raise UsageError("there is no conversation here yet: write something first")
        return self.found

    @property
    def own_route(self) -> Route:
        """:raises UsageError: if the conversation was named by an id"""
        if self.route is None:
            raise UsageError("this needs a name or a chat to act on, not the id of a conversation")
        return self.route

    def reply(self, text: str) -> Reply:
        return Reply(text=text, conversation=self.found)

    async def done(self, filed: AcceptResult) -> str | None:
        """
        The note of a filed command once it was carried out; ``None`` if a turn keeps it waiting.

        :raises UsageError: if it could not be carried out
        """
        self.on_filed()
        if await self.engine.unfinished_turn(filed.conversation_id) is not None:
            # Looked at last: the turn may be one that began after it was carried out.
            end = await self.engine.input_end(filed.inbox_id)
            return None if end is None else executed(end)
        return executed(await self.engine.carried_out(filed))


def executed(end: InputCompleted) -> str:
    """
    The note of a command that was carried out.

    :raises UsageError: if it could not be
    """
    if end.outcome is not InboxOutcome.EXECUTED:
        raise UsageError(end.note or "it was not carried out")
    return end.note or ""


WAITS = "That will be done when the running turn has ended; /stop ends it now."


def number(argument: str, *, default: int | None = None) -> int:
    """:raises UsageError: if it is no number from 1"""
    if not argument and default is not None:
        return default
    if not (argument.isascii() and argument.isdigit() and int(argument) >= 1):
        raise UsageError(f"{argument!r} is no number: write one from 1")
    return int(argument)
