"""Cases of compactions that lost what was said."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from pydantic_ai import Agent

from clew.agent.compactor import SUMMARY_HEADINGS
from clew.commands.runner import CommandRunner
from clew.core.scope import LOCAL
from clew.engine.compaction import CompactionPolicy
from clew.testing import Calls, CutStream, Fail, ScriptedCall, Text
from tests.contract.lifecycle.doubles import SUMMARY
from tests.contract.lifecycle.filling import fill
from tests.failing.compacting import Plays, filled, log_of, sent, sessions_of
from tests.failing.desk import always, open_desk
from tests.line.clock import ShiftedClock

if TYPE_CHECKING:
    from pathlib import Path

    from clew.testing import ProviderRequest, Reply

#: A context of 120 such messages is over the threshold of this window, and still fits it.
WINDOW = CompactionPolicy(window=12_000)
SIZE = 320


async def test_b001_a_summary_that_fails_costs_nothing_of_the_history(tmp_path: Path) -> None:
    clock, plays = ShiftedClock(), Plays(summary=lambda _: CutStream(after=2))
    async with open_desk(tmp_path, "chat", policy=WINDOW, clock=clock) as desk:
        talk = await filled(desk, 120, size=SIZE)
        desk.play(plays)
        before = await log_of(desk, talk)
        told = await desk.say(talk, "and now?")
        assert told.text == "an answer"
        (notice,) = told.notices
        assert "could not be compacted" in notice
        assert len(plays.turns[-1].messages) == len(before) + 1, "the whole history was sent"
        again = await desk.say(talk, "and now?")
        assert (again.text, again.notices) == ("an answer", [])
        assert len(plays.summaries) == 1, "not before the cool-down"
        assert await sessions_of(desk, talk) == ["start"]
        plays.summary = lambda _: Text(SUMMARY)
        plays.summaries.clear()
        clock.advance(seconds=301)
        for _ in range(2):
            assert (await desk.say(talk, "and now?")).text == "an answer"
        assert await sessions_of(desk, talk) == ["start", "compression"]
        assert "120: " not in sent(plays.summaries[0])
        assert [entry.hash for entry in (await log_of(desk, talk))[: len(before)]] == [
            entry.hash for entry in before
        ]
        assert await desk.check() == []


@pytest.mark.parametrize("room", ["cleared", "summarised"])
async def test_b003_b007_a_call_runs_once_and_its_result_is_in_the_next_request(
    tmp_path: Path, room: str
) -> None:
    ran: list[int] = []

    def book(seats: int) -> str:
        """A tool with an effect."""
        ran.append(seats)
        return f"booked {seats} seats under number KX-{len(ran)}. " + "Terms and conditions. " * 500

    def turn(request: ProviderRequest) -> Reply:
        if len(ran) < (4 if room == "cleared" else 1):
            return Calls([ScriptedCall("book", {"seats": len(ran) + 2})])
        return Text("all is booked")

    plays = Plays(turn=turn)
    window = CompactionPolicy(window=16_000 if room == "cleared" else 12_000)
    async with open_desk(tmp_path, "chat", policy=window, agent=Agent(tools=[book])) as desk:
        talk = await filled(desk, 2 if room == "cleared" else 75, size=SIZE)
        desk.play(plays)
        before = await log_of(desk, talk)
        told = await desk.say(talk, "book them")
        assert told.text == "all is booked"
        assert ran == list(range(2, 2 + len(ran)))
        assert await sessions_of(desk, talk) == ["start", "compression"]
        assert bool(plays.summaries) == (room == "summarised")
        assert f"number KX-{len(ran)}" in sent(plays.turns[-1])
        log = await log_of(desk, talk)
        assert log[: len(before)] == before
        assert sum("Terms and conditions" in entry.text for entry in log) == len(ran)
        assert await desk.check() == []


#: As ``WINDOW``, and everything old is read at once.
AT_ONCE = CompactionPolicy(window=24_000, threshold=0.375, keep_recent=0.1)
NOTHING_SAID = ("", "   ", "Done.", "I cannot help with that request.", "## Intent\nGo on.")


async def test_b005_a_summary_that_says_nothing_is_refused_and_the_person_told(
    tmp_path: Path,
) -> None:
    async with open_desk(tmp_path, "chat", policy=AT_ONCE) as desk:
        for summary in NOTHING_SAID:
            talk = await filled(desk, 120, size=SIZE, about=f"about {summary!r}")
            desk.play(Plays(summary=always(Text(summary))))
            told = await desk.say(talk, "and now?")
            assert (summary, told.text, len(told.notices)) == (summary, "an answer", 1)
            by_hand = await CommandRunner(desk.engine).run_command(
                "/compress", target=desk.ids[talk], viewer=LOCAL
            )
            assert by_hand.text.startswith("Nothing was compacted: ")
            assert await sessions_of(desk, talk) == ["start"]


FACTS = (
    "order 7731-QX", "~/plans/rome.md", "Hotel Aurelia", "+39 06 5550 117", "gate B22",
    "the night train failed because it is sold out",
    "the ferry failed because of the strike",
    "paying by card failed because of error 51",
)  # fmt: skip


async def test_b005_b009_b010_the_summariser_reads_everything_that_it_is_to_keep(
    tmp_path: Path,
) -> None:
    """
    The scripted summariser knows only its request, and what it keeps is in the next one.

    What was planned and not done reaches it as such, and has a heading of its own.
    """

    def summarise(request: ProviderRequest) -> Reply:
        asked = request.last_user_text
        assert all(heading in asked for heading in SUMMARY_HEADINGS)
        known = [fact for fact in FACTS if fact in asked]
        plan = "- edit budget.xls" if "I will edit budget.xls" in asked else ""
        return Text(
            f"## Intent\nA trip to Rome, within the budget.\n\n## Artifacts\n{'; '.join(known)}\n\n"
            f"## Planned\n{plan}\n" + "Nothing else was agreed on so far. " * 4
        )

    plays = Plays(summary=summarise)
    async with open_desk(tmp_path, "chat", policy=CompactionPolicy(window=6_000)) as desk:
        talk = await desk.begin()
        for fact in FACTS:
            desk.play(lambda _, fact=fact: Text(f"Noted: {fact}. " + "It may be of use. " * 60))
            await desk.say(talk, f"remember: {fact}")
            desk.play(lambda _: Text("I will edit budget.xls."))
        await desk.say(talk, "the budget is to be halved")
        await desk.store.write(fill, desk.ids[talk], 20, size=500)
        desk.play(plays)
        told = await desk.say(talk, "where do we stand?")
        assert told.text == "an answer"
        assert "compression" in await sessions_of(desk, talk)
        request = sent(plays.turns[-1])
        assert [fact for fact in FACTS if json.dumps(fact)[1:-1] not in request] == []
        assert "## Planned" in request
        assert "edit budget.xls" in request
        assert plays.turns[-1].last_user_text == "where do we stand?"


async def test_b011_without_a_summariser_an_old_conversation_is_answered_in_full(
    tmp_path: Path,
) -> None:
    async with open_desk(tmp_path, "chat", "chat", policy=WINDOW, apart=True) as desk:
        talk = await filled(desk, 120, size=SIZE)
        plays = Plays(summary=lambda _: Fail("server"))
        desk.play(plays, lambda _: Fail("unknown_model"))
        told = await desk.say(talk, "and now?")
        assert told.text == "an answer"
        assert len(told.notices) == 1
        assert len(plays.turns[-1].messages) > 120
        assert await sessions_of(desk, talk) == ["start"]


async def test_b014_looking_at_a_long_conversation_compacts_nothing(
    tmp_path: Path,
) -> None:
    plays = Plays()
    async with open_desk(tmp_path, "chat", policy=WINDOW) as desk:
        talk = await filled(desk, 150, size=SIZE)
        desk.play(plays)
        conversation = desk.ids[talk]
        before = await log_of(desk, talk)
        await desk.engine.list_conversations()
        view = await desk.engine.get_view(conversation)
        await desk.engine.inspect_context(conversation)
        await desk.engine.sessions.preview_compaction(conversation)
        for text in ("/status", "/sessions", "/usage", f"/resume {conversation}"):
            await CommandRunner(desk.engine).run_command(
                text, target=desk.engine.parse_target("elsewhere"), viewer=view.conversation.scope
            )
        await desk.engine.wait_until_idle()
        assert (plays.turns, plays.summaries) == ([], [])
        assert await log_of(desk, talk) == before
        assert await sessions_of(desk, talk) == ["start"]
        assert (await desk.say(talk, "now I write")).text == "an answer"
        assert await sessions_of(desk, talk) == ["start", "compression"]
