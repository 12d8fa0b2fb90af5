"""S0: the current session survives compaction and restart."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from clew.agent import current
from clew.core.route import Route, local_route
from clew.store.transactions import conversations
from tests.contract.lifecycle.doubles import Provider, answered, calling, is_new_turn, said
from tests.contract.lifecycle.dying import Way, killed_in, restarted
from tests.contract.lifecycle.filling import fill
from tests.contract.lifecycle.house import open_house

if TYPE_CHECKING:
    from pathlib import Path

    from pydantic_ai.messages import ModelMessage, ModelResponse

OLD, NEW = "20260101_000000_aaaaaa", "20260101_000001_bbbbbb"
TALK = local_route("talk")
CHAT = Route(platform="telegram", kind="dm", chat="c1", user="u1")


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("way", list(Way), ids=lambda way: way.value)
def test_s0_1_a_kill_right_after_a_compaction_loses_and_repeats_nothing(
    way: Way, store_url: str, tmp_path: Path
) -> None:
    before = killed_in(way, store_url, tmp_path)
    assert before.summaries == 1
    after = restarted(way, store_url, tmp_path)
    assert after.head_at_start == before.head
    assert after.head_at_end == before.head
    assert after.summaries == 0
    assert after.outcome == "turn"
    assert after.begins_with_summary


async def test_s0_2_a_turn_that_moves_the_session_moves_every_route_with_one_head_move(
    store_url: str, tmp_path: Path
) -> None:
    async with open_house(store_url, tmp_path, session_ids=[OLD, NEW], window=200_000) as house:
        conversation = await house.open(TALK)
        await house.store.write(conversations.move_route, CHAT.key, conversation)
        await house.store.write(fill, conversation, 30)
        assert (await house.head(TALK.key)).id == OLD
        house.store.written.clear()
        await house.say("and now?", to=TALK)
        assert house.summariser.calls == 1
        assert [(await house.head(route.key)).id for route in (TALK, CHAT)] == [NEW, NEW]
        assert house.store.written["head"] == 1
        assert house.store.written["route"] == 0


async def test_s0_3_a_turn_without_compaction_writes_nothing_to_routes_or_heads(
    store_url: str, tmp_path: Path
) -> None:
    async with open_house(store_url, tmp_path) as house:
        await house.say("hello", to=TALK)
        house.store.written.clear()
        await house.say("hello again", to=TALK)
        assert house.store.written["entry"] == 2
        assert house.store.written["route"] == 0
        assert house.store.written["head"] == 0


async def test_s0_4_after_a_rotation_tools_subprocesses_hooks_and_route_name_one_session(
    store_url: str, tmp_path: Path
) -> None:
    seen: list[str | None] = []

    def look() -> str:
        """Look who calls."""
        where = current.current()
        assert where is not None
        seen.append(where.session)
        names = current.environment()
        seen.extend([names["CLEW_SESSION_ID"], names["HERMES_SESSION_ID"]])
        return "a lot " * 10_000

    def answer(messages: list[ModelMessage]) -> ModelResponse:
        if is_new_turn(messages):
            return calling("look", tokens=60_000)
        if len(seen) < 6:
            return calling("look", tokens=1_000)
        return answered(f"seen {said(messages)}")

    async with open_house(
        store_url,
        tmp_path,
        session_ids=[OLD, NEW],
        window=100_000,
        tools=[look],
        provider=Provider(answer),
    ) as house:
        conversation = await house.open(TALK)
        await house.store.write(fill, conversation, 6, size=20_000)
        await house.say("look twice", to=TALK)
        assert house.summariser.calls == 1
        assert seen == [OLD, OLD, OLD, NEW, NEW, NEW]
        assert (await house.head(TALK.key)).id == NEW
        await house.quiet(conversation)
        asked = [facts["session_id"] for hook, facts in house.notes.told if hook == "tool"]
        assert asked == [OLD, NEW]
