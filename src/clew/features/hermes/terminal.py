"""Commands of plugins for the terminal."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from clew.errors import NotFound
from clew.features import hermes
from clew.features.hermes.worker import finish_call
from clew.plugin.registry import Features

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clew.config.settings import Settings
    from clew.features.hermes.loaded import HermesCliCommand, LoadedPlugin
    from clew.features.hermes.state import HostState


def load_plugins(settings: Settings) -> Sequence[LoadedPlugin]:
    """
    Return the enabled plugins, loaded.

    :raises SettingsError: naming each that cannot be loaded
    """
    features, states = Features(), list["HostState"]()
    features.register("hermes", lambda registry: states.append(hermes.register(registry)))
    features.bind_settings(settings)
    states[0].settings = settings
    features.finish()
    features.raise_problems()
    return states[0].plugins


def find_command(plugins: Sequence[LoadedPlugin], name: str) -> HermesCliCommand:
    """
    Return a command of a plugin.

    :raises NotFound: if no plugin has it
    """
    for plugin in plugins:
        if (found := plugin.cli_commands.get(name)) is not None:
            return found
    raise NotFound("command of a Hermes plugin", name)


def run_command(command: HermesCliCommand, arguments: Sequence[str]) -> int:
    """Run a command with its arguments, and return its exit code."""
    parser = argparse.ArgumentParser(prog=f"clew hermes {command.name}", description=command.help)
    if command.setup is not None:
        command.setup(parser)
    parsed = parser.parse_args(list(arguments))
    handler = command.handler or getattr(parsed, "func", None)
    code = finish_call(handler(parsed)) if callable(handler) else None
    return code if isinstance(code, int) else 0
