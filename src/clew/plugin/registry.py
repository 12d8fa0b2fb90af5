"""Registry: where features declare what they add; names are unique over all of them."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType, SimpleNamespace
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast

from clew.config.lookup import PLUGINS, SettingsCatalog
from clew.config.settings import SECTIONS
from clew.core.effect import Effect
from clew.core.tool_declaration import BoundToolSource, ToolDeclaration
from clew.errors import SettingsError
from clew.hooks import specs
from clew.plugin.declarations import (
    CLI_COMMANDS,
    AfterTurn,
    AgentSource,
    CapabilitySource,
    ChannelKind,
    CliEntry,
    Command,
    CompactorKind,
    ContextNote,
    DoctorCheck,
    FileReader,
    HealthSource,
    HookCallback,
    Instructions,
    MemoryProviderKind,
    Metric,
    NarrowingSource,
    OperationSource,
    PeriodicWork,
    ReadableFolders,
    Service,
    ServicePlace,
    SettingsCheck,
    SkillFolder,
    TracerSource,
    TurnWatch,
    WatchSource,
    WebsiteSource,
)
from clew.plugin.declared import Declared
from clew.plugin.late_declarations import LateDeclarations
from clew.plugin.settings_tables import NamedTables, SettingsSection
from clew.store.feature_schema import FeatureSchema

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
    from datetime import timedelta

    from clew.config.settings import Settings
    from clew.core.agent_profile import NamedAgent
    from clew.core.doctor_finding import DoctorFinding
    from clew.core.ids import ConversationId
    from clew.core.policy_rule import CallNarrowing
    from clew.core.scope import Scope
    from clew.core.tool_declaration import BoundTool, EffectsFunction
    from clew.core.tool_facts import FactsFunction, ToolFacts
    from clew.core.turn import Turn
    from clew.plugin.context import FeatureContext
    from clew.plugin.declarations import HealthReader, Note, WatchedText
    from clew.plugin.memory import MemoryProvider
    from clew.plugin.tracing import Tracer
    from clew.plugin.turn_context import TurnContext
    from clew.store.checks.check import Check
    from clew.store.contract import Tx

T = TypeVar("T")

#: Owner of what the core itself has.
CORE = "clew"
_NAME_PATTERN = re.compile(r"[a-z][a-z0-9_-]*")


class Register(Protocol):
    """The function with which a feature declares what it adds; does no I/O."""

    def __call__(self, registry: Registry, /) -> object: ...


@dataclass(slots=True)
class Features:
    """Everything that the features of one process declare."""

    #: Sentences that end the start.
    problems: list[str] = field(default_factory=list[str])
    #: The loaded plugins by name, those without ``register`` too.
    plugins: dict[str, object] = field(default_factory=dict[str, object])
    names: list[str] = field(default_factory=list[str])
    sections: dict[str, SettingsSection[object]] = field(
        default_factory=dict[str, SettingsSection[object]]
    )
    tables: dict[str, NamedTables[object]] = field(default_factory=dict[str, NamedTables[object]])
    schemas: list[FeatureSchema] = field(default_factory=list[FeatureSchema])
    #: Seconds for a call of a hook, by feature, where they are not those of all.
    hook_timeouts: dict[str, float] = field(default_factory=dict[str, float])
    late: LateDeclarations = field(default_factory=LateDeclarations)
    _declared: list[Declared[object]] = field(default_factory=list[Declared[object]])
    _owners: dict[tuple[str, str], str] = field(default_factory=dict[tuple[str, str], str])

    def __post_init__(self) -> None:
        self.claim(CORE, "CLI command", *CLI_COMMANDS)
        self.claim(CORE, "settings", *SECTIONS)

    def register(self, name: str, register: Register, *, is_plugin: bool = False) -> None:
        """
        Let a feature declare what it adds.

        :raises SettingsError: naming the feature, if it raises or takes a name that is taken
        """
        registry = Registry(self, name, is_plugin=is_plugin)
        try:
            if not _NAME_PATTERN.fullmatch(name):
                raise ValueError("its name may have a-z, 0-9, - and _ only")
            register(registry)
        except SettingsError:
            raise
        except Exception as error:
            raise SettingsError(
                f"the feature {name!r} cannot be loaded: {type(error).__name__}: {error}"
            ) from error
        self.names.append(name)

    def get(self, kind: type[T]) -> list[Declared[T]]:
        """Return the declarations of one kind, in the order in which they were made."""
        return [
            cast("Declared[T]", each) for each in self._declared if isinstance(each.value, kind)
        ]

    def values(self, kind: type[T]) -> list[T]:
        """Return what was declared of one kind."""
        return [each.value for each in self.get(kind)]

    def add(self, owner: str, kind: str, name: str, value: object) -> None:
        """
        Add a declaration.

        :raises SettingsError: if the name is taken
        """
        self.claim(owner, kind, name)
        self._declared.append(Declared(owner, value))

    def claim(self, owner: str, kind: str, *names: str) -> None:
        """
        Claim names of a kind for an owner.

        :raises SettingsError: naming both owners, if one of the names is taken
        """
        for name in names:
            other = self._owners.get((kind, name))
            if other is not None and (other, owner) != (CORE, CORE):
                raise SettingsError(
                    f"{_describe_owner(other)} and {_describe_owner(owner)} both have the {kind} "
                    f"{name!r}: put one of them into features.disabled"
                )
            self._owners[kind, name] = owner

    @property
    def catalog(self) -> SettingsCatalog:
        """Return the sections of the core and of all features."""
        return SettingsCatalog(
            MappingProxyType({table: one.kind for table, one in self.sections.items()}),
            MappingProxyType({section: one.kind for section, one in self.tables.items()}),
        )

    def bind_settings(self, settings: Settings) -> None:
        """Give each feature its settings."""
        for section in (*self.sections.values(), *self.tables.values()):
            section.bind(settings)

    def finish(self) -> None:
        """
        Let features declare what depends on their settings, before an application opens.

        What cannot be declared ends the start (``raise_problems``). Only the first call does it.
        """
        self.late.make(self.problems)

    def find_settings_problems(self, settings: Settings) -> list[str]:
        """Return a sentence for each problem that features find in their settings."""
        checks = self.values(SettingsCheck)
        return [problem for check in checks for problem in check.find(settings)]

    def make_hook_plugins(self) -> Iterator[tuple[str, object]]:
        """Yield a plugin for the hooks of each feature, with its name."""
        by_owner: dict[str, dict[str, object]] = {}
        for each in self.get(HookCallback):
            marked = specs.hookimpl(each.value.make_function())
            by_owner.setdefault(each.owner, {})[each.value.hook] = marked
        for owner, hooks in by_owner.items():
            yield owner, SimpleNamespace(**hooks)

    def raise_problems(self) -> None:
        """
        End the start if a feature cannot be loaded.

        :raises SettingsError: naming every such feature
        """
        if self.problems:
            raise SettingsError(*self.problems)


def _describe_owner(owner: str) -> str:
    return "Clew itself" if owner == CORE else f"the feature {owner!r}"


class Registry:
    """
    The door: what one feature declares, in its function ``register``.

    Names are unique over all features: a clash ends the start and names both owners.
    """

    def __init__(self, features: Features, name: str, *, is_plugin: bool) -> None:
        self._features, self._is_plugin = features, is_plugin
        #: The name of the feature.
        self.name = name

    def _add(self, kind: str, name: str, value: object) -> None:
        self._features.add(self.name, kind, name, value)

    def add_settings(self, section: type[T]) -> SettingsSection[T]:
        """
        Declare the settings of the feature: a frozen dataclass of ``setting`` fields.

        The table is ``[NAME]`` for what comes with Clew, ``[plugins.NAME]`` for plugins.
        """
        table = f"{PLUGINS}.{self.name}" if self._is_plugin else self.name
        self._features.claim(self.name, "settings", table)
        made = SettingsSection(table, section)
        self._features.sections[table] = cast("SettingsSection[object]", made)
        return made

    def add_named_settings(self, section: str, kind: type[T]) -> NamedTables[T]:
        """
        Declare tables that the user names, ``[SECTION.NAME]``, each with the fields of ``kind``.

        :raises ValueError: for a plugin, whose settings are in ``[plugins.NAME]``
        """
        if self._is_plugin:
            raise ValueError("the settings of a plugin are in its own table")
        self._features.claim(self.name, "settings", section)
        made = NamedTables(section, kind)
        self._features.tables[section] = cast("NamedTables[object]", made)
        return made

    def add_settings_check(self, name: str, find: Callable[[Settings], Iterable[str]]) -> None:
        """
        Declare a check of the settings, done whenever they are loaded; does no I/O.

        ``find`` returns a sentence for each problem that the types of the settings do not show:
        every command refuses settings that have one.
        """
        self._add("settings check", name, SettingsCheck(name=name, find=find))

    def declare_late(self, declare: Callable[[], object]) -> None:
        """
        Declare more once the settings are read: what they name.

        ``declare`` is called once, before an application opens; it may import.
        """
        self._features.late.add(self.name, declare)

    def add_part(self, name: str, *, hook_timeout: float) -> Registry:
        """
        Return the registry of a part, ``FEATURE-NAME``, whose hooks have a thread and time limit.

        :raises ValueError: if the name cannot be one
        """
        full = f"{self.name}-{name}"
        if not _NAME_PATTERN.fullmatch(full):
            raise ValueError(f"{name!r}: a name may have a-z, 0-9, - and _ only")
        self._features.claim(full, "feature", full)
        self._features.hook_timeouts[full] = hook_timeout
        return Registry(self._features, full, is_plugin=False)

    def list_tools(self) -> list[str]:
        """Return the names of the tools that all features declare; after all are loaded."""
        return [one.name for one in self._features.values(ToolDeclaration)]

    def list_memory_providers(self) -> list[str]:
        """Return the names of the memory providers of all features; after all are loaded."""
        return [one.name for one in self._features.values(MemoryProviderKind)]

    def adds_capabilities(self) -> bool:
        """Return whether a feature adds tools that are known only when the agent is made."""
        return bool(self._features.values(CapabilitySource))

    def add_migrations(
        self,
        source: str | Mapping[str, str],
        *,
        of_conversation: Mapping[str, str] = MappingProxyType({}),
        of_route: Mapping[str, str] = MappingProxyType({}),
        of_scope: Mapping[str, str] = MappingProxyType({}),
        checks: Sequence[Check] = (),
    ) -> None:
        """
        Declare tables: a package with ``NNNN_name[.sqlite|.postgres].sql`` files, or their texts.

        Every table is named ``NAME`` or ``NAME_…``. ``of_conversation`` names the column
        with the conversation's id of each table whose rows go when it is deleted;
        ``of_route`` and ``of_scope`` name columns that change when a chat gets another id;
        ``checks`` are run by ``clew fsck``.
        """
        self._features.claim(self.name, "tables", self.name)
        self._features.schemas.append(
            FeatureSchema(
                feature=self.name,
                source=source,
                of_conversation=dict(of_conversation),
                of_route=dict(of_route),
                of_scope=dict(of_scope),
                checks=tuple(checks),
            )
        )

    def add_hook(self, hook: str, callback: Callable[..., object]) -> None:
        """
        Declare the callback of one of today's hooks.

        :raises ValueError: if there is no such hook
        """
        if hook not in specs.HOOKS:
            raise ValueError(f"there is no hook {hook!r}; there are {', '.join(specs.HOOKS)}")
        self._add("hook", f"{self.name}.{hook}", HookCallback(hook=hook, callback=callback))

    def add_command(self, command: Command) -> None:
        """Declare a chat command for every front."""
        self._features.claim(self.name, "command", *command.aliases)
        self._add("command", command.name, command)

    def add_cli(self, entry: CliEntry) -> None:
        """Declare a command of ``clew``."""
        self._add("CLI command", entry.name, entry)

    def add_channel(self, name: str, factory: str | Callable[..., object]) -> None:
        """Declare a kind of channel; as ``MODULE:NAME`` it is imported when it is used."""
        self._add("channel", name, ChannelKind(name=name, factory=factory))

    def add_service(
        self,
        name: str,
        run: Callable[[FeatureContext], Awaitable[None]],
        *,
        where: ServicePlace = "each",
    ) -> None:
        """Declare a loop that runs while a gateway does, restarted whenever it ends."""
        self._add("service", name, Service(name=name, run=run, where=where))

    def add_periodic(
        self, run: Callable[[FeatureContext], Awaitable[object]], *, every: timedelta, name: str
    ) -> None:
        """Declare work that one gateway of all does again and again."""
        self._add("periodic work", name, PeriodicWork(name=name, run=run, every=every))

    def add_after_turn(
        self,
        name: str,
        run: Callable[[FeatureContext, ConversationId], Awaitable[None]],
        *,
        every_end: bool = False,
    ) -> None:
        """
        Declare work for each answered turn, in the process that answered it.

        With ``every_end`` also for turns that failed or were stopped, and for queued commands.
        """
        made = AfterTurn(name=name, run=run, every_end=every_end)
        self._add("work after turns", name, made)

    def add_turn_watch(
        self,
        name: str,
        *,
        on_step: Callable[[Tx, Turn], None] | None = None,
        on_end: Callable[[Tx, Turn], None] | None = None,
        on_stop: Callable[[Tx, ConversationId], bool] | None = None,
    ) -> None:
        """
        Declare code that runs in the transactions of turns, and so in the same commit.

        ``on_step`` is called when an answer of the model with tool calls is stored, ``on_end``
        when a turn ends, ``on_stop`` when a person stops what goes on in a conversation; it
        returns whether it stopped anything. It must be quick: the turn waits. What it raises
        is logged and undoes what it has written, nothing else.
        """
        watch = TurnWatch(name=name, on_step=on_step, on_end=on_end, on_stop=on_stop)
        self._add("turn watch", name, watch)

    def add_operation(self, name: str, make: Callable[[], object]) -> None:
        """
        Declare an operation of HTTP and JSON-RPC.

        ``make`` returns a ``clew.api.operations.Operation`` of this name, or, for HTTP
        alone, a ``clew.api.endpoints.Endpoint``; it is called, and may import, when a server
        starts. Without a ``scope``, only clients that see every conversation may call an
        operation, and any client an endpoint; with ``PUBLIC`` it needs no token.
        """
        self._add("operation", name, OperationSource(name=name, make=make))

    def add_doctor_check(
        self, name: str, run: Callable[[], Awaitable[Iterable[DoctorFinding]]]
    ) -> None:
        """Declare a check of ``clew doctor``."""
        self._add("doctor check", name, DoctorCheck(name=name, run=run))

    def add_health(self, name: str, read: HealthReader) -> None:
        """Declare what ``/readyz`` shows of the things that a feature depends on; no I/O."""
        self._add("health", name, HealthSource(name=name, read=read))

    def add_metric(self, metric: Metric) -> None:
        """Declare a metric."""
        self._add("metric", metric.name, metric)

    def add_tool(  # noqa: PLR0913  (options of one declaration)
        self,
        function: Callable[..., object],
        *,
        name: str | None = None,
        effect: str = Effect.ONCE.value,
        effects: EffectsFunction | None = None,
        facts: FactsFunction | None = None,
        timeout: timedelta | None = None,
        untrusted: bool = False,
        when: Callable[[TurnContext], bool | Awaitable[bool]] | None = None,
        in_order: bool = False,
        awaits_turns: bool = False,
        choices: Mapping[str, Callable[[], Mapping[str, str]]] = MappingProxyType({}),
        parameters: Mapping[str, Any] | None = None,
        description: str = "",
    ) -> None:
        """
        Declare a tool of the model.

        ``effect`` states what happens if it runs twice (``pure``, ``idempotent``, ``once``,
        ``ask``); ``effects`` returns it for one call from its arguments, where that differs.
        ``facts`` makes the facts of a call, by which it is decided, from its arguments.
        ``untrusted``: its results hold text that strangers may have written; from then on,
        calls that reach outside are asked about.
        ``timeout`` replaces ``tools.call_timeout`` for this tool, shorter or longer.
        ``when`` is asked when the tools of a session are listed; where it says no, or
        fails, the tool is left out. A call of a tool ``in_order`` runs alone: after the calls
        that the model wrote before it, and before those after it. With ``awaits_turns`` its
        calls wait for other turns, which may take the place of the calling one meanwhile.
        ``choices``, by parameter, are asked for its values and their meaning when the tools of a
        session are listed: the model is told them, or no such parameter where there are none.
        With ``parameters``, the JSON schema of an object, and ``description`` these tell the
        model of the tool: the function takes the arguments by name, as the model wrote them.

        The function gets the turn by ``get_turn_context()``.

        :raises ValueError: if there is no such effect
        """
        name = name or function.__name__
        made = ToolDeclaration(
            name=name,
            function=function,
            effect=Effect(effect),
            effects=effects,
            facts=facts,
            timeout=timeout,
            untrusted=untrusted,
            when=when,
            in_order=in_order,
            awaits_turns=awaits_turns,
            choices=choices,
            parameters=parameters,
            description=description,
        )
        self._add("tool", name, made)

    def add_bound_tools(
        self, name: str, find: Callable[[TurnContext], Awaitable[Sequence[BoundTool]]]
    ) -> None:
        """
        Declare tools that call a declared one with some of its arguments set.

        ``find`` returns those of a moment. A call is decided about, stored and run as the one
        that it stands for; an agent that may use that one may use these.
        """
        self._add("bound tools", name, BoundToolSource(name=name, find=find))

    def add_instructions(
        self, name: str, render: Callable[..., str | Awaitable[str | None] | None]
    ) -> None:
        """
        Declare a part of the instructions, rendered when a session opens.

        ``render`` may be asynchronous, and is given the ``TurnContext`` if it takes an argument.
        """
        self._add("instructions", name, Instructions(name=name, render=render))

    def add_context_note(
        self, name: str, make: Callable[[Tx, TurnContext], Iterable[Note] | None]
    ) -> None:
        """
        Declare notes that the model reads with the messages of people.

        ``make`` is called in the transaction that stores the messages which begin or join a
        turn, and may run again if that is repeated. It has 0.5 s and 8,000 characters. The
        notes are stored with the message and never change.
        """
        self._add("context note", name, ContextNote(name=name, make=make))

    def add_capability(self, name: str, make: Callable[[], object]) -> None:
        """
        Declare a ready capability or toolset of Pydantic AI.

        ``make`` returns it, and may import, when the agent is made. It must not add messages,
        change the history or keep state over steps: ``clew plugins check`` tells.
        """
        self._add("capability", name, CapabilitySource(name=name, make=make))

    def add_watch_source(
        self,
        name: str,
        read: Callable[[FeatureContext, Scope, str], Awaitable[WatchedText]],
        *,
        facts: Callable[[str], ToolFacts | None],
    ) -> None:
        """
        Declare a kind of things that jobs can watch, such as files.

        ``read`` returns the text of a target within a scope, and ``facts`` those by which it is
        decided, in a turn, whether the model may watch it.
        """
        self._add("watch source", name, WatchSource(name=name, read=read, facts=facts))

    def find_watch_source(self, name: str) -> WatchSource | None:
        """Return a kind of things that jobs can watch, of any feature; after all are loaded."""
        return next((one for one in self._features.values(WatchSource) if one.name == name), None)

    def add_readable_folders(
        self, name: str, find: Callable[[TurnContext], Awaitable[Sequence[Path]]]
    ) -> None:
        """
        Declare folders that the commands of a turn may read beside its workspace.

        ``find`` returns them for a turn. The agent must not be able to write where they are.
        """
        self._add("readable folders", name, ReadableFolders(name=name, find=find))

    async def find_readable_folders(self, context: TurnContext) -> list[Path]:
        """Return the folders that commands of a turn may read, of all features."""
        found = self._features.values(ReadableFolders)
        return [folder for one in found for folder in await one.find(context)]

    def add_narrowing(
        self, name: str, find: Callable[[Tx, TurnContext], Iterable[CallNarrowing]]
    ) -> None:
        """
        Declare what may run without asking at most.

        ``find`` is called in a transaction before each call, and returns what is in force in the
        turn: a call that one of them does not list asks, whatever was granted. It allows nothing.
        """
        self._add("narrowing", name, NarrowingSource(name=name, find=find))

    def add_file_reader(self, reader: FileReader) -> None:
        """Declare a reader of files of messages, whose text the model gets below their lines."""
        self._add("file reader", reader.name, reader)

    def add_skills(self, folder: str | Path) -> None:
        """
        Declare a folder with skills, each a folder with a ``SKILL.md``.

        The model is told of one once a person trusts it, as of any other skill.
        """
        path = Path(folder).absolute()
        self._add("folder of skills", str(path), SkillFolder(path=path))

    def add_memory_provider(
        self, name: str, make: Callable[[FeatureContext], MemoryProvider]
    ) -> None:
        """Declare a store of memories, which ``memory.providers`` can name."""
        self._add("memory provider", name, MemoryProviderKind(name=name, make=make))

    def add_tracer(self, name: str, make: Callable[[], Tracer | None]) -> None:
        """Declare a tracer of turns; ``make`` returns it with the engine, or ``None``."""
        self._add("tracer", name, TracerSource(name=name, make=make))

    def add_website(self, name: str, make: Callable[[], object]) -> None:
        """Declare web pages; ``make`` returns a ``clew.api.website.Website`` for each server."""
        self._add("website", name, WebsiteSource(name=name, make=make))

    def add_compactor(self, name: str, make: Callable[[], object]) -> None:
        """Declare a context engine, chosen with ``compaction.compactor``."""
        self._add("compactor", name, CompactorKind(name=name, make=make))

    def add_agents(self, name: str, list_agents: Callable[[], Mapping[str, NamedAgent]]) -> None:
        """Declare agents that routes can name; they are listed once, when the engine is built."""
        self._add("agents", name, AgentSource(name=name, list_agents=list_agents))
