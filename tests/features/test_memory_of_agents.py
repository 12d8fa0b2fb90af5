"""Agents with a memory of their own, or none: what they are told, recall and keep."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final

import pytest

from clew.core.agent_profile import AgentProfile, narrow_profile
from clew.core.route import Route
from clew.features.delegation.kinds import make_named_agents
from clew.features.delegation.settings import AgentKind
from clew.features.memory import extraction_spans
from clew.features.memory.extraction_spans import ExtractionRules
from tests.features.memory_world import ANN, open_memory

if TYPE_CHECKING:
    from pathlib import Path

    from clew.plugin import Registry
    from tests.features.memory_world import MemoryWorld

COACH: Final = Route(agent="coach", platform="telegram", kind="dm", chat="1")
BLANK: Final = Route(agent="blank", platform="telegram", kind="dm", chat="1")
SLACK, COACH_IN_SLACK = (
    Route(agent=agent, platform="slack", kind="dm", chat="D7") for agent in ("main", "coach")
)
KINDS: Final = {"coach": AgentKind(memory="own"), "blank": AgentKind(memory="none")}
OWN: Final = "agent:coach:person:telegram:1"


def add_agents(registry: Registry) -> None:
    registry.add_agents("tested", lambda: make_named_agents(KINDS))


async def hear(world: MemoryWorld, route: Route) -> str:
    """Begin a conversation; what the model is sent."""
    await world.engine.start_new_conversation(route)
    await world.say("hello", route)
    return world.last_request()


@pytest.mark.both_databases
async def test_an_agent_with_a_memory_of_its_own_shares_nothing_with_the_others(
    tmp_path: Path, store_url: str
) -> None:
    async with open_memory(tmp_path, store_url, more={"tested": add_agents}) as world:
        assert "Remembered as 1." in await world.command("/remember Ann hates hills.", COACH)
        await world.say("My knee hurts on hills", COACH)
        await world.call("remember", COACH, fact="Ann runs marathons.")
        await world.say("My knee is a secret", ANN)
        await world.call("remember", ANN, fact="Ann lives in Rome.")
        coach, main = await hear(world, COACH), await hear(world, ANN)
        assert "marathons" in coach
        assert "hates hills" in coach
        assert "Rome" not in coach
        assert "Rome" in main
        assert "marathons" not in main
        assert "secret" not in await world.call("recall", COACH, query="knee")
        assert "on hills" in await world.call("recall", COACH, query="knee")
        recalled = await world.call("recall", ANN, query="knee")
        assert "secret" in recalled
        assert "hills" not in recalled
        assert [(one.scope, one.text) for one in await world.facts()] == [
            (OWN, "Ann hates hills."),
            (OWN, "Ann runs marathons."),
            ("person:telegram:1", "Ann lives in Rome."),
        ]
        listed = await world.command("/memory", COACH)
        assert "marathons" in listed
        assert "Rome" not in listed
        await world.command("/forget 2", COACH)
        await world.settle()
        await world.say("what do you know?", COACH)
        assert "marathons" not in world.last_request()
        assert "marathons" not in await hear(world, COACH)
        await world.check()


async def test_an_agent_without_a_memory_is_told_nothing_and_keeps_nothing(tmp_path: Path) -> None:
    url = "sqlite:///clew.db"
    async with open_memory(tmp_path, url, more={"tested": add_agents}) as world:
        await world.command("/remember Ann lives in Rome.", ANN)
        assert "Rome" not in await hear(world, BLANK)
        for name, arguments in {
            "remember": {"fact": "Ann runs."},
            "recall": {"query": "Rome"},
            "forget": {"number": 1},
        }.items():
            assert "has no memory" in await world.call(name, BLANK, **arguments)
        for text in ("/remember Ann runs.", "/memory", "/forget 1"):
            assert "has no memory" in await world.command(text, BLANK)
        assert [one.text for one in await world.facts()] == ["Ann lives in Rome."]
        assert await claim(world, BLANK) is None, "nobody looks for facts"
        assert await claim(world, COACH) == OWN
        await world.check()


async def claim(world: MemoryWorld, route: Route) -> str | None:
    await world.say("I like tea", route)
    services = world.engine.feature_context
    rules = ExtractionRules(
        owner=services.ids.new_owner_id(), rest=timedelta(0), turns=1, keeps=True
    )
    found = await world.store.write(
        extraction_spans.claim_span, services, await world.conversation(route), rules
    )
    return found and found.scope


async def test_linked_accounts_share_what_each_agent_remembers_for_itself(tmp_path: Path) -> None:
    url = "sqlite:///clew.db"
    async with open_memory(tmp_path, url, more={"tested": add_agents}) as world:
        await world.command("/remember Ann runs marathons.", COACH_IN_SLACK)
        await world.command("/remember Ann hates hills.", COACH)
        code = (await world.command("/link", ANN)).split()[2]
        assert "is linked" in await world.command(f"/link {code}", SLACK)
        await world.settle()
        for route in (COACH, COACH_IN_SLACK):
            told = await hear(world, route)
            assert "hills" in told
            assert "marathons" in told
        assert "Nothing is remembered here" in await world.command("/memory", SLACK)
        await world.check()


def test_who_gives_an_agent_a_task_does_not_get_at_its_own_memory() -> None:
    coach, blank = (make_named_agents(KINDS)[name].profile for name in KINDS)
    assert narrow_profile(AgentProfile(), coach).memory == ""
    assert narrow_profile(coach, AgentProfile()).memory == "coach"
    assert narrow_profile(coach, blank).memory == "coach"
    assert narrow_profile(blank, coach).memory == ""
    assert narrow_profile(AgentProfile(), AgentProfile()).memory is None
