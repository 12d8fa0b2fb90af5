"""
Chat commands: one table for every front.

A front passes a text that begins with ``/`` to ``Engine.run_command`` and shows the reply.
Commands of the control lane answer at once, also while a turn runs; the others may wait for
it.

``python -m clew.engine.chat_commands.registry docs/reference/commands.md`` writes the
reference page.
"""

# Same width as the other pages.
# ruff: noqa: E501

from __future__ import annotations

import difflib
import re
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from clew.core.route import Route
from clew.core.scope import can_see, scope_of
from clew.engine.chat_commands import control as control_commands
from clew.engine.chat_commands import conversation as conversation_commands
from clew.engine.chat_commands.context import ChatCommandReply, CommandContext
from clew.errors import NotFound, OperationRefused, UsageError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from clew.core.ids import ConversationId
    from clew.core.scope import Scope
    from clew.engine.engine import Engine
    from clew.store.transactions.channel_inbox import ChannelActor

__all__ = [
    "COMMANDS",
    "ChatCommand",
    "ChatCommandReply",
    "find_command",
    "is_command",
    "render_reference",
    "run_command",
]

#: A name, in some chats followed by the bot's name, then nothing or a space.
_COMMAND_PATTERN = re.compile(r"/([A-Za-z_?]+)(?:@\w+)?(?:\s+(.*))?", re.DOTALL)
_SETTING_PATTERN = re.compile(r"[a-z_]+\.[a-z_]")


@dataclass(frozen=True, kw_only=True, slots=True)
class ChatCommand:
    """One chat command."""

    name: str
    aliases: tuple[str, ...] = ()
    #: As shown in help: ``[title]``.
    arguments: str = ""
    help: str
    #: Answers at once, also while a turn runs.
    control: bool = False
    #: Only for operators.
    operator: bool = False
    run: Callable[[CommandContext, str], Awaitable[ChatCommandReply]]

    @property
    def usage(self) -> str:
        return f"/{self.name} {self.arguments}".rstrip()


async def _show_help(desk: CommandContext, argument: str) -> ChatCommandReply:
    if argument:
        command = find_command(argument.removeprefix("/"))
        return ChatCommandReply(
            text=_explain_unknown(argument) if command is None else _describe_command(command)
        )
    lines = [f"{command.usage}: {command.help}" for command in COMMANDS]
    return ChatCommandReply(text="\n".join(lines))


def _describe_command(command: ChatCommand) -> str:
    also = "".join(f", also /{alias}" for alias in command.aliases)
    return f"{command.usage}: {command.help}{also}"


COMMANDS = (
    ChatCommand(
        name="new",
        aliases=("reset",),
        arguments="[title]",
        help="start a new conversation here; the old one is kept",
        run=conversation_commands.start_conversation,
    ),
    ChatCommand(
        name="stop",
        help="stop the answer that is being made",
        control=True,
        run=control_commands.stop_turn,
    ),
    ChatCommand(
        name="compress",
        aliases=("compact",),
        arguments="[focus]",
        help="summarise what is old, to make room; say what matters most",
        run=conversation_commands.compress_context,
    ),
    ChatCommand(
        name="undo",
        arguments="[n]",
        help="take your last message (or the last n) and what followed out of the conversation",
        run=conversation_commands.undo_exchanges,
    ),
    ChatCommand(
        name="retry", help="ask your last message again", run=conversation_commands.retry_message
    ),
    ChatCommand(
        name="branch",
        arguments="[title]",
        help="go on in a copy of this conversation; the original stays as it is",
        run=conversation_commands.branch_conversation,
    ),
    ChatCommand(
        name="rewind",
        arguments="n",
        help="go back to right after entry n",
        run=conversation_commands.rewind_conversation,
    ),
    ChatCommand(
        name="title",
        arguments="[text]",
        help="name this conversation, or show its name",
        run=conversation_commands.set_title,
    ),
    ChatCommand(
        name="sessions",
        arguments="[query]",
        help="list your conversations, the last used first",
        control=True,
        run=control_commands.list_sessions,
    ),
    ChatCommand(
        name="resume",
        arguments="[n|title|id]",
        help="go on with another conversation: its number in /sessions, its title or its id",
        run=conversation_commands.resume_conversation,
    ),
    ChatCommand(
        name="model",
        arguments="[name]",
        help="choose the model for this conversation, or show it",
        run=conversation_commands.choose_model,
    ),
    ChatCommand(
        name="queue",
        help="show the messages that wait",
        control=True,
        run=control_commands.show_queue,
    ),
    ChatCommand(
        name="status",
        help="show this conversation and what it is doing",
        control=True,
        run=control_commands.show_status,
    ),
    ChatCommand(
        name="usage",
        help="show what this conversation used",
        control=True,
        run=control_commands.show_usage,
    ),
    ChatCommand(
        name="approve",
        arguments="[n|id|all]",
        help="allow the tool call that waits",
        control=True,
        run=control_commands.approve_calls,
    ),
    ChatCommand(
        name="deny",
        arguments="[n|id|all]",
        help="refuse the tool call that waits",
        control=True,
        run=control_commands.deny_calls,
    ),
    ChatCommand(
        name="pair",
        arguments="[code]",
        help="let in whoever was shown this code, or show who is in; /pair remove ID shuts out",
        control=True,
        operator=True,
        run=control_commands.manage_pairing,
    ),
    ChatCommand(
        name="help", arguments="[command]", help="show this list", control=True, run=_show_help
    ),
)

_BY_NAME = {name: one for one in COMMANDS for name in (one.name, *one.aliases)}


def is_command(text: str) -> bool:
    """Return whether a text is meant as a command; ``/etc/hosts is broken`` is not."""
    return _COMMAND_PATTERN.fullmatch(text.strip()) is not None


def find_command(name: str) -> ChatCommand | None:
    """Return the command of a name or alias, in any case."""
    return _BY_NAME.get(name.lower())


def _explain_unknown(name: str) -> str:
    near = difflib.get_close_matches(name.lower().lstrip("/"), _BY_NAME, n=1, cutoff=0.5)
    meant = f" Did you mean /{near[0]}?" if near else ""
    return f"There is no command /{name.lstrip('/')}.{meant} /help lists all commands."


async def run_command(
    engine: Engine,
    text: str,
    *,
    target: Route | ConversationId,
    viewer: Scope,
    operator: bool,
    who: ChannelActor | None,
    on_filed: Callable[[], None],
) -> ChatCommandReply:
    """
    Run a command and return its reply; an unknown one gets a hint.

    :raises StoreError: if the store cannot be used
    """
    match = _COMMAND_PATTERN.fullmatch(text.strip())
    if match is None:
        return ChatCommandReply(
            text=_explain_unknown(text.strip().split(maxsplit=1)[0] if text.strip() else "")
        )
    command = find_command(match[1])
    if command is None:
        return ChatCommandReply(text=_explain_unknown(match[1]))
    if command.operator and not operator:
        return ChatCommandReply(text=f"/{command.name} is for operators only.")
    try:
        found = await _build_context(engine, target, viewer)
        desk = replace(found, operator=operator, who=who, on_filed=on_filed)
        return await command.run(desk, (match[2] or "").strip())
    except (UsageError, OperationRefused) as error:
        said = str(error)
        # A setting's name is not capitalised.
        first = said[:1] if _SETTING_PATTERN.match(said) else said[:1].upper()
        return ChatCommandReply(text=f"{first}{said[1:]}.")


async def _build_context(
    engine: Engine, target: Route | ConversationId, viewer: Scope
) -> CommandContext:
    if isinstance(target, Route):
        if not can_see(viewer, scope_of(target)):
            raise NotFound("conversation", target.key)
        try:
            found = await engine.resolve_name(target.key, viewer=viewer)
        except NotFound:
            found = None
        return CommandContext(engine=engine, route=target, conversation_id=found, viewer=viewer)
    found = await engine.resolve_name(target, viewer=viewer)
    return CommandContext(engine=engine, route=None, conversation_id=found, viewer=viewer)


REFERENCE_HEADER = """\
# Chat commands

<!-- Made by `python -m clew.engine.chat_commands.registry docs/reference/commands.md`: do not edit. -->

Every front understands these: the terminal, chat platforms, JSON-RPC. They act on the conversation in which they
are written, and see only what its people may see. What stands in brackets may be left out.

*At once* says that a command is answered while a turn runs. The others are carried out in the conversation's
line: after the running turn, and before whatever was written later.

| command | also | what it does | at once |
|---|---|---|---|
"""


def render_reference() -> str:
    """Return the reference page of all commands."""
    return REFERENCE_HEADER + "".join(map(_render_row, COMMANDS))


def _render_row(command: ChatCommand) -> str:
    also = ", ".join(f"`/{alias}`" for alias in command.aliases)
    usage = command.usage.replace("|", "\\|")
    return f"| `{usage}` | {also} | {command.help} | {'yes' if command.control else ''} |\n"


def main() -> None:
    """Write the page to the named file, else print it."""
    if len(sys.argv) > 1:
        Path(sys.argv[1]).write_text(render_reference(), encoding="utf-8")
    else:
        sys.stdout.write(render_reference())


if __name__ == "__main__":
    main()
