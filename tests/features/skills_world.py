"""A gateway with skills: an engine, a provider that obeys, and folders in its home."""

from __future__ import annotations

import re
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from clew.agent.models import close_models_on_exit
from clew.commands.runner import CommandRunner
from clew.core.entry import NOTICE_FORMAT
from clew.engine.engine import Engine
from clew.features import skills
from clew.plugin.registry import Features
from clew.runtime import build_services, make_command_registry
from clew.store.opening import open_store
from clew.testing import FakeProvider, Text
from tests.features.delegation_world import do, obey
from tests.features.memory_world import HOME, MemoryWorld
from tests.integration.api_server import settings_for

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Mapping
    from pathlib import Path

    from clew.config.settings import Settings
    from clew.core.route import Route
    from clew.plugin.registry import Register
    from clew.store.contract import Tx
    from clew.testing import ProviderRequest, Reply


@dataclass(kw_only=True)
class SkillsWorld(MemoryWorld):
    settings: Settings

    @property
    def folder(self) -> Path:
        return self.settings.home / "skills"

    async def load(self, name: str, route: Route = HOME) -> str:
        """Have the model load a skill; what it was told."""
        said = await self.say(do(("load_skill", {"name": name})), route)
        return said.removeprefix("told: ")

    async def notices(self) -> list[str]:
        """What people were told beside answers."""
        return await self.store.read(_list_notices)

    async def trust(self, name: str, route: Route = HOME) -> str:
        """Look at a skill, and trust what was shown."""
        shown = await self.command(f"/skills trust {name}", route)
        found = re.search(rf"^/skills trust {name} [0-9a-f]+", shown, re.MULTILINE)
        assert found is not None, shown
        return await self.command(found[0], route)


def summarise_or_obey(request: ProviderRequest) -> Reply:
    """Return a summary that forgets everything if one is asked for; else do as the message says."""
    if "## Planned" in request.last_user_text:
        return Text("## Intent\nTo talk.\n\n## Done\n" + "Nothing was agreed on so far. " * 8)
    return obey(request)


def _list_notices(t: Tx) -> list[str]:
    rows = t.fetch_all("SELECT text FROM entry WHERE format = $1 ORDER BY n", NOTICE_FORMAT)
    return [text for (text,) in rows]


@asynccontextmanager
async def open_skills(
    home: Path,
    url: str,
    answer: Callable[[ProviderRequest], Reply] = obey,
    *,
    more: Mapping[str, Register] | None = None,
    level: str | None = None,
    window: int | None = None,
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
            settings = replace(settings, model=replace(settings.model, context_window=window))
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
