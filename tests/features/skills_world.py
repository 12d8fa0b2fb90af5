"""A gateway with skills: an engine, a provider that obeys, and folders in its home."""

from __future__ import annotations

import re
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from clew.agent.models import close_models_on_exit
from clew.commands.runner import CommandRunner
from clew.engine.engine import Engine
from clew.features import skills
from clew.plugin.registry import Features
from clew.runtime import build_services, make_command_registry
from clew.store.opening import open_store
from clew.testing import FakeProvider
from tests.features.delegation_world import obey
from tests.features.memory_world import HOME, MemoryWorld
from tests.integration.api_server import settings_for

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable
    from pathlib import Path

    from clew.config.settings import Settings
    from clew.core.route import Route
    from clew.plugin.registry import Register
    from clew.testing import ProviderRequest, Reply


@dataclass(kw_only=True)
class SkillsWorld(MemoryWorld):
    settings: Settings

    @property
    def folder(self) -> Path:
        return self.settings.home / "skills"

    async def trust(self, name: str, route: Route = HOME) -> str:
        """Look at a skill, and trust what was shown."""
        shown = await self.command(f"/skills trust {name}", route)
        found = re.search(rf"^/skills trust {name} [0-9a-f]+", shown, re.MULTILINE)
        assert found is not None, shown
        return await self.command(found[0], route)


@asynccontextmanager
async def open_skills(
    home: Path,
    url: str,
    answer: Callable[[ProviderRequest], Reply] = obey,
    *,
    more: dict[str, Register] | None = None,
    level: str | None = None,
) -> AsyncGenerator[SkillsWorld]:
    """Open a gateway with skills and ``more`` features."""
    features = Features()
    features.register("skills", skills.register)
    for name, register in (more or {}).items():
        features.register(name, register)
    sent: list[ProviderRequest] = []

    def reply(request: ProviderRequest) -> Reply:
        sent.append(request)
        return answer(request)

    with FakeProvider(reply) as provider:
        async with (
            close_models_on_exit(),
            await open_store(url, home=home, features=features.schemas) as store,
        ):
            settings = replace(settings_for(home, provider=provider), loaded_features=features)
            if level is not None:
                settings = replace(settings, sandbox=replace(settings.sandbox, level=level))
            features.bind_settings(settings)
            services = build_services(settings, store, features)
            async with Engine(services, role="test", version="0") as engine:
                yield SkillsWorld(
                    engine=engine,
                    provider=provider,
                    store=store,
                    runner=CommandRunner(engine, make_command_registry(features)),
                    sent=sent,
                    settings=settings,
                )
