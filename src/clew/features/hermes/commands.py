"""Chat commands of plugins."""

from __future__ import annotations

import asyncio
import re
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from clew.errors import ClewError, SettingsError
from clew.features.hermes.worker import finish_call, run_in_thread
from clew.plugin import Command

if TYPE_CHECKING:
    from clew.features.hermes.loaded import HermesCommand, LoadedPlugin
    from clew.plugin import CommandCall, Registry

#: One word, or two.
_NAME: Final = re.compile(r"[a-z][a-z0-9_-]*( [a-z0-9_-]+)?")
#: Seconds for a command.
_SECONDS: Final = 60.0
#: Characters of its reply.
_MAX_CHARS: Final = 100_000


def declare_commands(registry: Registry, plugin: LoadedPlugin) -> None:
    """Declare the commands of a plugin, for operators; one whose name is taken is left out."""
    for command in plugin.commands.values():
        name = command.name.lstrip("/").lower()
        if not _NAME.fullmatch(name):
            plugin.unused.append(f"the command {name!r} is not offered: it has no name for a chat")
            continue
        try:
            registry.add_command(
                Command(
                    name=name,
                    help=command.description or f"of the Hermes plugin {plugin.name}",
                    run=partial(_run_command, plugin, command),
                    arguments=command.args_hint,
                    operator=True,
                )
            )
        except SettingsError as error:
            plugin.unused.append(f"the command /{command.name} is not offered: {error}")


async def _run_command(
    plugin: LoadedPlugin, command: HermesCommand, call: CommandCall, argument: str
) -> str:
    def run() -> Any:
        with plugin.watch.running():
            return finish_call(command.handler(argument))

    done = run_in_thread(plugin.name, run)
    try:
        async with asyncio.timeout(_SECONDS):
            answer = await asyncio.wrap_future(done)
    except TimeoutError as error:
        raise ClewError(
            f"/{command.name}: the plugin {plugin.name} did not answer within {_SECONDS:g} seconds"
        ) from error
    except Exception as error:
        raise ClewError(
            f"/{command.name}: the plugin {plugin.name} failed: {type(error).__name__}: {error}"
        ) from error
    return "done" if answer is None else str(answer)[:_MAX_CHARS]
