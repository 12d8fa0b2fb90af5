"""An application with plugins for Hermes Agent, and a model that obeys."""

from __future__ import annotations

import shutil
import sys
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from clew.commands.runner import CommandRunner
from clew.engine import context_notes
from clew.features.hermes import host
from clew.features.hermes.worker import BriefCalls
from clew.plugin.loading import load_settings_with_features
from clew.runtime import open_application
from clew.testing import FakeProvider
from tests.features.delegation_world import obey
from tests.features.memory_world import HOME, MemoryWorld
from tests.waiting import PATIENCE

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence

    from clew.config.settings import Settings
    from clew.core.route import Route
    from clew.features.hermes.loaded import LoadedPlugin
    from clew.features.hermes.state import HostState
    from clew.plugin import Registry
    from clew.testing import ProviderRequest, Reply

PLUGINS = Path(__file__).with_name("hermes_plugins")


@dataclass(kw_only=True)
class HermesWorld(MemoryWorld):
    settings: Settings
    #: The loaded plugins.
    plugins: Sequence[LoadedPlugin]
    home: Route = HOME

    def module(self, name: str) -> Any:
        """Return a module of a plugin, as the host has imported it."""
        return sys.modules[f"hermes_plugins.{name}"]


def read_settings(
    home: Path, plugins: Sequence[str], *, url: str = "sqlite:///clew.db", **flags: Any
) -> Settings:
    """Return settings that enable plugins, which are copied into the home."""
    for name in plugins:
        if (source := PLUGINS / name).is_dir():
            target = home / "hermes" / "plugins" / name
            shutil.copytree(source, target, dirs_exist_ok=True)
    given = {"model.name": "offline", "store.url": url, "hermes.enabled_plugins": list(plugins)}
    given |= {name.replace("__", "."): value for name, value in flags.items()}
    return load_settings_with_features(home=home, flags=given, environ={})


@asynccontextmanager
async def open_hermes(
    home: Path,
    plugins: Sequence[str],
    *,
    trusted: Sequence[str] = (),
    hook_timeout: str = "30s",
    is_patient: bool = True,
) -> AsyncGenerator[HermesWorld]:
    """Open an application with plugins; the environment is as before once it is closed."""
    sent: list[ProviderRequest] = []
    loaded: list[LoadedPlugin] = []
    declare = host.declare_plugin

    def keep(registry: Registry, state: HostState, plugin: LoadedPlugin) -> None:
        loaded.append(plugin)
        declare(registry, state, plugin)

    def reply(request: ProviderRequest) -> Reply:
        sent.append(request)
        return obey(request)

    with pytest.MonkeyPatch.context() as patch, FakeProvider(reply) as provider:
        patch.setenv("HERMES_HOME", "")
        patch.setattr(host, "declare_plugin", keep)
        if is_patient:
            # Notes are made in a transaction, and left out where a busy machine takes longer.
            patch.setattr(context_notes, "MAX_SECONDS", PATIENCE)
            patch.setattr(BriefCalls, "SECONDS", PATIENCE)
        settings = read_settings(
            home,
            plugins,
            model__name="openai-chat:fake-model",
            model__base_url=provider.openai_url,
            hermes__trusted_plugins=list(trusted),
            hermes__timeout=hook_timeout,
        )
        async with open_application(settings, role="test") as made:
            yield HermesWorld(
                engine=made.engine,
                provider=provider,
                store=made.store,
                runner=CommandRunner(made.engine, made.commands),
                sent=sent,
                settings=settings,
                plugins=loaded,
            )
