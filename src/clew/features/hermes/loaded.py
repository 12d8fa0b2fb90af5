"""One loaded plugin: what it has registered, and what became of that."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from clew.record import Record

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from clew.features.hermes.manifest import Manifest
    from clew.features.hermes.watch import PluginWatch
    from clew.features.hermes.worker import PluginWorker


class HermesTool(Record):
    """A tool as a plugin registers it."""

    name: str
    toolset: str
    description: str
    #: JSON schema of its arguments.
    parameters: Mapping[str, Any]
    handler: Callable[..., Any]
    check: Callable[[], Any] | None
    requires_env: Sequence[str]


class HermesCommand(Record):
    """A chat command as a plugin registers it."""

    name: str
    handler: Callable[[str], Any]
    description: str
    args_hint: str


class HermesCliCommand(Record):
    """A command for the terminal as a plugin registers it."""

    name: str
    help: str
    #: Adds its arguments to the parser that it is given.
    setup: Callable[[Any], Any] | None
    #: Given the parsed arguments.
    handler: Callable[[Any], Any] | None


@dataclass(slots=True)
class LoadedPlugin:
    """A plugin, its thread, and what it has registered."""

    name: str
    manifest: Manifest
    worker: PluginWorker
    watch: PluginWatch
    is_trusted: bool = False
    hooks: dict[str, list[Callable[..., Any]]] = field(
        default_factory=dict[str, "list[Callable[..., Any]]"]
    )
    middleware: dict[str, list[Callable[..., Any]]] = field(
        default_factory=dict[str, "list[Callable[..., Any]]"]
    )
    tools: dict[str, HermesTool] = field(default_factory=dict[str, HermesTool])
    commands: dict[str, HermesCommand] = field(default_factory=dict[str, HermesCommand])
    cli_commands: dict[str, HermesCliCommand] = field(default_factory=dict[str, HermesCliCommand])
    #: The folder of each skill, by its name.
    skills: dict[str, Path] = field(default_factory=dict[str, "Path"])
    instructions: dict[str, str] = field(default_factory=dict[str, str])
    memory_provider: Any = None
    #: Sentences about what it registered and is not used.
    unused: list[str] = field(default_factory=list[str])
    #: The reason why it could not be loaded.
    failure: str | None = None
