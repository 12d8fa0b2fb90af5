"""Agents that routes name: which chats they have, and what they are told and held to."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

import pytest

from clew.core.agent_profile import AgentProfile, NamedAgent
from clew.core.route import Route, local_route
from clew.errors import SettingsError, UsageError
from clew.features.delegation.settings import AgentKind
from clew.features.schedule.jobs import JobPlace
from clew.gateway.gateway import Gateway
from clew.plugin.loading import load_settings_with_features
from clew.testing.telegram.server import FakeTelegram
from tests.features.delegation_world import delegate, do, open_delegation
from tests.features.job_world import CHAT, open_jobs, owner_of
from tests.features.test_agent_kinds import ASK, FINDER, SQLITE, Model, add_tools
from tests.waiting import wait_until

if TYPE_CHECKING:
    from pathlib import Path

    from clew.plugin import Registry
    from clew.testing import ProviderRequest

FINDERS: Final = Route(agent="finder", platform="telegram", kind="dm", chat="42")
TOOLS: Final = {"where_am_i", "delegate", "read_result"}


def is_finder(request: ProviderRequest) -> bool:
    return (
        request.model == "small"
        and set(request.tools) == TOOLS
        and "You find sources." in request.system_text
    )


async def test_a_chat_of_a_named_agent_has_its_instructions_model_and_rights(
    tmp_path: Path, store_url: str
) -> None:
    model, kinds = Model(), {"finder": FINDER}
    async with open_delegation(tmp_path, store_url, model, add_tools, kinds=kinds) as world:
        assert "told: read" in (await world.say(do(ASK), FINDERS)).text
        assert all(is_finder(one) for one in model.requests)
        # The same person, in the chat of another bot.
        model.requests.clear()
        assert "told: work" in (await world.say(do(ASK))).text
        assert not any(is_finder(one) for one in model.requests)
        assert len(await world.store.read(lambda t: t.fetch_all("SELECT 1 FROM conversation"))) == 2
        await world.settle()


async def test_what_continues_a_conversation_of_a_named_agent_has_the_same_agent(
    tmp_path: Path, store_url: str
) -> None:
    model, kinds = Model(), {"finder": FINDER}
    async with open_delegation(tmp_path, store_url, model, add_tools, kinds=kinds) as world:
        first = (await world.say("hello", FINDERS)).conversation
        # After /new, in a branch on a route of the main agent, and for a task.
        await world.engine.start_new_conversation(FINDERS)
        assert (await world.say(do(delegate(do(ASK))), FINDERS)).conversation != first
        aside = local_route("aside")
        await world.engine.sessions.branch_conversation(first, route=aside)
        assert "told: read" in (await world.say(do(ASK), aside)).text
        main = [one for one in model.requests if not is_finder(one)]
        # A task is held to the rights of the one that gives it; the rest is the kind's own.
        assert all(set(one.tools) == TOOLS for one in main)
        assert main == model.about(do(ASK))[:2]
        await world.settle()


async def test_a_change_of_the_settings_reaches_the_next_session_of_a_named_agent(
    tmp_path: Path,
) -> None:
    before = {"finder": FINDER}
    async with open_delegation(tmp_path, SQLITE, Model(), add_tools, kinds=before) as world:
        await world.say("hello", FINDERS)
    writer = AgentKind(instructions="You write.")
    model = Model()
    async with open_delegation(
        tmp_path, SQLITE, model, add_tools, kinds={"finder": writer}
    ) as world:
        await world.engine.start_new_conversation(FINDERS)
        assert "told: work" in (await world.say(do(ASK), FINDERS)).text
        assert "You write." in model.requests[0].system_text


async def test_an_agent_that_is_gone_from_the_settings_gets_no_tools(tmp_path: Path) -> None:
    async with open_delegation(
        tmp_path, SQLITE, Model(), add_tools, kinds={"finder": FINDER}
    ) as world:
        await world.say("hello", FINDERS)
    model = Model()
    async with open_delegation(tmp_path, SQLITE, model, add_tools) as world:
        # The list of the session stays as it was sent.
        assert "is not available any more" in (await world.say(do(ASK), FINDERS)).text
        model.requests.clear()
        await world.engine.start_new_conversation(FINDERS)
        await world.say("hello", FINDERS)
        # What shows a stored result is not a tool of its own.
        assert [set(one.tools) <= {"read_result"} for one in model.requests] == [True]


def add_quiet(registry: Registry) -> None:
    registry.add_agents("tested", lambda: {"quiet": NamedAgent(profile=AgentProfile(tools=()))})


async def test_jobs_of_a_named_agent_are_done_by_it(tmp_path: Path) -> None:
    model, route = Model(), Route(agent="quiet", platform="telegram", kind="dm", chat="42")
    async with open_jobs(tmp_path, SQLITE, model, add_quiet) as world:
        for place in (JobPlace.FRESH, JobPlace.OWN):
            for chat in (route, CHAT):
                owner = owner_of(None, chat)
                task = f"{place.value} {chat.agent}"
                await world.add(task=task, every="1h", place=place, owner=owner)
        await world.step(hours=1)
        wanted = {"fresh quiet": 0, "fresh main": 1, "own quiet": 0, "own main": 1}
        assert {
            task: len([one for one in asked if "schedule" in one.tools])
            for task in wanted
            if (asked := [one for one in model.requests if task in one.user_texts[0]])
        } == wanted


async def test_a_channel_gives_its_chats_to_the_agent_that_its_settings_name(
    tmp_path: Path,
) -> None:
    model, kinds = Model(), {"finder": FINDER}
    with FakeTelegram() as telegram:
        async with open_delegation(tmp_path, SQLITE, model, add_tools, kinds=kinds) as world:
            told = {"token": telegram.token, "base_url": telegram.base_url, "allow": "42"}
            flags = {f"channels.telegram.{key}": value for key, value in told.items()}
            settings = load_settings_with_features(
                home=tmp_path,
                flags={
                    **flags,
                    "channels.telegram.agent": "finder",
                    "agents.finder.description": "finds sources",
                },
                environ={},
            )
            async with Gateway(world.engine, settings):
                telegram.post_message(do(ASK), user=42)
                await wait_until(lambda: "told: read" in "".join(telegram.list_texts(42)))
        assert all(is_finder(one) for one in model.requests)


async def test_a_route_names_an_agent_that_there_is(tmp_path: Path) -> None:
    async with open_delegation(tmp_path, SQLITE, kinds={"finder": FINDER}) as world:
        assert world.engine.parse_target("agent:finder:local:notes") == local_route(
            "notes", agent="finder"
        )
        with pytest.raises(UsageError, match=r"no agent 'fnder' .*; there are main, finder"):
            world.engine.parse_target("agent:fnder:local:notes")


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (
            {"channels.telegram.agent": "fnder", "agents.finder.level": "read"},
            "channels.telegram.agent: there is no agent 'fnder'; there are main, finder",
        ),
        ({"agents.main.level": "read"}, "[agents.main]: 'main' is the agent of [agent]"),
    ],
)
def test_an_agent_that_cannot_be_named_is_refused(
    flags: dict[str, str], said: str, tmp_path: Path
) -> None:
    with pytest.raises(SettingsError, match=re.escape(said)):
        load_settings_with_features(home=tmp_path, flags=flags, environ={})
