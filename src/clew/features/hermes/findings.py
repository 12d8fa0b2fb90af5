"""Findings about the plugins, for the doctor."""

from __future__ import annotations

from typing import TYPE_CHECKING

import structlog

from clew.features.hermes.tools import explain_missing
from clew.plugin import fail, ok, warn

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from clew.features.hermes.loaded import LoadedPlugin
    from clew.features.hermes.state import HostState
    from clew.plugin import DoctorFinding

log = structlog.get_logger(__name__)


def list_findings(state: HostState) -> Sequence[DoctorFinding]:
    """Return a finding for each loaded plugin, and one for each part of it that is not used."""
    return [finding for plugin in state.plugins for finding in _describe_plugin(plugin)]


def log_findings(state: HostState) -> None:
    """Log what of the plugins is not used, what they changed, and which are left out; once."""
    if state.is_logged:
        return
    state.is_logged = True
    for plugin in state.plugins:
        for sentence in plugin.unused:
            log.warning("hermes_not_used", plugin=plugin.name, detail=sentence)
        for change in plugin.watch.changes:
            log.warning("hermes_plugin_changed_process", plugin=plugin.name, detail=change)
        if plugin.failure is not None:
            log.error("hermes_plugin_left_out", plugin=plugin.name, detail=plugin.failure)


def _describe_plugin(plugin: LoadedPlugin) -> Iterator[DoctorFinding]:
    what = f"hermes {plugin.name}"
    if plugin.failure is not None:
        yield fail(what, plugin.failure, fix="take it off hermes.enabled_plugins")
        return
    version = f" {plugin.manifest.version}" if plugin.manifest.version else ""
    yield ok(what, f"loaded{version}: {describe_parts(plugin) or 'it registers nothing'}")
    for tool in plugin.tools.values():
        if (why := explain_missing(plugin, tool)) is not None:
            yield warn(
                what,
                f"the tool {tool.name} is not offered: {why}",
                fix="set what it needs, and start Clew again",
            )
    for sentence in plugin.unused:
        yield warn(what, sentence, fix="see the page on Hermes plugins")
    for change in plugin.watch.changes:
        yield warn(what, f"it {change}", fix="tell its author, or take it off the list")


def describe_parts(plugin: LoadedPlugin) -> str:
    """Return what a plugin registers, as a list of names."""
    parts = {
        "tools": plugin.tools,
        "hooks": plugin.hooks,
        "commands": plugin.commands,
        "CLI commands": plugin.cli_commands,
        "skills": plugin.skills,
        "memory": [plugin.name] if plugin.memory_provider is not None else [],
    }
    return "; ".join(f"{kind} {', '.join(names)}" for kind, names in parts.items() if names)
