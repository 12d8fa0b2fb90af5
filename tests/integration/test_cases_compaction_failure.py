"""Cases of compactions that failed, and what became of the turn."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from pydantic_ai import Agent

from clew.agent.compactor import HarnessCompactor
from clew.engine.compaction import CompactionPolicy
from clew.testing import (
    Calls,
    EmptyText,
    Fail,
    Hang,
    LengthStop,
    MalformedArguments,
    Reply,
    ScriptedCall,
    Text,
    with_context_window,
)
from tests.contract.lifecycle.doubles import SUMMARY
from tests.failing.compacting import Plays, filled, log_of, sent, sessions_of
from tests.failing.desk import always, open_desk
from tests.line.clock import ShiftedClock

if TYPE_CHECKING:
    from pathlib import Path

    from clew.testing import ProviderRequest
    from tests.failing.desk import Format


#: A context of 120 such messages is over the threshold of this window, and still fits it.
WINDOW = CompactionPolicy(window=12_000)
SIZE = 320


@pytest.mark.parametrize("known", [True, False], ids=["known-window", "unknown-window"])
async def test_b032_a_context_larger_than_the_window_is_summarised_in_parts_that_fit(
    tmp_path: Path, known: bool
) -> None:
    """As after a change to a smaller model: the context is 120 % of the true window."""
    plays = Plays()
    policy = CompactionPolicy(window=4_000) if known else None
    async with open_desk(tmp_path, "chat", policy=policy) as desk:
        talk = await filled(desk, 60, size=SIZE)
        desk.play(with_context_window(4_000, plays))
        told = await desk.say(talk, "and now?")
        assert told.text == "an answer"
        assert len(plays.summaries) > 1
        refused = [request for request in told.requests if request.status == 400]
        assert len(refused) == (0 if known else 1), "only the turn's own request did not fit"
        assert await sessions_of(desk, talk) == ["start", "compression"]
        assert await desk.check() == []


async def test_b032_a_summariser_that_cannot_read_so_much_at_once_is_given_less(
    tmp_path: Path,
) -> None:
    plays = Plays()
    async with open_desk(tmp_path, "chat", "chat", policy=WINDOW, apart=True) as desk:
        talk = await filled(desk, 120, size=SIZE)
        desk.play(plays, with_context_window(3_000, plays))
        told = await desk.say(talk, "and now?")
        assert (told.text, told.notices) == ("an answer", [])
        assert await sessions_of(desk, talk) == ["start", "compression"]


async def test_b033_a_turn_that_cannot_be_compacted_ends_as_failed_and_says_so(
    tmp_path: Path,
) -> None:
    plays = Plays(summary=always(Fail("server")))
    async with open_desk(tmp_path, "chat") as desk:
        talk = await filled(desk, 60, size=SIZE)
        before = await log_of(desk, talk)
        desk.play(lambda r: plays(r) if r.last_user_text[:3] == "You" else Fail("context_overflow"))
        told = await desk.say(talk, "and now?")
        assert told.outcome == "failed"
        assert told.code == "context_length_exceeded"
        assert "context window" in told.text
        assert any("could not be compacted" in notice for notice in told.notices)
        assert (await log_of(desk, talk))[: len(before)] == before
        desk.play(always(Text("an answer")))
        assert (await desk.say(talk, "and now?")).text == "an answer"


async def test_b034_leaving_does_not_wait_for_a_summary(tmp_path: Path) -> None:
    plays = Plays(summary=always(Hang()))
    async with open_desk(tmp_path, "chat", policy=WINDOW) as desk:
        talk = await filled(desk, 120, size=SIZE)
        desk.play(plays)
        accepted = await desk.submit(talk, "and now?")
        await desk.until(lambda: plays.summaries)
        leaving = asyncio.get_running_loop().time()
    assert asyncio.get_running_loop().time() - leaving < 20, "it may take 90 seconds"
    plays.summary = always(Text(SUMMARY))
    async with open_desk(tmp_path, "chat", policy=WINDOW) as desk:
        desk.play(plays)
        desk.ids[talk] = accepted.conversation_id
        assert (await desk.end(accepted)).text == "an answer"
        assert await sessions_of(desk, talk) == ["start", "compression"]


async def test_b036_a_turn_continues_where_compacting_would_help_nothing(tmp_path: Path) -> None:
    ran: list[int] = []

    def note(number: int) -> str:
        """A small tool."""
        ran.append(number)
        return "noted"

    plays = Plays(
        turn=lambda _: (
            Calls([ScriptedCall("note", {"number": len(ran)})]) if len(ran) < 4 else Text("done")
        )
    )
    policy, agent = CompactionPolicy(window=6_000), Agent(tools=[note])
    async with open_desk(tmp_path, "chat", policy=policy, agent=agent) as desk:
        talk = await desk.begin()
        desk.play(plays)
        told = await desk.say(talk, "read this: ".ljust(20_000, "x"))
        assert (told.text, told.notices) == ("done", [])
        assert (ran, plays.summaries) == ([0, 1, 2, 3], [])


#: As ``WINDOW``, and everything old is read at once.
AT_ONCE = CompactionPolicy(window=24_000, threshold=0.375, keep_recent=0.1)
WRONG_KINDS: tuple[Reply, ...] = (
    Calls([ScriptedCall("save", {"text": SUMMARY})]),
    MalformedArguments("save"),
    Text('{"summary": ["the person talks", {"about": "rivers"}]}'),
    Text('{"summary": "the person'),
    LengthStop(),
    EmptyText("list"),
)


@pytest.mark.unequal("a summary that was asked for again follows a reply that is stored nowhere")
async def test_b037_a_summary_of_the_wrong_kind_is_no_error_of_every_turn(tmp_path: Path) -> None:
    clock = ShiftedClock()
    async with open_desk(tmp_path, "chat", policy=AT_ONCE, clock=clock) as desk:
        for summary in WRONG_KINDS:
            plays = Plays(summary=always(summary))
            talk = await filled(desk, 120, size=SIZE, about=f"about {summary!r}")
            desk.play(plays)
            told = [await desk.say(talk, "and now?") for _ in range(3)]
            assert [each.text for each in told] == ["an answer"] * 3
            assert [len(each.notices) for each in told] == [1, 0, 0]
            assert len(plays.summaries) <= 2
            clock.advance(seconds=301)
            plays.summary = always(Text(SUMMARY))
            assert (await desk.say(talk, "and now?")).text == "an answer"
            assert await sessions_of(desk, talk) == ["start", "compression"]


@pytest.mark.parametrize(
    "broken",
    [Fail("unknown_model"), Hang(), Text("no")],
    ids=["unknown", "hangs", "refused"],
)
async def test_the_main_model_summarises_at_once_if_the_summariser_fails(
    tmp_path: Path, broken: Reply
) -> None:
    hasty = HarnessCompactor(deadline=timedelta(seconds=3))
    async with open_desk(
        tmp_path, "chat", "chat", policy=WINDOW, apart=True, compactor=hasty
    ) as desk:
        talk = await filled(desk, 120, size=SIZE)
        plays = Plays()
        desk.play(plays, always(broken))
        told = await desk.say(talk, "and now?")
        assert (told.text, told.notices) == ("an answer", [])
        assert plays.summaries
        assert await sessions_of(desk, talk) == ["start", "compression"]
        # The next one is not put off: nothing failed for the person.
        assert await desk.check() == []


@pytest.mark.parametrize("form", ["chat", "responses", "messages"])
async def test_a_summary_that_was_cut_is_asked_for_once_more_in_fewer_words(
    tmp_path: Path, form: Format
) -> None:
    def summary(request: ProviderRequest) -> Reply:
        brief = "250 words at most" in request.last_user_text
        return Text(SUMMARY) if brief else LengthStop("## Intent\n" + "The person wants " * 40)

    plays = Plays(summary=summary)
    async with open_desk(tmp_path, form, policy=WINDOW) as desk:
        talk = await filled(desk, 120, size=SIZE)
        desk.play(plays)
        told = await desk.say(talk, "and now?")
        assert (told.text, told.notices) == ("an answer", [])
        brief = ["250 words at most" in sent(request) for request in plays.summaries]
        assert brief == [False, True] * (len(brief) // 2)
        assert "The person wants The person wants" not in sent(plays.turns[-1])


async def test_a_summary_that_is_cut_again_is_refused(tmp_path: Path) -> None:
    cut = LengthStop("## Intent\n" + "The person wants " * 40)
    plays = Plays(summary=always(cut))
    async with open_desk(tmp_path, "chat", policy=WINDOW) as desk:
        talk = await filled(desk, 120, size=SIZE)
        desk.play(plays)
        told = await desk.say(talk, "and now?")
        assert told.text == "an answer"
        [notice] = told.notices
        assert "cut off by the model's limit of output" in notice
        assert len(plays.summaries) == 2
        assert await sessions_of(desk, talk) == ["start"]
