"""Kinds of agents: what a task is told and held to, by the table that its kind has."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import pytest

from clew.core.route import local_route
from clew.core.scope import LOCAL
from clew.errors import SettingsError
from clew.features import schedule
from clew.features.delegation import front
from clew.features.delegation.settings import AgentKind, DelegationSettings
from clew.features.schedule.jobs import list_jobs
from clew.plugin import get_turn_context
from clew.plugin.loading import load_settings_with_features
from clew.runtime import find_model_problems
from tests.features.delegation_world import delegate, do, obey, open_delegation

if TYPE_CHECKING:
    from pathlib import Path

    from clew.plugin import Registry
    from clew.store.contract import Tx
    from clew.testing import ProviderRequest, Reply

ASK: Final[tuple[str, dict[str, Any]]] = ("where_am_i", {})
SQLITE: Final = "sqlite:///clew.db"
FINDER = AgentKind(
    description="finds sources",
    instructions="You find sources.",
    model="openai-chat:small",
    tools=("where_am_i", "delegate"),
    level="read",
    tokens=9_000,
    steps=7,
)


def where_am_i() -> str:
    """Return the level of commands."""
    context = get_turn_context()
    assert context is not None
    return context.sandbox_level


def add_tools(registry: Registry) -> None:
    registry.add_tool(where_am_i, effect="pure")


class Model:
    """A model that does what it is told, and keeps what it was sent."""

    def __init__(self) -> None:
        self.requests: list[ProviderRequest] = []

    def __call__(self, request: ProviderRequest) -> Reply:
        self.requests.append(request)
        return obey(request)

    def about(self, text: str) -> list[ProviderRequest]:
        """Return the requests of the conversations whose first message has this line."""
        return [one for one in self.requests if text in one.user_texts[0].splitlines()]


def read_choices(request: ProviderRequest) -> tuple[list[str], str]:
    """Return the kinds that a request offers, and what it says of them."""
    [tool] = [one for one in request.raw["tools"] if one["function"]["name"] == "delegate"]
    kind = tool["function"]["parameters"]["properties"].get("kind")
    return ([], "") if kind is None else (kind["enum"], kind["description"].partition(". ")[2])


async def test_a_task_has_the_instructions_model_rights_and_budget_of_its_kind(
    tmp_path: Path, store_url: str
) -> None:
    model, kinds = Model(), {"finder": FINDER, "plain": AgentKind()}
    async with open_delegation(tmp_path, store_url, model, add_tools, kinds=kinds) as world:
        end = await world.say(do(delegate(do(ASK), kind="finder")))
        assert "told: read" in end.text
        [first, *_] = model.about(do(ASK))
        assert first.model == "small"
        assert set(first.tools) == {"where_am_i", "delegate", "read_result"}
        assert "You find sources." in first.system_text
        child = await world.child()
        assert (child.agent, child.max_tokens, child.max_steps) == ("finder", 9_000, 7)
        line = await world.store.read(front.format_child, child)
        assert line.startswith(f"{child.conversation_id} [finder]  ")
        assert (await world.store.read(front.describe_task, child))["agent"] == "finder"
        [parent, *_] = model.about(do(delegate(do(ASK), kind="finder")))
        assert "You find sources." not in parent.system_text
        assert read_choices(parent) == (["finder", "plain"], "finder: finds sources; plain")


async def test_no_task_has_more_rights_than_the_one_that_asked_for_it(
    tmp_path: Path, store_url: str
) -> None:
    below, ask_again = do(ASK), do(ASK, ASK)
    free = AgentKind(level="work", tools=("where_am_i", "agents"))
    model, kinds = Model(), {"finder": FINDER, "free": free}
    task = do(delegate(below), delegate(f"{ask_again}\nfree", kind="free"))
    async with open_delegation(tmp_path, store_url, model, add_tools, kinds=kinds) as world:
        end = await world.say(do(delegate(task, kind="finder")))
        assert "told: read" in end.text
        assert "told: work" not in end.text
        offered = {
            kind: set(request.tools)
            for kind, text in (("usual", below), ("free", "free"))
            for request in model.about(text)[:1]
        }
        assert offered == {
            "usual": {"where_am_i", "delegate", "read_result"},
            "free": {"where_am_i", "read_result"},
        }
        # The kind is about the tasks of the agent, not about those below.
        assert not any("You find sources." in one.system_text for one in model.about(below))


async def test_a_branch_of_a_task_is_held_to_what_the_task_is(
    tmp_path: Path, store_url: str
) -> None:
    model = Model()
    async with open_delegation(tmp_path, store_url, model, add_tools, kinds={"finder": FINDER}) as (
        world
    ):
        await world.say(do(delegate(do(ASK), kind="finder")))
        route = local_route("aside")
        child = await world.child()
        await world.engine.sessions.branch_conversation(child.conversation_id, route=route)
        assert "told: read" in (await world.say(do(ASK, ASK), route)).text
        last = model.requests[-1]
        assert (last.model, set(last.tools)) == ("small", {"where_am_i", "delegate", "read_result"})
        assert "You find sources." in last.system_text


async def test_a_task_stays_as_it_was_when_the_settings_of_its_kind_change(
    tmp_path: Path, store_url: str
) -> None:
    kinds = {"finder": FINDER}
    async with open_delegation(tmp_path, store_url, obey, add_tools, kinds=kinds) as world:
        await world.say(do(delegate(do(ASK), kind="finder")))
        child = await world.child()
    later = replace(FINDER, instructions="You write.", model=None, tools=None, level=None)
    for kinds in ({"finder": later}, {}):
        model = Model()
        async with open_delegation(tmp_path, store_url, model, add_tools, kinds=kinds) as world:
            # Its next session asks for everything again.
            await world.engine.queue_close(child.conversation_id, reason="user_exit")
            said = await world.engine.submit(do(ASK), target=child.conversation_id)
            assert "told: read" in (await world.engine.wait_for_input(said)).text
            first, *_ = model.requests
            assert first.model == "small"
            assert set(first.tools) == {"where_am_i", "delegate", "read_result"}
            assert "You find sources." in first.system_text
            assert "You write." not in first.system_text


async def test_an_unknown_kind_is_refused_with_those_that_there_are(tmp_path: Path) -> None:
    asked = do(delegate("look", kind="fnder"))
    async with open_delegation(tmp_path, SQLITE, kinds={"finder": FINDER}) as world:
        assert "no kind of agent 'fnder'; there are finder" in (await world.say(asked)).text
    async with open_delegation(tmp_path, SQLITE) as world:
        assert "there are none: leave kind out" in (await world.say(asked + " ")).text
        assert await world.children() == []


async def test_without_kinds_the_model_is_offered_none(tmp_path: Path) -> None:
    model = Model()
    async with open_delegation(tmp_path, SQLITE, model) as world:
        await world.say("hello")
        assert read_choices(model.requests[0]) == ([], "")


async def test_an_agent_with_fewer_rights_schedules_nothing_that_others_carry_out(
    tmp_path: Path,
) -> None:
    kinds = {"narrow": AgentKind(tools=("schedule",))}
    wanted = (
        {"task": "a", "every": "1h"},
        {"task": "b", "every": "1h", "kind": "command", "command": "ls", "where": "here"},
        {"task": "c", "every": "1h", "kind": "message"},
        {"task": "d", "every": "1h", "where": "here"},
    )
    task = do(*(("schedule", one) for one in wanted))
    async with open_delegation(tmp_path, SQLITE, obey, schedule.register, kinds=kinds) as world:
        told = (await world.say(do(delegate(task, kind="narrow")))).text
        assert told.count("an agent of this kind can only schedule") == 2
        assert told.count("Scheduled.") == 2


async def test_an_agent_with_fewer_rights_changes_only_what_it_has_scheduled(
    tmp_path: Path,
) -> None:
    def change(job: str) -> str:
        asked: list[dict[str, Any]] = [
            {"action": "pause"},
            {"action": "edit", "zone": "Asia/Tokyo"},
        ]
        return do(*(("schedule", {**one, "job": job}) for one in asked))

    hourly = {"every": "1h", "where": "here"}
    own = do(("schedule", {"task": "its own", **hourly}))
    kinds = {"narrow": AgentKind(tools=("schedule",))}
    async with open_delegation(tmp_path, SQLITE, obey, schedule.register, kinds=kinds) as world:
        await world.say(do(("schedule", {"task": "of the person", **hourly})))
        told = (await world.say(do(delegate(change("of the person"), kind="narrow")))).text
        assert told.count("can only change jobs of its own conversation") == 2
        await world.say(do(delegate(own, kind="narrow")))
        task = (await world.children())[-1].conversation_id
        said = await world.engine.submit(change("its own"), target=task)
        await world.engine.wait_for_input(said)
        assert await world.store.read(read_jobs) == [
            ("of the person", "UTC", "on"),
            ("its own", "Asia/Tokyo", "paused"),
        ]
        # Whoever has all rights may change what its tasks have made.
        await world.say(do(("schedule", {"action": "remove", "job": "its own"})))
        assert len(await world.store.read(read_jobs)) == 1


def read_jobs(t: Tx) -> list[tuple[str, str, str]]:
    return [(one.title, one.zone, one.state.value) for one in list_jobs(t, viewer=LOCAL)]


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("Finder.tools", "shell", "[agents.Finder]: the name of a kind"),
        ("finder.level", "net", "agents.finder.level is 'net', and sandbox.level is 'work'"),
        ("finder.level", "box", "agents.finder.level is 'box', and sandbox.level is 'work'"),
        ("finder.tokens", "600000", "agents.finder.tokens is 600,000, and delegation.tokens"),
        ("finder.steps", "101", "agents.finder.steps is 101, and delegation.steps is 100"),
        ("finder.tools", "shel", "agents.finder.tools: there is no tool 'shel'; there are read"),
        ("finder.instructions", "x" * 40_001, "agents.finder.instructions has more than 40,000"),
    ],
)
def test_a_kind_that_cannot_be_honoured_is_refused(
    key: str, value: str, said: str, tmp_path: Path
) -> None:
    with pytest.raises(SettingsError, match=re.escape(said)):
        load_settings_with_features(home=tmp_path, flags={f"agents.{key}": value}, environ={})


def test_the_model_of_a_kind_is_looked_at(tmp_path: Path) -> None:
    settings = load_settings_with_features(
        home=tmp_path,
        flags={"model.name": "offline", "agents.finder.model": "cohere:x"},
        environ={},
    )
    [problem] = find_model_problems(settings)
    assert "agents.finder.model 'cohere:x' needs" in problem


async def test_a_kind_with_a_lower_budget_keeps_it_when_it_is_told_more(tmp_path: Path) -> None:
    limits = DelegationSettings(steps=50)
    kinds = {"short": AgentKind(steps=3)}
    async with open_delegation(tmp_path, SQLITE, settings=limits, kinds=kinds) as world:
        await world.say(do(delegate("look", kind="short")))
        task = (await world.child()).conversation_id
        await world.say(do(("agents", {"action": "tell", "task": task, "text": "again"})))
        await world.settle()
        assert (await world.child()).max_steps == 4
