"""The table of the built-in chat commands."""

from __future__ import annotations

from clew.commands import approvals as approval_commands
from clew.commands import control as control_commands
from clew.commands import conversation as conversation_commands
from clew.commands import restart as restart_commands
from clew.commands.registry import (
    ChatCommand,
    ChatCommandReply,
    CommandContext,
    CommandRegistry,
)
from clew.distribution import VERSION


async def _show_help(ctx: CommandContext, argument: str) -> ChatCommandReply:
    if argument:
        command = ctx.commands.find_command(argument.removeprefix("/"))
        return ChatCommandReply(
            text=explain_unknown(ctx.commands, argument)
            if command is None
            else _describe_command(command)
        )
    lines = [f"{command.usage}: {command.help}" for command in ctx.commands.commands]
    return ChatCommandReply(text="\n".join(lines))


def _describe_command(command: ChatCommand) -> str:
    also = "".join(f", also /{alias}" for alias in command.aliases)
    return f"{command.usage}: {command.help}{also}"


BUILTIN_COMMANDS = (
    ChatCommand(
        name="new",
        aliases=("reset",),
        arguments="[title]",
        help="start a new conversation here; the old one is kept",
        run=conversation_commands.start_conversation,
    ),
    ChatCommand(
        name="stop",
        help="stop the running answer",
        control=True,
        run=control_commands.stop_turn,
    ),
    ChatCommand(
        name="compress",
        aliases=("compact",),
        arguments="[focus]",
        help="summarise older messages to make room; add what matters most",
        run=conversation_commands.compress_context,
    ),
    ChatCommand(
        name="undo",
        arguments="[n]",
        help="remove your last message (or the last n) and what followed from the context",
        run=conversation_commands.undo_exchanges,
    ),
    ChatCommand(
        name="retry", help="send your last message again", run=conversation_commands.retry_message
    ),
    ChatCommand(
        name="branch",
        arguments="[title]",
        help="continue in a copy of this conversation; the original is unchanged",
        run=conversation_commands.branch_conversation,
    ),
    ChatCommand(
        name="rewind",
        arguments="n",
        help="rewind to right after entry n",
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
        help="list your conversations, most recently used first",
        control=True,
        run=control_commands.list_sessions,
    ),
    ChatCommand(
        name="resume",
        arguments="[n|title|id]",
        help="continue another conversation: its number in /sessions, its title or its id",
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
        help="show the waiting messages",
        control=True,
        run=control_commands.show_queue,
    ),
    ChatCommand(
        name="status",
        help="show this conversation and its state",
        control=True,
        run=control_commands.show_status,
    ),
    ChatCommand(
        name="usage",
        help="show the tokens that this conversation used",
        control=True,
        run=control_commands.show_usage,
    ),
    ChatCommand(
        name="approve",
        arguments="[n|id|all] [hour|always]",
        help="allow the tool call that waits; for an hour here or always, if that is offered",
        control=True,
        run=approval_commands.approve_calls,
    ),
    ChatCommand(
        name="deny",
        arguments="[n|id|all] [reason]",
        help="refuse the tool call that waits; the model is told the reason",
        control=True,
        run=approval_commands.deny_calls,
    ),
    ChatCommand(
        name="grants",
        help="show what is allowed for longer than one call",
        control=True,
        run=approval_commands.list_grants,
    ),
    ChatCommand(
        name="revoke",
        arguments="n",
        help="take back what /grants shows under n",
        control=True,
        run=approval_commands.revoke_grant,
    ),
    ChatCommand(
        name="why",
        arguments="[n]",
        help="show why the last tool calls ran or did not; the n-th last in full",
        control=True,
        run=approval_commands.explain_calls,
    ),
    ChatCommand(
        name="pair",
        arguments="[code]",
        help="grant access to the person who was shown this code, or list who has access; /pair "
        "remove ID revokes it",
        control=True,
        operator=True,
        run=control_commands.manage_pairing,
    ),
    ChatCommand(
        name="restart",
        help="restart the gateway, if it runs as a service; tells here when it is back",
        control=True,
        operator=True,
        run=restart_commands.restart_gateway,
        interrupted_reply=f"The gateway has restarted: this is Clew {VERSION}.",
    ),
    ChatCommand(
        name="help", arguments="[command]", help="show this list", control=True, run=_show_help
    ),
)

BUILTIN_REGISTRY = CommandRegistry(BUILTIN_COMMANDS)


def explain_unknown(commands: CommandRegistry, name: str) -> str:
    """Return a hint for a command that does not exist."""
    near = commands.find_similar_name(name.lstrip("/"))
    meant = f" Did you mean /{near}?" if near else ""
    return f"There is no command /{name.lstrip('/')}.{meant} /help lists all commands."
