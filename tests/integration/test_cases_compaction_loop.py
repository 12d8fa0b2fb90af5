"""Cases of compactions that came again and again."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from pydantic_ai import Agent

from clew.agent.compactor import HarnessCompactor
from clew.agent.tool_results import MAX_RESULT_CHARS
from clew.core.compaction import MAX_PER_TURN
from clew.engine.compaction import CompactionPolicy
from clew.testing import Calls, Hang, ScriptedCall, Text
from tests.failing.compacting import Plays, filled, sent, sessions_of
from tests.failing.desk import open_desk
from tests.line.clock import ShiftedClock

if TYPE_CHECKING:
    from pathlib import Path

    from clew.testing import ProviderRequest, Reply

#: A context of 120 such messages is over the threshold of this window, and still fits it.
WINDOW = CompactionPolicy(window=12_000)
SIZE = 320
#: Longer than the pause after a failure.
LATER = 301


async def test_b016_summaries_as_long_as_what_they_replace_are_given_up_after_two(
    tmp_path: Path,
) -> None:
    clock = ShiftedClock()
    plays = Plays(summary=lambda request: Text("## Intent\n" + request.last_user_text))
    async with open_desk(tmp_path, "chat", policy=WINDOW, clock=clock) as desk:
        talk = await filled(desk, 120, size=SIZE)
        desk.play(plays)
        notices: list[str] = []
        tried: list[int] = []
        for _ in range(5):
            plays.summaries.clear()
            told = await desk.say(talk, "and now?")
            assert told.text == "an answer"
            notices += told.notices
            tried.append(len(plays.summaries))
            clock.advance(seconds=LATER)
        assert [bool(count) for count in tried] == [True, True, False, False, False]
        assert len(notices) == 1
    # The stored state outlives the process; a compaction that a person requests runs.
    async with open_desk(tmp_path, "chat", policy=WINDOW, clock=clock) as desk:
        plays = Plays()
        desk.play(plays)
        conversation = await desk.engine.resolve_name(talk)
        desk.ids[talk] = conversation
        await desk.say(talk, "and now?")
        assert plays.summaries == []
        await desk.end(await desk.engine.sessions.queue_compaction(conversation))
        assert await sessions_of(desk, talk) == ["start", "compression"]


async def test_b017_after_a_compaction_the_new_size_counts(tmp_path: Path) -> None:
    plays = Plays()
    async with open_desk(tmp_path, "chat", policy=WINDOW) as desk:
        talk = await filled(desk, 120, size=SIZE)
        desk.play(plays)
        for _ in range(5):
            assert (await desk.say(talk, "and now?")).text == "an answer"
        first = len(plays.summaries)
    async with open_desk(tmp_path, "chat", policy=WINDOW) as desk:
        desk.play(plays)
        desk.ids[talk] = await desk.engine.resolve_name(talk)
        for _ in range(3):
            assert (await desk.say(talk, "and now?")).text == "an answer"
        assert len(plays.summaries) == first
        assert await sessions_of(desk, talk) == ["start", "compression"]


def look(page: int) -> str:
    """A tool whose every result is half of the window."""
    return f"page {page}: " + "much is written here. " * 900


async def test_b017_compactions_of_one_message_are_counted_over_a_restart(tmp_path: Path) -> None:
    def turn(request: ProviderRequest) -> Reply:
        pages = [result for message in request.messages for result in message.results]
        if len(pages) < 5:
            return Calls([ScriptedCall("look", {"page": len(pages) + 1})])
        return Text("all is read") if restarted else Hang()

    restarted = False
    plays = Plays(turn=turn)
    async with open_desk(tmp_path, "chat", policy=WINDOW, agent=Agent(tools=[look])) as desk:
        talk = await desk.begin()
        desk.play(plays)
        accepted = await desk.submit(talk, "read five pages")
        await desk.until(lambda: plays.turns and "page 5: " in sent(plays.turns[-1]))
        assert (await sessions_of(desk, talk)).count("compression") == MAX_PER_TURN
    restarted = True
    async with open_desk(tmp_path, "chat", policy=WINDOW, agent=Agent(tools=[look])) as desk:
        desk.play(plays)
        desk.ids[talk] = accepted.conversation_id
        ended = await desk.end(accepted)
        assert ended.text == "all is read"
        assert (await sessions_of(desk, talk)).count("compression") == MAX_PER_TURN


def glance(page: int) -> str:
    """A tool whose results are of some length."""
    return f"page {page}: " + "this stands there. " * 320


async def test_b019_b034_a_summariser_that_hangs_is_given_up_and_the_turn_answered(
    tmp_path: Path,
) -> None:
    clock, plays = ShiftedClock(), Plays(summary=lambda _: Hang())
    reading = Plays(
        turn=lambda r: (
            Text("read") if r.new_results else Calls([ScriptedCall("glance", {"page": 1})])
        )
    )
    agent = Agent(instructions="You know many rivers.", tools=[glance])
    hasty = HarnessCompactor(deadline=timedelta(seconds=0.2))
    async with open_desk(
        tmp_path, "chat", policy=WINDOW, clock=clock, agent=agent, compactor=hasty
    ) as desk:
        talk = await filled(desk, 70, size=SIZE)
        desk.play(reading)
        await desk.say(talk, "read a page")
        assert "this stands there" in sent(reading.turns[-1])
        desk.play(plays)
        told = await desk.say(talk, "and now? ".ljust(9_000, "x"))
        assert told.text == "an answer"
        assert len(told.notices) == 1
        # Results that can be produced again are removed without a model.
        assert "this stands there" not in sent(plays.turns[0])
        assert "1: xxx" in sent(plays.turns[0])
        tried = len(plays.summaries)
        for _ in range(2):
            assert (await desk.say(talk, "and now? ".ljust(3_000, "x"))).notices == []
        assert len(plays.summaries) == tried, "not before the cool-down"
        instructions = {request.system_text for request in (*reading.turns, *plays.turns)}
        assert instructions == {"You know many rivers."}
    clock.advance(seconds=LATER)
    async with open_desk(tmp_path, "chat", policy=WINDOW, clock=clock, agent=agent) as desk:
        plays = Plays()
        desk.play(plays)
        await desk.say(talk, "and now? ".ljust(3_000, "x"))
        assert any("this stands there" in sent(request) for request in plays.summaries)


async def test_b021_long_results_in_a_row_lead_to_two_compactions_at_most(tmp_path: Path) -> None:
    def read(part: int) -> str:
        """A tool with a lot to say."""
        return f"part {part}: ".ljust(150_000, "x")

    def turn(request: ProviderRequest) -> Reply:
        results = [result for message in request.messages for result in message.results]
        assert all(len(result.text) < MAX_RESULT_CHARS + 200 for result in results)
        return (
            Calls([ScriptedCall("read", {"part": len(results)})])
            if len(results) < 10
            else Text("read")
        )

    plays = Plays(turn=turn)
    policy = CompactionPolicy(window=272_000)
    async with open_desk(tmp_path, "chat", policy=policy, agent=Agent(tools=[read])) as desk:
        talk = await desk.begin()
        desk.play(plays)
        told = await desk.say(talk, "read it all")
        assert told.text == "read"
        assert (await sessions_of(desk, talk)).count("compression") <= MAX_PER_TURN


async def test_a_tool_that_fills_the_window_each_turn_costs_few_summaries(
    tmp_path: Path,
) -> None:
    """Each compaction makes room, and each next result takes it: nothing fails, so all goes on."""
    plays = Plays(
        turn=lambda r: Text("read") if r.new_results else Calls([ScriptedCall("look", {"page": 1})])
    )
    notices: list[str] = []
    async with open_desk(tmp_path, "chat", policy=WINDOW, agent=Agent(tools=[look])) as desk:
        talk = await desk.begin()
        desk.play(plays)
        for n in range(25):
            told = await desk.say(talk, f"read the page, time {n}: " + "go on. " * 100)
            assert told.text == "read"
            notices += told.notices
        assert len(plays.summaries) <= 4
        assert await desk.check() == []
    [notice] = notices
    assert "keep filling" in notice


async def test_b023_a_context_of_nothing_but_a_summary_is_left_alone(tmp_path: Path) -> None:
    long = "## Intent\n" + "The person talks about rivers, at length. " * 300
    plays = Plays(summary=lambda _: Text(long))
    policy = CompactionPolicy(window=5_000)
    async with open_desk(tmp_path, "chat", policy=policy) as desk:
        talk = await filled(desk, 20, size=2_000)
        desk.play(plays)
        for _ in range(6):
            told = await desk.say(talk, "and now?")
            assert (told.text, told.notices) == ("an answer", [])
        chunks = len(plays.summaries)
        assert await sessions_of(desk, talk) == ["start", "compression"]
        for _ in range(2):
            await desk.end(await desk.engine.sessions.queue_compaction(desk.ids[talk]))
        assert len(plays.summaries) == chunks
