"""The composition root: settings in, a running product out."""

from __future__ import annotations

import sys
import time
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import structlog

from clew.agent.build import build_agent
from clew.agent.choice import ModelChain, RetryPolicy
from clew.agent.compactor import HarnessCompactor, get_model_context_window
from clew.agent.known_secrets import register_secrets
from clew.agent.limits import CodeLimits
from clew.agent.loop import AgentLoop
from clew.agent.models import ModelSpec, build_model, close_models_on_exit
from clew.agent.providers import is_known_provider
from clew.clock import SystemClock
from clew.config import ensure_home
from clew.config.describe import iter_secret_texts
from clew.config.model_access import iter_named_models, resolve_access
from clew.core.compaction import estimate_tokens, exceeds_budget
from clew.core.ids import IdGenerator, new_session_id
from clew.core.reset import ResetPolicy
from clew.distribution import VERSION
from clew.engine.compaction import Compactions, Policy
from clew.engine.engine import Engine
from clew.engine.facts import Facts
from clew.engine.hub import Hub
from clew.engine.model_choice import ModelChoice
from clew.engine.titles import Titles
from clew.engine.turns import Means
from clew.engine.warm import Warm
from clew.errors import SettingsError
from clew.hooks.manager import PluginManager, load_plugins
from clew.store.opening import open_store

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from pathlib import Path

    from pydantic_ai.agent import AbstractAgent

    from clew.agent.models import Model
    from clew.config import Settings
    from clew.store.contract import Store

#: Files in ``CLEW_HOME`` that are part of the instructions, in this order.
INSTRUCTION_FILES = ("SOUL.md", "AGENTS.md")


@dataclass(frozen=True, kw_only=True, slots=True)
class Product:
    """What a front works with."""

    settings: Settings
    store: Store
    engine: Engine


@asynccontextmanager
async def open_product(
    settings: Settings, *, role: str, own_only: bool = False, store: Store | None = None
) -> AsyncGenerator[Product]:
    """
    Open the store and start an engine over it; leaving the block lets running turns go.

    ``role`` names the front for people. A ``store`` that is open already stays open. With
    ``own_only`` the engine works only on conversations that are given an input here.

    :raises SettingsError: if a setting cannot be used
    :raises StoreError: if the store cannot be opened
    """
    ensure_home(settings)
    log_plainly()
    async with AsyncExitStack() as stack:
        if store is None:
            store = await stack.enter_async_context(
                await open_store(settings.store.url, home=settings.home)
            )
        await stack.enter_async_context(close_models_on_exit())
        engine = await stack.enter_async_context(
            Engine(
                make_means(settings, store),
                role=role,
                version=VERSION,
                own_only=own_only,
            )
        )
        yield Product(settings=settings, store=store, engine=engine)


def log_plainly() -> None:
    """
    Leave the values of local variables out of logged tracebacks, unless a program chose its logs.

    With rich installed they are structlog's default: they hold what people said, and a context
    takes minutes to print, in which the event loop stands still.
    """
    if structlog.is_configured():
        return
    plain = structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback)
    structlog.configure(processors=[*structlog.get_config()["processors"][:-1], plain])


def make_means(settings: Settings, store: Store) -> Means:
    """What turns are carried out with, by the settings."""
    register_secrets(iter_secret_texts(settings))
    instructions = read_instructions(settings)
    models = make_models(settings)
    refuse_no_room(settings, instructions, window=get_model_context_window(models[0]))
    agent = make_agent(settings, instructions)
    ids = IdGenerator(lambda: time.time_ns() // 1_000_000)
    summariser = make_summariser(settings)
    return Means(
        store=store,
        hub=Hub(),
        ids=ids,
        loop=AgentLoop(
            agent,
            max_steps=settings.agent.max_steps,
            silence=settings.model.timeout,
            longest_call=settings.tools.call_timeout,
            code=CodeLimits(
                toolset=settings.tools.ready_timeout, agent=settings.agent.code_timeout
            ),
        ),
        models=ModelChain(models, RetryPolicy(), time.monotonic),
        compactions=Compactions(
            store,
            ids,
            SystemClock(),
            compactor=HarnessCompactor(),
            model=summariser or models[0],
            apart=summariser is not None,
            standby=None if summariser is None else models[0],
            policy=Policy(
                enabled=settings.compaction.enabled,
                threshold=settings.compaction.threshold,
                keep_recent=settings.compaction.keep_recent,
                window=settings.model.context_window,
            ),
        ),
        warm=Warm(store, pictures=settings.model.pictures),
        titles=Titles(store, ids, session_ids=new_session_id, model=make_titler(settings)),
        choice=ModelChoice(
            store,
            offered=(settings.model.name, *settings.model.fallback),
            make=lambda name: make_chosen(settings, name),
        ),
        facts=Facts(store, make_plugins(settings)),
        reset=make_reset_policy(settings),
        undelete_for=settings.session.undelete,
        lease=settings.lease.duration,
        turns_at_once=settings.agent.turns_at_once,
    )


def make_agent(settings: Settings, instructions: str) -> AbstractAgent[Any, Any]:
    """
    The agent by the settings; imports what people wrote themselves.

    :raises SettingsError: if that cannot be imported
    """
    let_import_from(settings.home / "plugins")
    return build_agent(
        instructions=instructions,
        object_path=settings.agent.object,
        tool_modules=settings.tools.modules,
    )


def refuse_no_room(settings: Settings, instructions: str, *, window: int | None) -> None:
    """:raises SettingsError: if the instructions fill what a request may take"""
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


def let_import_from(folder: Path) -> None:
    """Find modules of one's own in a folder, after all others: tools, an agent."""
    if str(folder) not in sys.path:
        sys.path.append(str(folder))


def make_plugins(settings: Settings) -> PluginManager:
    """The plugins that are enabled."""
    plugins = PluginManager()
    load_plugins(
        plugins, settings.home / "plugins", settings.plugins.enabled, settings.plugins.options
    )
    return plugins


def make_reset_policy(settings: Settings) -> ResetPolicy:
    """What ends a conversation by itself, by the settings."""
    session = settings.session
    return ResetPolicy(
        idle=session.idle if session.reset in ("idle", "both") else None,
        daily_at=session.at if session.reset in ("daily", "both") else None,
        timezone=ZoneInfo(session.timezone),
    )


def make_summariser(settings: Settings) -> Model | None:
    """The model that writes summaries, if it is another one."""
    if settings.compaction.model is None:
        return None
    return build_model(model_spec(settings, settings.compaction.model, setting="compaction.model"))


def make_titler(settings: Settings) -> Model | None:
    """The model that names conversations; ``None`` where they are named by their beginning."""
    if settings.session.title_model is None:
        return None
    name = settings.session.title_model
    return build_model(model_spec(settings, name, setting="session.title_model"))


def make_models(settings: Settings) -> list[Model]:
    """
    The model and its stand-ins, by the settings.

    :raises SettingsError: if one of them cannot be used as it is set
    """
    if unknown := unknown_providers(settings):
        raise SettingsError(*unknown)
    fallback = settings.model.fallback
    return [
        build_model(model_spec(settings, settings.model.name)),
        *(build_model(model_spec(settings, name, setting="model.fallback")) for name in fallback),
    ]


def unknown_providers(settings: Settings) -> list[str]:
    """Return a sentence for each table of a provider that there is not."""
    return [
        f"[providers.{kind}] is no provider of models: correct its name, or remove it"
        for kind in settings.providers
        if not is_known_provider(kind)
    ]


def model_problems(settings: Settings) -> list[str]:
    """Return a sentence for each model that is named and cannot be used, without asking any."""
    found = unknown_providers(settings)
    for setting, name in iter_named_models(settings):
        try:
            build_model(model_spec(settings, name, setting=setting))
        except SettingsError as error:
            found += error.problems
    return found


def make_chosen(settings: Settings, name: str) -> ModelChain:
    """
    A model that a person chose, and those that stand in for it.

    :raises SettingsError: if there is no such model, or it cannot be used here
    """
    others = (settings.model.name, *settings.model.fallback)
    names = [name, *(other for other in others if other != name)]
    models = [build_model(model_spec(settings, each, setting="the model")) for each in names]
    return ModelChain(models, RetryPolicy(), time.monotonic)


def model_spec(settings: Settings, name: str, *, setting: str = "model.name") -> ModelSpec:
    """
    Return how a model is reached; ``setting`` is the one that names it, for messages.

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
    """The files in ``CLEW_HOME`` and the setting, as one text."""
    texts = [_text(settings.home / name) for name in INSTRUCTION_FILES]
    texts.append(settings.agent.read_instructions() or "")
    return "\n\n".join(text.strip() for text in texts if text.strip())


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.is_file() else ""
