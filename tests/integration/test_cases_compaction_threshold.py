"""Cases of compactions that came too early, too late, or with the wrong window."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest
from pydantic_ai import Agent

from clew.config import load_settings
from clew.engine.compaction import CompactionPolicy
from clew.errors import SettingsError
from clew.runtime import build_services
from clew.store.opening import open_store
from clew.testing import (
    Calls,
    Fail,
    FakeProvider,
    ReplyUsage,
    ScriptedCall,
    Text,
    count_user_texts,
    with_context_window,
)
from tests.failing.compacting import Plays, filled, log_of, sent, sessions_of
from tests.failing.desk import FORMATS, Format, always, open_desk
from tests.integration.api_server import running, settings_for

if TYPE_CHECKING:
    from pathlib import Path

    from clew.testing import ProviderRequest, Reply

WINDOW = CompactionPolicy(window=12_000)
SIZE = 320


@pytest.mark.parametrize("form", FORMATS)
async def test_b024_a_context_over_the_threshold_is_compacted_within_one_turn(
    tmp_path: Path, form: Format
) -> None:
    async with open_desk(tmp_path, form, policy=WINDOW) as desk:
        for usage in (None, ReplyUsage(0, 0)):
            plays = Plays(turn=always(Text("an answer", usage=usage)))
            talk = await filled(desk, 60, size=SIZE)
            desk.play(plays)
            turns = 0
            while len(await sessions_of(desk, talk)) == 1:
                text = "tell me more. ".ljust(3_000, "x")
                assert (await desk.say(talk, text, stream=turns % 2 == 1)).text == "an answer"
                turns += 1
                assert turns < 9
            assert max(request.input_tokens for request in plays.turns) < 1.3 * 9_000


async def test_b024_a_hundred_clients_that_come_and_go_leave_no_thread(tmp_path: Path) -> None:
    with FakeProvider(count_user_texts) as provider:
        async with running(settings_for(tmp_path, provider=provider)) as server:
            await server.say("hello")
            path = "/api/conversations/talk/events"

            async def come_and_go() -> None:
                async with server.http.stream("GET", path) as events:
                    assert events.status_code == 200

            await come_and_go()
            before = threading.active_count()
            for _ in range(100):
                await come_and_go()
            assert threading.active_count() <= before + 2


async def test_b025_the_count_of_the_provider_wins_over_an_estimate(tmp_path: Path) -> None:
    """The estimate is 11,300 tokens, the threshold 10,000, and the provider counted 5,800."""
    plays = Plays(turn=always(Text("an answer", usage=ReplyUsage(5_800, 10))))
    async with open_desk(tmp_path, "chat", policy=CompactionPolicy(window=13_334)) as desk:
        talk = await filled(desk, 2, size=10)
        desk.play(plays)
        for text in ("read this: ".ljust(33_000, "x"), "and now?", "and now?"):
            assert (await desk.say(talk, text)).text == "an answer"
        assert await sessions_of(desk, talk) == ["start"]
        plays.turn = always(Text("an answer", usage=ReplyUsage(10_100, 10)))
        for _ in range(2):
            await desk.say(talk, "and now?")
        assert await sessions_of(desk, talk) == ["start", "compression"]


async def test_b026_instructions_that_leave_no_room_are_reported_at_the_start(
    tmp_path: Path,
) -> None:
    (tmp_path / "SOUL.md").write_text("You know everything about rivers. " * 400)
    flags = {"model.name": "offline", "model.context_window": "4000"}
    settings = load_settings(home=tmp_path, flags=flags, environ={})
    async with await open_store(f"sqlite:///{tmp_path}/clew.db", home=tmp_path) as store:
        with pytest.raises(SettingsError, match=r"4,000.*4,5\d\d"):
            build_services(settings, store)


@pytest.mark.parametrize("window", [None, 100, 40_000], ids=["unknown", "tiny", "plenty"])
async def test_b026_a_first_message_is_answered_or_clearly_refused(
    tmp_path: Path, window: int | None
) -> None:
    plays = Plays()
    agent = Agent(instructions="You know everything about rivers. " * 100)
    async with open_desk(
        tmp_path, "chat", policy=CompactionPolicy(window=window), agent=agent
    ) as desk:
        desk.play(plays)
        assert (await desk.say("new", "hi")).text == "an answer"
        desk.play(with_context_window(500, plays))
        told = await desk.say("other", "hi")
        assert told.code == "context_length_exceeded"
        assert "context window" in told.text
        assert len(told.requests) <= 2
        assert plays.summaries == []


async def test_b028_with_compaction_off_an_overflow_is_reported_and_a_larger_model_continues(
    tmp_path: Path,
) -> None:
    plays = Plays()
    async with open_desk(tmp_path, "chat", policy=CompactionPolicy(enabled=False)) as desk:
        talk = await filled(desk, 60, size=SIZE)
        desk.play(with_context_window(2_000, plays))
        told = await desk.say(talk, "and now?")
        assert told.code == "context_length_exceeded"
        assert "/compact" in told.text
        assert plays.summaries == []
        desk.play(with_context_window(20_000, plays))
        assert (await desk.say(talk, "and now?")).text == "an answer"
        assert await sessions_of(desk, talk) == ["start"]


async def test_b029_the_window_of_the_model_is_not_the_summarisers(tmp_path: Path) -> None:
    plays = Plays()
    async with open_desk(
        tmp_path, "chat", "chat", policy=CompactionPolicy(window=4_000), apart=True
    ) as desk:
        talk = await filled(desk, 60, size=SIZE)
        desk.play(plays, plays)
        assert (await desk.say(talk, "and now?")).text == "an answer"
        assert len(plays.summaries) == 1, "it reads everything at once"
        assert await sessions_of(desk, talk) == ["start", "compression"]


@pytest.mark.parametrize("known", [True, False], ids=["known-window", "unknown-window"])
async def test_b030_a_result_larger_than_the_window_is_shortened(
    tmp_path: Path, known: bool
) -> None:
    def find(what: str) -> str:
        """A search that finds too much."""
        return f"{what} was found in row 1. " + "and in another row. " * 2_500 + "The end."

    def turn(request: ProviderRequest) -> Reply:
        return (
            Text("found")
            if request.new_results
            else Calls([ScriptedCall("find", {"what": "the key"})])
        )

    plays = Plays(turn=turn)
    policy = CompactionPolicy(window=8_000) if known else None
    async with open_desk(tmp_path, "chat", policy=policy, agent=Agent(tools=[find])) as desk:
        talk = await filled(desk, 10, size=SIZE)
        desk.play(with_context_window(8_000, plays))
        told = await desk.say(talk, "find the key")
        assert told.text == "found"
        assert plays.turns[-1].input_tokens < 8_000
        assert "the key was found in row 1." in sent(plays.turns[-1])
        assert "The end." in sent(plays.turns[-1])
        (result,) = [entry for entry in await log_of(desk, talk) if entry.answers]
        assert len(result.text) > 50_000, "the log has it whole"
        assert (await desk.say(talk, "thank you")).text == "found"
        assert await desk.check() == []


async def test_b030_a_context_that_cannot_fit_is_reported(tmp_path: Path) -> None:
    async with open_desk(tmp_path, "chat") as desk:
        talk = await filled(desk, 4, size=SIZE)
        plays = Plays()
        desk.play(lambda r: plays(r) if r.last_user_text[:3] == "You" else Fail("context_overflow"))
        told = await desk.say(talk, "read this: ".ljust(30_000, "x"))
        assert told.code == "context_length_exceeded"
        assert len(plays.summaries) <= 2
