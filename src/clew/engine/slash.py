"""
Chat commands: one table for every front.

A front hands a text that begins with ``/`` to ``Engine.command``, and shows the reply. Commands of
the control lane answer at once, also while a turn runs; the others may wait for it.

``python -m clew.engine.slash docs/reference/commands.md`` writes the reference page.
"""

# The page keeps the width of the other pages.
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
from clew.engine import asides, chores
from clew.engine.desk import Desk, Reply
from clew.errors import NotFound, OperationRefused, UsageError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from clew.core.ids import ConversationId
    from clew.core.scope import Scope
    from clew.engine.engine import Engine
    from clew.store.transactions.hearing import ChannelActor

__all__ = ["COMMANDS", "Command", "Reply", "answer", "find", "is_command", "reference"]

#: A name, in some chats with the bot's name behind it, then nothing or a space.
_COMMAND = re.compile(r"/([A-Za-z_?]+)(?:@\w+)?(?:\s+(.*))?", re.DOTALL)
_SETTING = re.compile(r"[a-z_]+\.[a-z_]")


@dataclass(frozen=True, kw_only=True, slots=True)
class Command:
    """One chat command."""

    name: str
    aliases: tuple[str, ...] = ()
    #: As people read it: ``[title]``.
    arguments: str = ""
    help: str
    #: Answers at once, also while a turn runs.
    control: bool = False
    #: Only for operators.
    operator: bool = False
    run: Callable[[Desk, str], Awaitable[Reply]]

    @property
    def usage(self) -> str:
        return f"/{self.name} {self.arguments}".rstrip()


async def _help(desk: Desk, argument: str) -> Reply:
    if argument:
        command = find(argument.removeprefix("/"))
        return Reply(text=_unknown(argument) if command is None else _described(command))
    lines = [f"{command.usage}: {command.help}" for command in COMMANDS]
    return Reply(text="\n".join(lines))


def _described(command: Command) -> str:
    also = "".join(f", also /{alias}" for alias in command.aliases)
    return f"{command.usage}: {command.help}{also}"


COMMANDS = (
    Command(
        name="new",
        aliases=("reset",),
        arguments="[title]",
        help="start a new conversation here; the old one is kept",
        run=chores.new,
    ),
    Command(name="stop", help="stop the answer that is being made", control=True, run=asides.stop),
    Command(
        name="compress",
        aliases=("compact",),
        arguments="[focus]",
        help="summarise what is old, to make room; say what matters most",
        run=chores.compress,
    ),
    Command(
        name="undo",
        arguments="[n]",
        help="take your last message (or the last n) and what followed out of the conversation",
        run=chores.undo,
    ),
    Command(name="retry", help="ask your last message again", run=chores.retry),
    Command(
        name="branch",
        arguments="[title]",
        help="go on in a copy of this conversation; the original stays as it is",
        run=chores.branch,
    ),
    Command(
        name="rewind",
        arguments="n",
        help="go back to right after entry n",
        run=chores.rewind,
    ),
    Command(
        name="title",
        arguments="[text]",
        help="name this conversation, or show its name",
        run=chores.title,
    ),
    Command(
        name="sessions",
        arguments="[query]",
        help="list your conversations, the last used first",
        control=True,
        run=asides.sessions,
    ),
    Command(
        name="resume",
        arguments="[n|title|id]",
        help="go on with another conversation: its number in /sessions, its title or its id",
        run=chores.resume,
    ),
    Command(
        name="model",
        arguments="[name]",
        help="choose the model for this conversation, or show it",
        run=chores.model,
    ),
    Command(name="queue", help="show the messages that wait", control=True, run=asides.queue),
    Command(
        name="status",
        help="show this conversation and what it is doing",
        control=True,
        run=asides.status,
    ),
    Command(name="usage", help="show what this conversation used", control=True, run=asides.usage),
    Command(
        name="approve",
        arguments="[n|id|all]",
        help="allow the tool call that waits",
        control=True,
        run=asides.approve,
    ),
    Command(
        name="deny",
        arguments="[n|id|all]",
        help="refuse the tool call that waits",
        control=True,
        run=asides.deny,
    ),
    Command(
        name="pair",
        arguments="[code]",
        help="let in whoever was shown this code, or show who is in; /pair remove ID shuts out",
        control=True,
        operator=True,
        run=asides.pair,
    ),
    Command(name="help", arguments="[command]", help="show this list", control=True, run=_help),
)

_BY_NAME = {name: one for one in COMMANDS for name in (one.name, *one.aliases)}


def is_command(text: str) -> bool:
    """Whether a text is meant as a command; ``/etc/hosts is broken`` is not."""
    return _COMMAND.fullmatch(text.strip()) is not None


def find(name: str) -> Command | None:
    """The command of a name or alias, in any case."""
    return _BY_NAME.get(name.lower())


def _unknown(name: str) -> str:
    near = difflib.get_close_matches(name.lower().lstrip("/"), _BY_NAME, n=1, cutoff=0.5)
    meant = f" Did you mean /{near[0]}?" if near else ""
    return f"There is no command /{name.lstrip('/')}.{meant} /help lists all commands."


async def answer(
    engine: Engine,
    text: str,
    *,
    target: Route | ConversationId,
    viewer: Scope,
    operator: bool,
    who: ChannelActor | None,
    on_filed: Callable[[], None],
) -> Reply:
    """
    Carry out a command and say what came of it; an unknown one gets a hint.

    :raises StoreError: if the store cannot be used
    """
    match = _COMMAND.fullmatch(text.strip())
    if match is None:
        return Reply(text=_unknown(text.strip().split(maxsplit=1)[0] if text.strip() else ""))
    command = find(match[1])
    if command is None:
        return Reply(text=_unknown(match[1]))
    if command.operator and not operator:
        return Reply(text=f"/{command.name} is for operators only.")
    try:
        found = await _desk(engine, target, viewer)
        desk = replace(found, operator=operator, who=who, on_filed=on_filed)
        return await command.run(desk, (match[2] or "").strip())
    except (UsageError, OperationRefused) as error:
        said = str(error)
        # The name of a setting stays as it is.
        first = said[:1] if _SETTING.match(said) else said[:1].upper()
        return Reply(text=f"{first}{said[1:]}.")


async def _desk(engine: Engine, target: Route | ConversationId, viewer: Scope) -> Desk:
    if isinstance(target, Route):
        if not can_see(viewer, scope_of(target)):
            raise NotFound("conversation", target.key)
        try:
            found = await engine.resolve(target.key, viewer=viewer)
        except NotFound:
            found = None
        return Desk(engine=engine, route=target, found=found, viewer=viewer)
    found = await engine.resolve(target, viewer=viewer)
    return Desk(engine=engine, route=None, found=found, viewer=viewer)


HEAD = """\
# Chat commands

<!-- Made by `python -m clew.engine.slash docs/reference/commands.md`: do not edit. -->

Every front understands these: the terminal, chat platforms, JSON-RPC. They act on the conversation in which they
are written, and see only what its people may see. What stands in brackets may be left out.

*At once* says that a command is answered while a turn runs. The others are carried out in the conversation's
line: after the running turn, and before whatever was written later.

| command | also | what it does | at once |
|---|---|---|---|
"""


def reference() -> str:
    """The page of all commands."""
    return HEAD + "".join(map(_row, COMMANDS))


def _row(command: Command) -> str:
    also = ", ".join(f"`/{alias}`" for alias in command.aliases)
    usage = command.usage.replace("|", "\\|")
    return f"| `{usage}` | {also} | {command.help} | {'yes' if command.control else ''} |\n"


def main() -> None:
    """Write the page to the file that is named, else print it."""
    if len(sys.argv) > 1:
        Path(sys.argv[1]).write_text(reference(), encoding="utf-8")
    else:
        sys.stdout.write(reference())


if __name__ == "__main__":
    main()
