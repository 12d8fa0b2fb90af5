"""Composition root: from settings to a running application."""

from __future__ import annotations

import asyncio
import sys
import time
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, cast
from zoneinfo import ZoneInfo

import structlog

from clew.agent.compactor import HarnessCompactor, get_model_context_window
from clew.agent.declared_tools import make_declared_toolsets
from clew.agent.factory import build_agent, sort_capabilities
from clew.agent.failover import ModelChain, RetryPolicy
from clew.agent.known_secrets import register_secrets
from clew.agent.limits import CodeLimits
from clew.agent.loop import AgentLoop
from clew.agent.models import ModelSpec, build_model, close_models_on_exit
from clew.agent.providers import is_known_provider
from clew.agent.session_prefix import render_nothing
from clew.agent.side_requests import request_side_answer
from clew.agent.tool_names import list_tool_names
from clew.clock import SystemClock, now_millis
from clew.commands.builtin import BUILTIN_REGISTRY
from clew.commands.registry import ChatCommand
from clew.config import ensure_home
from clew.config.introspection import iter_secret_texts
from clew.config.model_access import iter_named_models, resolve_access
from clew.core.compaction import estimate_tokens, exceeds_budget
from clew.core.completion import UnattendedLimits
from clew.core.ids import IdGenerator, new_session_id
from clew.core.reset_policy import ResetPolicy
from clew.core.tool_declaration import BoundToolSource, ToolDeclaration
from clew.distribution import VERSION
from clew.engine.after_turn import AfterTurnQueue
from clew.engine.call_narrowings import CallNarrowings
from clew.engine.compaction import CompactionPolicy, CompactionService
from clew.engine.context_cache import ContextCache
from clew.engine.context_notes import ContextNotes
from clew.engine.engine import Engine
from clew.engine.event_bus import EventBus
from clew.engine.feature_runner import FeatureRunner
from clew.engine.feature_tables import FeatureTables
from clew.engine.file_readers import FileReaders
from clew.engine.hook_dispatch import HookDispatcher
from clew.engine.model_overrides import ModelOverrides
from clew.engine.named_agents import NO_AGENTS, NamedAgents
from clew.engine.picture_reader import make_picture_readers
from clew.engine.services import EngineServices
from clew.engine.titles import TitleService
from clew.engine.turn_observers import TurnObservers
from clew.engine.turn_tracing import TurnTracing
from clew.errors import ClewError, SettingsError
from clew.plugin.context import FeatureContext
from clew.plugin.declarations import (
    AfterTurn,
    AgentSource,
    CapabilitySource,
    Command,
    CompactorKind,
    Instructions,
)
from clew.plugin.enabled import load_enabled_plugins
from clew.plugin.instructions import render_instructions
from clew.plugin.loading import get_features
from clew.record import Record
from clew.sandbox.request import HOST_WARNING
from clew.store.feature_migrations import migrate_features
from clew.store.opening import open_store

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
    from pathlib import Path
    from typing import TypeAlias

    from pydantic_ai.agent import AbstractAgent
    from pydantic_ai.capabilities import AbstractCapability
    from pydantic_ai.toolsets import AbstractToolset

    from clew.agent.compactor import Compactor
    from clew.agent.models import Model
    from clew.agent.session_prefix import RenderInstructions
    from clew.api.operations import Operations
    from clew.commands.registry import ChatCommandReply, CommandContext, CommandRegistry
    from clew.config import Settings
    from clew.core.ids import ConversationId
    from clew.core.session_prefix import InstructionPart
    from clew.core.side_answer import SideAnswer
    from clew.hooks.manager import PluginManager
    from clew.plugin.context import AskModel
    from clew.plugin.registry import Declared, Features
    from clew.store.contract import Store

    #: Whether the store has the tables of a feature.
    HasTables: TypeAlias = Callable[[str], Awaitable[bool]]

log = structlog.get_logger(__name__)

#: Files in ``CLEW_HOME`` that are part of the instructions, in this order.
INSTRUCTION_FILES = ("SOUL.md", "AGENTS.md")


class Application(Record):
    """The parts of a running application that fronts use."""

    settings: Settings
    store: Store
    engine: Engine
    commands: CommandRegistry = BUILTIN_REGISTRY

    def build_operations(self) -> Operations:
        """
        Return what clients can call: the operations of Clew and its features.

        :raises SettingsError: if one cannot be made, or its name is taken
        """
        from clew.api.builtin_operations import build_operations  # noqa: PLC0415  (only servers need it)

        return build_operations(self.engine.features)


@asynccontextmanager
async def open_application(
    settings: Settings,
    *,
    role: str,
    own_only: bool = False,
    store: Store | None = None,
    plugins: PluginManager | None = None,
) -> AsyncGenerator[Application]:
    """
    Open the store and start an engine over it; leaving the block releases running turns.

    ``role`` names the front for people. A ``store`` that is open already stays open, and
    ``plugins`` that are loaded already are used. With ``own_only`` the engine works only on
    conversations that get an input here.

    :raises SettingsError: if a setting cannot be used
    :raises StoreError: if the store cannot be opened
    """
    ensure_home(settings)
    configure_default_logging()
    features = get_features(settings)
    # The code of plugins is imported, which may take long.
    await asyncio.to_thread(features.finish)
    features.raise_problems()
    commands = make_command_registry(features)
    if settings.sandbox.level == "host":
        log.warning("sandbox_off", detail=HOST_WARNING)
        commands = commands.with_warning(HOST_WARNING)
    async with AsyncExitStack() as stack:
        if store is None:
            store = await stack.enter_async_context(
                await open_store(settings.store.url, home=settings.home, features=features.schemas)
            )
        elif features.schemas:
            await store.write(migrate_features, features.schemas)
        await stack.enter_async_context(close_models_on_exit())
        services = build_services(settings, store, features, plugins)
        engine = await stack.enter_async_context(
            Engine(
                services,
                role=role,
                version=VERSION,
                own_only=own_only,
            )
        )
        if not own_only:
            runner = FeatureRunner(features, services.feature_context, engine.owner_id)
            await stack.enter_async_context(runner)
        yield Application(settings=settings, store=store, engine=engine, commands=commands)


def configure_default_logging() -> None:
    """
    Omit local variables from logged tracebacks, unless logging is configured already.

    With rich installed, structlog shows them by default: they contain messages of people,
    and printing a context takes minutes, which block the event loop.
    """
    if structlog.is_configured():
        return
    plain = structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback)
    structlog.configure(processors=[*structlog.get_config()["processors"][:-1], plain])


def build_services(
    settings: Settings,
    store: Store,
    features: Features | None = None,
    plugins: PluginManager | None = None,
) -> EngineServices:
    """Return the services for turns, as configured; ``plugins`` that are loaded already."""
    features = features or get_features(settings)
    register_secrets(iter_secret_texts(settings))
    instructions, ids = read_instructions(settings), IdGenerator(now_millis)
    models, summariser = make_models(settings), make_summary_model(settings)
    check_instruction_size(settings, instructions, window=get_model_context_window(models[0]))
    titles = TitleService(store, ids, session_ids=new_session_id)
    agents, tables = make_named_agents(features), FeatureTables(features)
    context = make_feature_context(settings, store, ids, agents)
    return EngineServices(
        store=store,
        event_bus=EventBus(),
        ids=ids,
        loop=make_agent_loop(settings, instructions, features, partial(tables.are_there, store)),
        models=ModelChain(models, RetryPolicy(), time.monotonic),
        compaction=CompactionService(
            store,
            ids,
            SystemClock(),
            compactor=make_compactor(settings, features),
            model=summariser or models[0],
            apart=summariser is not None,
            standby=None if summariser is None else models[0],
            policy=CompactionPolicy(
                enabled=settings.compaction.enabled,
                threshold=settings.compaction.threshold,
                keep_recent=settings.compaction.keep_recent,
                window=settings.model.context_window,
            ),
        ),
        context_cache=ContextCache(store, pictures=settings.model.pictures),
        titles=titles,
        after_turn=make_after_turn_queue(titles, features, context, tables),
        model_overrides=ModelOverrides(
            store,
            offered=(settings.model.name, *settings.model.fallback),
            make=lambda name: make_chosen_models(settings, name),
            agents=agents,
        ),
        agents=agents,
        hooks=HookDispatcher(store, plugins or load_enabled_plugins(settings, features)),
        reset_policy=make_reset_policy(settings),
        undelete_for=settings.session.undelete,
        lease_duration=settings.lease.duration,
        turns_at_once=settings.agent.turns_at_once,
        unattended_limits=UnattendedLimits(tokens=settings.agent.unattended_tokens),
        features=features,
        feature_context=context,
        notes=ContextNotes(features, tables),
        observers=TurnObservers(features, tables),
        narrowings=CallNarrowings(features, tables),
        file_readers=FileReaders(features, make_picture_readers(settings)),
        tracing=TurnTracing(features),
    )


def make_named_agents(features: Features) -> NamedAgents:
    """Return the agents of all features that routes can name."""
    return NamedAgents(
        {
            name: agent
            for source in features.values(AgentSource)
            for name, agent in source.list_agents().items()
        }
    )


def make_command_registry(features: Features) -> CommandRegistry:
    """
    Return the chat commands of Clew and its features.

    :raises SettingsError: if two have the same name
    """
    commands = BUILTIN_REGISTRY
    for declared in features.get(Command):
        one = declared.value
        made = ChatCommand(
            name=one.name,
            aliases=one.aliases,
            arguments=one.arguments,
            help=one.help,
            control=True,
            operator=one.operator,
            takes_prefixed=one.takes_prefixed,
            run=partial(_run_feature_command, one),
        )
        commands = commands.with_commands([made], owner=f"the feature {declared.owner!r}")
    return commands


async def _run_feature_command(
    command: Command, call: CommandContext, argument: str
) -> ChatCommandReply:
    try:
        reply = await command.run(call, argument)
        # What it has stored is worked on here, also where nothing was said yet.
        if (conversation := await call.find_conversation()) is not None:
            call.engine.wake_conversation(conversation)
        return call.reply(reply)
    except ClewError:
        raise
    except Exception as error:  # noqa: BLE001  (the code of a feature may raise anything)
        log.warning("command_failed", command=command.name, error=repr(error))
        return call.reply(f"/{command.name} failed: {error}")


def make_feature_context(
    settings: Settings, store: Store, ids: IdGenerator, agents: NamedAgents = NO_AGENTS
) -> FeatureContext:
    """Return the services that features are given."""
    return FeatureContext(
        settings=settings,
        store=store,
        ids=ids,
        ask_model=make_side_models(settings),
        find_profile=agents.find_profile_of,
    )


def make_side_models(settings: Settings) -> AskModel:
    """
    Return the function that asks models beside conversations.

    :raises SettingsError: if the model of titles cannot be used
    """
    models: dict[str, Model] = {}
    if settings.session.title_model is not None:
        title_model = make_title_model(settings)
        assert title_model is not None
        models[settings.session.title_model] = title_model

    async def ask_model(
        model: str,
        prompt: str,
        *,
        setting: str,
        max_tokens: int,
        seconds: float,
        picture: bytes | None = None,
    ) -> SideAnswer:
        if model not in models:
            models[model] = build_model(make_model_spec(settings, model, setting=setting))
        return await request_side_answer(
            models[model], prompt, max_tokens=max_tokens, seconds=seconds, picture=picture
        )

    return ask_model


def make_after_turn_queue(
    titles: TitleService,
    features: Features,
    context: FeatureContext,
    tables: FeatureTables | None = None,
) -> AfterTurnQueue:
    """Return the queue of conversations whose turn ended: stored titles first, then features."""
    tables = tables or FeatureTables(features)

    async def run(one: Declared[AfterTurn], conversation: ConversationId) -> None:
        if await tables.are_there(context.store, one.owner):
            await one.value.run(context, conversation)

    work = [(one.value, partial(run, one)) for one in features.get(AfterTurn)]
    return AfterTurnQueue(
        [
            ("pending-title", titles.apply_pending_title),
            *((one.name, do) for one, do in work if not one.every_end),
        ],
        at_every_end=[(one.name, do) for one, do in work if one.every_end],
    )


def make_agent(settings: Settings, instructions: str) -> AbstractAgent[Any, Any]:
    """
    Return the configured agent, which may import the user's own modules.

    The tools and instructions of features are added in each run.

    :raises SettingsError: if these cannot be imported
    """
    add_import_path(settings.home / "plugins")
    return build_agent(
        instructions=instructions,
        object_path=settings.agent.object,
        tool_modules=settings.tools.modules,
    )


def make_agent_loop(
    settings: Settings, instructions: str, features: Features, has_tables: HasTables
) -> AgentLoop:
    """
    Return the loop that runs the configured agent, with what features add.

    :raises SettingsError: if the agent cannot be imported
    """
    agent = make_agent(settings, instructions)
    capabilities, toolsets = make_capabilities(settings, features)
    return AgentLoop(
        agent,
        max_steps=settings.agent.max_steps,
        silence=settings.model.timeout,
        longest_call=settings.tools.call_timeout,
        code=CodeLimits(toolset=settings.tools.ready_timeout, agent=settings.agent.code_timeout),
        toolsets=(*make_feature_toolsets(settings, features, agent), *toolsets),
        capabilities=capabilities,
        render=make_instruction_renderer(settings, features, has_tables),
    )


def make_capabilities(
    settings: Settings, features: Features
) -> tuple[list[AbstractCapability[Any]], list[AbstractToolset[Any]]]:
    """
    Return the ready capabilities and toolsets that features hand over.

    :raises SettingsError: if one cannot be made
    """
    declared = features.get(CapabilitySource) if settings.agent.uses_features else ()
    return sort_capabilities((one.owner, one.value.name, one.value.make) for one in declared)


def make_feature_toolsets(
    settings: Settings, features: Features, agent: AbstractAgent[Any, Any]
) -> Sequence[AbstractToolset[Any]]:
    """Return the tools of features, unless the user's own agent is to have none."""
    if not settings.agent.uses_features:
        return ()
    declared, bound = features.values(ToolDeclaration), features.values(BoundToolSource)
    return make_declared_toolsets(declared, bound, taken=list_tool_names(agent))


def make_instruction_renderer(
    settings: Settings, features: Features, has_tables: HasTables
) -> RenderInstructions:
    """Return the function that renders the instructions of features for a session."""
    if not settings.agent.uses_features:
        return render_nothing

    async def render() -> Sequence[InstructionPart]:
        declared = features.get(Instructions)
        return await render_instructions(
            [one.value for one in declared if await has_tables(one.owner)]
        )

    return render


def make_compactor(settings: Settings, features: Features) -> Compactor:
    """
    Return the configured compactor.

    :raises SettingsError: if no feature has one of this name
    """
    name = settings.compaction.compactor
    if name is None:
        return HarnessCompactor()
    known = {one.name: one for one in features.values(CompactorKind)}
    if name not in known:
        raise SettingsError(
            f"compaction.compactor: there is no compactor {name!r}; features add "
            f"{', '.join(known) or 'none'}"
        )
    return cast("Compactor", known[name].make())


def check_instruction_size(settings: Settings, instructions: str, *, window: int | None) -> None:
    """
    Check that the instructions leave room in a request.

    :raises SettingsError: if they do not
    """
    window = settings.model.context_window or window
    tokens = estimate_tokens(len(instructions.encode()))
    if window is None or settings.agent.object is not None:
        return
    if exceeds_budget(tokens, window=window, threshold=settings.compaction.threshold):
        raise SettingsError(
            f"the model's context window has {window:,} tokens and the instructions alone take "
            f"about {tokens:,}: shorten them, choose a model with a larger window, or correct "
            "model.context_window"
        )


def add_import_path(folder: Path) -> None:
    """Add a folder with the user's own modules (tools, an agent) at the end of the path."""
    if str(folder) not in sys.path:
        sys.path.append(str(folder))


def make_reset_policy(settings: Settings) -> ResetPolicy:
    """Return the configured policy for ending conversations automatically."""
    session = settings.session
    return ResetPolicy(
        idle=session.idle if session.reset in ("idle", "both") else None,
        daily_at=session.at if session.reset in ("daily", "both") else None,
        timezone=ZoneInfo(session.timezone),
    )


def make_summary_model(settings: Settings) -> Model | None:
    """Return the model that writes summaries; ``None`` if it is the main one."""
    if settings.compaction.model is None:
        return None
    return build_model(
        make_model_spec(settings, settings.compaction.model, setting="compaction.model")
    )


def make_title_model(settings: Settings) -> Model | None:
    """Return the model that writes titles; ``None`` if titles come from the first message."""
    if settings.session.title_model is None:
        return None
    name = settings.session.title_model
    return build_model(make_model_spec(settings, name, setting="session.title_model"))


def make_models(settings: Settings) -> list[Model]:
    """
    Return the model and its fallbacks, as configured.

    :raises SettingsError: if one of them cannot be used as configured
    """
    if unknown := find_unknown_providers(settings):
        raise SettingsError(*unknown)
    fallback = settings.model.fallback
    return [
        build_model(make_model_spec(settings, settings.model.name)),
        *(
            build_model(make_model_spec(settings, name, setting="model.fallback"))
            for name in fallback
        ),
    ]


def find_unknown_providers(settings: Settings) -> list[str]:
    """Return a sentence for each table of an unknown provider."""
    return [
        f"[providers.{kind}] is no provider of models: correct its name, or remove it"
        for kind in settings.providers
        if not is_known_provider(kind)
    ]


def find_model_problems(settings: Settings) -> list[str]:
    """Return a sentence for each configured model that cannot be used; sends no request."""
    found = find_unknown_providers(settings)
    for setting, name in iter_named_models(settings):
        try:
            build_model(make_model_spec(settings, name, setting=setting))
        except SettingsError as error:
            found += error.problems
    return found


def make_chosen_models(settings: Settings, name: str) -> ModelChain:
    """
    Return the model that a user chose, with its fallbacks.

    :raises SettingsError: if there is no such model, or it cannot be used here
    """
    others = (settings.model.name, *settings.model.fallback)
    names = [name, *(other for other in others if other != name)]
    models = [build_model(make_model_spec(settings, each, setting="the model")) for each in names]
    return ModelChain(models, RetryPolicy(), time.monotonic)


def make_model_spec(settings: Settings, name: str, *, setting: str = "model.name") -> ModelSpec:
    """
    Return name and access of a model; ``setting`` is the one that names it, for messages.

    :raises SettingsError: if its key cannot be read
    """
    access = resolve_access(settings, name)
    return ModelSpec(
        name=name,
        base_url=access.base_url,
        api_key=access.api_key.reveal() if access.api_key else None,
        timeout=settings.model.timeout.total_seconds(),
        setting=setting,
        table=access.table,
    )


def read_instructions(settings: Settings) -> str:
    """Return the files in ``CLEW_HOME`` and the setting, as one text."""
    texts = [_read_optional_file(settings.home / name) for name in INSTRUCTION_FILES]
    texts.append(settings.agent.read_instructions() or "")
    return "\n\n".join(text.strip() for text in texts if text.strip())


def _read_optional_file(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.is_file() else ""
