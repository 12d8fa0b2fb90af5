"""Memory providers: a small protocol, and one place where each is found by its name."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from clew.core.ids import ConversationId, IdGenerator, SessionId, TurnId
from clew.core.scope import Scope
from clew.errors import SettingsError
from clew.features.memory.settings import MemorySettings
from clew.plugin import Memory, MemoryProvider, TurnContext
from clew.plugin.declarations import MemoryProviderKind
from clew.plugin.loading import load_settings_with_features
from clew.plugin.registry import Features
from clew.runtime import make_feature_context
from clew.store.opening import open_store
from tests.features.memory_world import ANN, open_memory
from tests.integration.api_server import settings_for

if TYPE_CHECKING:
    from pathlib import Path

    from clew.plugin import FeatureContext, Registry


class Notebook:
    """Keeps memories as long as the process lives."""

    def __init__(self, context: FeatureContext) -> None:
        self._kept: dict[str, Memory] = {}

    async def remember(self, context: TurnContext, text: str) -> Memory:
        key = f"mem_{context.call_key}"
        return self._kept.setdefault(key, Memory(id=key, text=text, scope=context.scope))

    async def recall(self, context: TurnContext, query: str, *, limit: int) -> list[Memory]:
        seen = [m for m in self._kept.values() if m.scope == context.scope and query in m.text]
        return seen[:limit]

    async def forget(self, context: TurnContext, memory: str) -> bool:
        if (found := self._kept.get(memory)) is None or found.scope != context.scope:
            return False
        del self._kept[memory]
        return True


class Broken(Notebook):
    async def remember(self, context: TurnContext, text: str) -> Memory:
        raise ConnectionError("the notebook is away")

    recall = remember  # pyright: ignore[reportAssignmentType]


def register(registry: Registry) -> None:
    registry.add_memory_provider("notebook", Notebook)


async def test_a_provider_is_found_by_its_name_and_keeps_scopes_apart(tmp_path: Path) -> None:
    features = Features()
    features.register("notes", register)
    (kind,) = features.values(MemoryProviderKind)
    async with await open_store("sqlite:///clew.db", home=tmp_path) as store:
        context = make_feature_context(settings_for(tmp_path), store, IdGenerator(lambda: 0))
        provider: MemoryProvider = kind.make(context)
        one, other = (
            TurnContext(
                conversation=ConversationId("cnv_1"),
                session=SessionId("ses_1"),
                turn=TurnId("trn_1"),
                route=None,
                scope=Scope(scope),
                sandbox_level="work",
                services=context,
            )
            for scope in ("person:1", "chat:2")
        )
        kept = await provider.remember(one, "likes roses")
        assert await provider.remember(one, "likes roses") == kept
        assert await provider.recall(one, "roses", limit=9) == [kept]
        assert await provider.recall(other, "roses", limit=9) == []
        assert not await provider.forget(other, kept.id)
        assert await provider.forget(one, kept.id)
    with pytest.raises(SettingsError, match="both have the memory provider 'notebook'"):
        features.register("more", register)


def register_both(registry: Registry) -> None:
    register(registry)
    registry.add_memory_provider("broken", Broken)


async def test_what_is_remembered_is_kept_and_found_in_the_providers_of_the_settings(
    tmp_path: Path,
) -> None:
    settings = MemorySettings(providers=("notebook", "broken"))
    more = {"notes": register_both}
    async with open_memory(tmp_path, "sqlite:///clew.db", settings=settings, more=more) as world:
        told = await world.call("remember", ANN, fact="Ann likes roses.")
        assert told == "Remembered as 1. Ann likes roses.\n[broken has not kept it: it failed]"
        recalled = await world.call("recall", ANN, query="roses")
        assert "Ann likes roses. [notebook]" in recalled
        assert "[broken was not asked: it failed]" in recalled
        assert "[notebook]" not in await world.call("recall", query="roses"), "another scope"
        # The command erases the fact; what the provider still has is not told.
        await world.call("remember", ANN, fact="Ann sails.")
        await world.command("/forget 2", ANN)
        await world.settle()
        assert "sails" not in await world.call("recall", ANN, query="Ann")
        await world.call("forget", ANN, number=1)
        await world.settle()
        await world.say("Ann likes roses.", ANN)
        assert "[notebook]" not in await world.call("recall", ANN, query="roses")
        await world.check()


def test_a_provider_that_no_plugin_declares_is_named_when_the_settings_are_loaded(
    tmp_path: Path,
) -> None:
    with pytest.raises(SettingsError, match="no memory provider 'attic'; no plugin declares one"):
        load_settings_with_features(home=tmp_path, flags={"memory.providers": "attic"}, environ={})
