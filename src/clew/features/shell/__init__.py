"""Commands of the model: ``shell`` and ``run_python``, and ``process`` for what goes on."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from clew.core.tool_facts import CONFINED_LEVELS, ToolFacts
from clew.features.shell.checks import CHECKS
from clew.features.shell.process_tool import make_process_facts, process
from clew.features.shell.settings import LONGEST_WAIT, ShellSettings
from clew.plugin import Command

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence
    from pathlib import Path

    from clew.plugin import CommandCall, FeatureContext, Registry, TurnContext

#: Operations of HTTP and JSON-RPC.
OPERATIONS: Final = (
    "process.list", "process.get", "process.output", "process.input", "process.stop",
)  # fmt: skip
#: A call ends before: its command goes on in the background.
_LONGER_THAN_ALL: Final = timedelta(seconds=LONGEST_WAIT + 60)


def register(registry: Registry) -> None:
    """Register the feature."""
    settings = registry.add_settings(ShellSettings)
    registry.add_migrations(
        f"{__name__}.migrations", of_conversation={"shell_process": "conversation"}, checks=CHECKS
    )
    for tool in make_tools(settings.get, registry.find_readable_folders):
        registry.add_tool(
            tool, effect="idempotent", facts=make_facts, timeout=_LONGER_THAN_ALL, when=can_run
        )
    registry.add_tool(process, effect="idempotent", facts=make_process_facts, when=can_run)
    registry.add_service("processes", run_watcher)
    registry.add_service("network proxy", run_proxy)
    registry.add_command(
        Command(
            name="ps",
            help="list the commands that the agent has started, show the output of one, or stop it",
            run=run_ps_command,
            arguments="[id|stop id]",
        )
    )
    for name in OPERATIONS:
        registry.add_operation(name, partial(_make_operation, name))


async def run_ps_command(call: CommandCall, argument: str) -> str:
    """List the commands of the chat, show one, or stop one."""
    from clew.features.shell import chat_command  # noqa: PLC0415  (declared by every command, needed by few)

    return await chat_command.run_ps_command(call, argument)


def _make_operation(name: str) -> object:
    from clew.features.shell import operations  # noqa: PLC0415  (only servers need them)

    return operations.OPERATIONS[name]


async def run_watcher(context: FeatureContext) -> None:
    """Watch the processes of this machine."""
    from clew.features.shell.watcher import ProcessWatcher  # noqa: PLC0415  (heavy)

    await ProcessWatcher(context).run()


async def run_proxy(context: FeatureContext) -> None:
    """Serve the proxy of commands that may reach named hosts."""
    if not context.settings.sandbox.hosts:
        import asyncio  # noqa: PLC0415  (every command loads this module)

        await asyncio.Event().wait()  # a service that ends is started again
    from clew.features.shell.network import serve_network  # noqa: PLC0415  (only with hosts)

    await serve_network(context.settings)


def make_tools(
    get_settings: Callable[[], ShellSettings],
    find_readable: Callable[[TurnContext], Awaitable[Sequence[Path]]],
) -> Sequence[Callable[..., object]]:
    """Return the tools that run commands, which may read the folders of other features."""

    async def shell(command: str, seconds: int = 0, background: bool = False) -> str:
        """
        Run a bash command in the workspace; return output and exit code.

        No input, and usually no network. What it starts ends with it.

        Args:
            command: The command.
            seconds: Lower the time limit.
            background: Do not wait: you will be told its end.
        """
        from clew.features.shell import commands  # noqa: PLC0415  (declared by every command, needed by few)

        return await commands.run_shell(
            command,
            seconds=seconds,
            background=background,
            foreground=get_settings().foreground,
            find_readable=find_readable,
        )

    async def run_python(code: str, seconds: int = 0) -> str:
        """
        Run a Python script in the workspace, as shell does; return what it prints.

        Args:
            code: The script; only the standard library.
            seconds: Lower the time limit.
        """
        from clew.features.shell import commands  # noqa: PLC0415  (declared by every command, needed by few)

        return await commands.run_python(
            code,
            seconds=seconds,
            foreground=get_settings().foreground,
            find_readable=find_readable,
        )

    return shell, run_python


async def can_run(context: TurnContext) -> bool:
    """Return whether there is a sandbox for the turn's commands; ``clew doctor`` says why not."""
    from clew.features.shell.turn_sandbox import find_sandbox  # noqa: PLC0415  (declared by every command, needed by few)

    return (await find_sandbox(context)).sandbox is not None


def make_facts(arguments: Mapping[str, Any]) -> ToolFacts:
    """Return the command, and what it can reach at the level of the turn."""
    from clew.plugin import get_turn_context  # noqa: PLC0415  (imports all of the door)

    context = get_turn_context()
    level = None if context is None else context.sandbox_level
    confined = level in CONFINED_LEVELS
    return ToolFacts(
        command=arguments.get("command"),
        sandbox=level,
        network=not confined,
        outward=not confined,
        untrusted_result=not confined,
        preview=arguments.get("code"),
    )
