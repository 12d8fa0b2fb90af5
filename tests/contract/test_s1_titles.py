"""S1.4, S1.5: titles that were asked for too early, and how conversations name themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from clew.core.conversation import TitledBy
from clew.core.route import Route, local_route
from clew.errors import StoreUnavailable, TitleTaken, UsageError
from clew.store.transactions import titles
from tests.contract.lifecycle.doubles import Provider, answered
from tests.contract.lifecycle.failing import FailingStore
from tests.contract.lifecycle.house import House, open_house

if TYPE_CHECKING:
    from pathlib import Path

    from pydantic_ai.messages import ModelMessage, ModelResponse

    from clew.core.conversation import Conversation
    from clew.core.ids import ConversationId
    from clew.store.contract import Tx
    from tests.contract.lifecycle.doubles import Answer

TALK, OTHER = local_route("talk"), local_route("other")
CHAT = Route(platform="telegram", kind="dm", chat="c1", user="u1")


async def _titled(house: House, conversation: ConversationId) -> Conversation:
    await house.quiet(conversation)
    return (await house.engine.get_view(conversation)).conversation


async def test_s1_4_a_title_that_was_taken_meanwhile_is_dropped_and_the_talk_names_itself(
    store_url: str, tmp_path: Path
) -> None:
    async with open_house(store_url, tmp_path) as house:
        conversation = await house.engine.titles.request_title(TALK, "Trip")
        assert (await _titled(house, conversation)).title is None
        await house.engine.rename_conversation(await house.open(OTHER), "Trip")
        await house.say("plan my trip to Rome", to=TALK)
        found = await _titled(house, conversation)
        assert (found.title, found.titled_by) == ("plan my trip to Rome", TitledBy.MODEL)
        assert await house.store.read(titles.get_pending_title, conversation) is None


async def test_s1_4_a_title_that_turns_out_invalid_is_dropped(
    store_url: str, tmp_path: Path
) -> None:
    async with open_house(store_url, tmp_path) as house:
        conversation = await house.engine.titles.request_title(TALK, "x" * 201)
        await house.say("hello there", to=TALK)
        assert (await _titled(house, conversation)).title == "hello there"
        assert await house.store.read(titles.get_pending_title, conversation) is None


async def test_s1_4_a_title_that_was_asked_for_early_is_given_with_the_first_turn(
    store_url: str, tmp_path: Path
) -> None:
    async with open_house(store_url, tmp_path) as house:
        conversation = await house.engine.titles.request_title(TALK, "  My   trip ")
        await house.say("hello", to=TALK)
        found = await _titled(house, conversation)
        assert (found.title, found.titled_by) == ("My trip", TitledBy.PERSON)


async def test_s1_5_a_title_that_failed_for_a_passing_reason_is_given_after_a_later_turn(
    store_url: str, tmp_path: Path
) -> None:
    failing = FailingStore.at("titles.apply_pending_title", StoreUnavailable("for now"))
    async with open_house(store_url, tmp_path, around=failing.around) as house:
        conversation = await house.engine.titles.request_title(TALK, "Trip")
        await house.say("hello", to=TALK)
        assert (await _titled(house, conversation)).title is None
        assert await house.store.read(titles.get_pending_title, conversation) == "Trip"
        failing.mend()
        await house.say("hello again", to=TALK)
        found = await _titled(house, conversation)
        assert (found.title, found.titled_by) == ("Trip", TitledBy.PERSON)
        assert await house.store.read(titles.get_pending_title, conversation) is None


async def test_s1_5_a_title_of_a_conversation_that_is_there_is_kept_where_the_store_fails(
    store_url: str, tmp_path: Path
) -> None:
    failing = FailingStore.at("titles.set_title", StoreUnavailable("for now"))
    async with open_house(store_url, tmp_path, around=failing.around) as house:
        conversation = (await house.say("hello", to=TALK)).conversation
        await house.engine.titles.request_title(TALK, "Trip")
        failing.mend()
        await house.say("hello again", to=TALK)
        assert (await _titled(house, conversation)).title == "Trip"


async def test_a_title_of_a_conversation_that_is_there_is_refused_at_once(
    store_url: str, tmp_path: Path
) -> None:
    async with open_house(store_url, tmp_path) as house:
        await house.engine.rename_conversation(await house.open(OTHER), "Trip")
        await house.open(TALK)
        with pytest.raises(TitleTaken):
            await house.engine.titles.request_title(TALK, "Trip")
        with pytest.raises(UsageError, match="at most 200"):
            await house.engine.titles.request_title(TALK, "x" * 201)
        # In another scope the title is free.
        await house.open(CHAT)
        await house.engine.titles.request_title(CHAT, "Trip")


async def test_an_automatic_title_is_numbered_where_it_is_taken_and_never_replaces_a_persons(
    store_url: str, tmp_path: Path
) -> None:
    async with open_house(store_url, tmp_path) as house:
        first = (await house.say("Good morning!\nand more", to=TALK)).conversation
        second = (await house.say("Good morning!", to=OTHER)).conversation
        assert (await _titled(house, first)).title == "Good morning!"
        assert (await _titled(house, second)).title == "Good morning! (2)"
        await house.engine.rename_conversation(first, "Mine")
        await house.say("something else", to=TALK)
        assert (await _titled(house, first)).title == "Mine"


def _names(_: list[ModelMessage]) -> ModelResponse:
    return answered('"**A week in Rome**"', tokens=30)


def _rambles(_: list[ModelMessage]) -> ModelResponse:
    return answered("Sure!\n\nHere is a title: Rome", tokens=30)


def _breaks(_: list[ModelMessage]) -> ModelResponse:
    raise RuntimeError("no quota")


def _tokens_of_titles(t: Tx) -> list[int]:
    return [row[0] for row in t.fetch_all("SELECT input_tokens FROM usage WHERE purpose = 'title'")]


@pytest.mark.parametrize(
    ("model", "title"),
    [(_names, "A week in Rome"), (_rambles, "plan a week"), (_breaks, "plan a week")],
)
async def test_a_model_names_the_conversation_and_the_first_words_do_where_it_fails(
    model: Answer, title: str, store_url: str, tmp_path: Path
) -> None:
    titler = Provider(model)
    async with open_house(store_url, tmp_path, title_model=titler.model) as house:
        conversation = (await house.say("plan a week", to=TALK)).conversation
        assert (await _titled(house, conversation)).title == title
        await house.say("more", to=TALK)
        await house.quiet(conversation)
        assert len(titler.sent) == 1
        counted = [] if model is _breaks else [30]
        assert await house.store.read(_tokens_of_titles) == counted
