"""Loading of the enabled plugins, and declaration of what they register."""

from __future__ import annotations

import re
import sys
from contextlib import redirect_stdout
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from clew.errors import SettingsError
from clew.features.hermes import environment
from clew.features.hermes.commands import declare_commands
from clew.features.hermes.context import PluginContext
from clew.features.hermes.deaths import MAX_DEATHS, DeathLog
from clew.features.hermes.discovery import find_plugin, import_register, make_slug
from clew.features.hermes.hooks import History, declare_hooks
from clew.features.hermes.loaded import LoadedPlugin
from clew.features.hermes.memory import declare_memory
from clew.features.hermes.notes import declare_notes
from clew.features.hermes.observers import declare_observers
from clew.features.hermes.process_guard import ProcessGuard
from clew.features.hermes.shim_finder import install_shims
from clew.features.hermes.tools import declare_tools, find_unset
from clew.features.hermes.tracer import HermesTracer
from clew.features.hermes.transforms import declare_transforms
from clew.features.hermes.watch import PluginWatch
from clew.features.hermes.worker import PluginWorker

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from clew.features.hermes.discovery import FoundPlugin
    from clew.features.hermes.state import HostState
    from clew.plugin import Registry

#: Seconds for the import of a plugin and its registration: a program waits for it at its start.
LOAD_SECONDS: Final = 20.0
_GUARD_HOOK: Final = "pre_tool_call"


def declare_plugins(registry: Registry, state: HostState) -> None:
    """
    Load the enabled plugins, and declare what they register.

    :raises SettingsError: naming each plugin that cannot be loaded
    """
    settings = state.section.get()
    home = environment.find_home(state)
    environment.prepare(home)
    install_shims()
    problems: list[str] = []
    for name in settings.enabled_plugins:
        try:
            plugin = _load_plugin(state, environment.list_folders(state), name)
        except SettingsError as error:
            problems += error.problems
        else:
            state.plugins.append(plugin)
            declare_plugin(registry, state, plugin)
    registry.add_tracer("hermes plugins", lambda: HermesTracer(state))
    if problems:
        raise SettingsError(*problems)


def _load_plugin(state: HostState, folders: list[Path], name: str) -> LoadedPlugin:
    found = find_plugin(folders, name)
    if missing := find_unset(found.manifest.requires_env):
        raise SettingsError(
            f"hermes.enabled_plugins: {name!r} needs the environment variable "
            f"{', '.join(missing)}: set it, also in .env in {environment.find_home(state)}, or "
            "take the plugin off the list"
        )
    plugin = _make_plugin(state, name, found)
    if plugin.watch.deaths.count() >= MAX_DEATHS:
        return _refuse_deadly(plugin)
    plugin.watch.deaths.open()
    try:
        # Standard output belongs to the command.
        with redirect_stdout(sys.stderr):
            plugin.worker.call(lambda: _register(state, plugin, found), seconds=LOAD_SECONDS)
    except SettingsError:
        raise
    except TimeoutError as error:
        raise SettingsError(
            f"hermes.enabled_plugins: {name!r} has not registered within {LOAD_SECONDS:g} seconds"
        ) from error
    except Exception as error:
        raise SettingsError(
            f"hermes.enabled_plugins: {name!r} cannot be loaded: {type(error).__name__}: {error}"
        ) from error
    finally:
        plugin.watch.check_load()
    if _GUARD_HOOK in plugin.hooks:
        plugin.watch.deaths.mark_guard()
    return plugin


def _make_plugin(state: HostState, name: str, found: FoundPlugin) -> LoadedPlugin:
    if state.guard is None:
        state.guard = ProcessGuard()
    deaths = DeathLog(environment.find_own(state) / "running", make_slug(name))
    watch = PluginWatch(name, state.guard, deaths)
    return LoadedPlugin(
        name=name,
        manifest=found.manifest,
        worker=PluginWorker(name, watch),
        watch=watch,
        is_trusted=name in state.section.get().trusted_plugins,
    )


def _refuse_deadly(plugin: LoadedPlugin) -> LoadedPlugin:
    """Leave out a plugin that ends the process; where it guarded tool calls, none is allowed."""
    deaths = plugin.watch.deaths
    plugin.failure = (
        f"it is not loaded, since the process ended {MAX_DEATHS} times within a day while its code "
        f"ran; take it off hermes.enabled_plugins, or delete {deaths.file} to try it again"
    )
    if deaths.was_guard() or _GUARD_HOOK in plugin.manifest.provides_hooks:
        plugin.hooks[_GUARD_HOOK] = [partial(_block_call, plugin.failure)]
    return plugin


def _block_call(why: str, **_: Any) -> Mapping[str, str]:
    return {"action": "block", "message": f"a plugin that decides about tool calls is gone: {why}"}


def _register(state: HostState, plugin: LoadedPlugin, found: FoundPlugin) -> None:
    import_register(found)(PluginContext(state, plugin))


def declare_plugin(registry: Registry, state: HostState, plugin: LoadedPlugin) -> None:
    """Declare what one plugin registers, as a part of the feature with its name."""
    name = re.sub(r"[^a-z0-9_-]+", "-", plugin.name.lower())
    part = registry.add_part(name, hook_timeout=state.section.get().timeout.total_seconds())
    declare_tools(part, plugin)
    # It adds hooks to those of the plugin.
    declare_memory(part, plugin)
    declare_hooks(part, plugin, History())
    declare_transforms(part, plugin)
    declare_observers(part, plugin)
    declare_commands(part, plugin)
    declare_notes(part, plugin)
    for folder in dict.fromkeys(one.parent for one in plugin.skills.values()):
        part.add_skills(folder)
    for key, text in plugin.instructions.items():
        part.add_instructions(f"{plugin.name} {key}", partial(_get_text, text))


def _get_text(text: str) -> str:
    return text
