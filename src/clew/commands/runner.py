"""
The runner of chat commands, for every front.

A front passes a text that begins with ``/`` and shows the reply. Commands of the control lane
answer at once, also while a turn runs; the others may wait for it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from clew.commands.builtin import BUILTIN_REGISTRY, explain_unknown
from clew.commands.registry import ChatCommandReply, CommandContext
from clew.core import scope as scopes
from clew.core.command_text import COMMAND_PATTERN
from clew.core.route import Route
from clew.core.scope import can_see, scope_of
from clew.errors import NotFound, OperationRefused, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from clew.commands.registry import CommandRegistry
    from clew.core.ids import ConversationId
    from clew.core.message_order import WrittenMessage
    from clew.core.scope import Scope
    from clew.engine.channel_inbox import ChannelActor
    from clew.engine.engine import Engine

_SETTING_PATTERN = re.compile(r"[a-z_]+\.[a-z_]")


class CommandRunner:
    """
    Runs the commands of a registry against an engine.

    Those that come ``from_program`` answer questions by their ids only.
    """

    def __init__(
        self,
        engine: Engine,
        commands: CommandRegistry = BUILTIN_REGISTRY,
        *,
        from_program: bool = False,
    ) -> None:
        self._engine, self._commands, self._from_program = engine, commands, from_program

    async def run_command(
        self,
        text: str,
        *,
        target: Route | ConversationId,
        viewer: Scope,
        operator: bool | None = None,
        who: ChannelActor | None = None,
        written: WrittenMessage | None = None,
        on_filed: Callable[[], None] = lambda: None,
    ) -> ChatCommandReply:
        """
        Run a command and return its reply; an unknown or failing one gets a reply, too.

        ``viewer`` is the scope of the writer: nothing outside it can be seen or changed. An
        ``operator`` (by default anyone who sees everything) may also manage people. ``who``
        wrote it on a chat platform, as the message ``written``: only questions shown to them
        there can be approved.
        ``on_filed`` is called once later messages would come after the command.

        :raises StoreError: if the store cannot be used
        """
        match = COMMAND_PATTERN.fullmatch(text.strip())
        name = match[1] if match else (text.split() or [""])[0]
        argument = (match[2] or "").strip() if match else ""
        command, argument = self._commands.find_call(name, argument)
        if match is None or command is None:
            return ChatCommandReply(text=explain_unknown(self._commands, name))
        operator = viewer == scopes.LOCAL if operator is None else operator
        if command.operator and not operator:
            return ChatCommandReply(text=f"/{command.name} is for operators only.")
        try:
            route, conversation = await self._resolve_target(target, viewer)
            context = CommandContext(
                engine=self._engine,
                commands=self._commands,
                route=route,
                conversation_id=conversation,
                viewer=viewer,
                operator=operator,
                who=who,
                written=written,
                from_program=self._from_program,
                on_filed=on_filed,
            )
            return await command.run(context, argument)
        except (UsageError, OperationRefused) as error:
            return ChatCommandReply(text=_format_error(error))

    async def _resolve_target(
        self, target: Route | ConversationId, viewer: Scope
    ) -> tuple[Route | None, ConversationId | None]:
        if not isinstance(target, Route):
            return None, await self._engine.resolve_name(target, viewer=viewer)
        if not can_see(viewer, scope_of(target)):
            raise NotFound("conversation", target.key)
        try:
            return target, await self._engine.resolve_name(target.key, viewer=viewer)
        except NotFound:
            return target, None


def _format_error(error: Exception) -> str:
    text = str(error)
    # A setting's name is not capitalised.
    first = text[:1] if _SETTING_PATTERN.match(text) else text[:1].upper()
    return f"{first}{text[1:]}."
