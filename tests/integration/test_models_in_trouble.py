"""Models that stand in, contexts that are too long, what the client sees, and what it cost."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import TYPE_CHECKING

import pytest
from pydantic_ai import Agent
from structlog.testing import capture_logs

from clew.core.events import (
    ConversationStateChanged,
    Delta,
    DeltaKind,
    EntryAppended,
    InputCompleted,
    Retracted,
    TurnFinished,
    TurnStarted,
)
from clew.core.ids import TurnId
from clew.core.route import local_route
from clew.engine.event_bus import STORE_CHANGED
from clew.testing import (
    Calls,
    CutStream,
    EarlyEnd,
    EmptyChoices,
    EmptyText,
    Endless,
    Fail,
    ReplyUsage,
    ScriptedCall,
    Text,
    UnknownTool,
    reply_in_sequence,
    with_context_window,
)
from tests.failing.desk import FORMATS, always, open_desk, screens
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

    from structlog.typing import EventDict

    from clew.core.events import ConversationEvent
    from clew.testing import ProviderRequest, Reply, Script
    from tests.failing.desk import Desk, Format

FAILING = always(Fail("overloaded"))
GOOD = always(Text("the stand-in answers"))
SUMMARY = f"""## Intent
The person talks about rivers, and wants each message to be answered.

## Done
{"Every message so far was read and answered. " * 8}"""


def summarising(script: Script) -> Script:
    """Write summaries; all else as ``script`` says."""

    def scripted(request: ProviderRequest) -> Reply:
        if "You keep the memory" in request.last_user_text:
            return Text(SUMMARY)
        return script(request)

    return scripted


def look(at: str) -> str:
    """A tool."""
    return f"seen: {at} " + "and much more. " * 150


@pytest.fixture(autouse=True)
def logs() -> Iterator[list[EventDict]]:
    with capture_logs() as found:
        yield found  # pyright: ignore[reportReturnType]  (declared as any mappings)


async def talk_at_length(desk: Desk, turns: int = 4) -> str:
    """A conversation of some 1,000 tokens for each turn."""
    talk = await desk.begin()
    for turn in range(turns):
        await desk.say(talk, f"river {turn}: " + "it flows and flows. " * 150)
    return talk


async def sessions(desk: Desk, talk: str) -> int:
    return len((await desk.engine.get_view(desk.ids[talk])).sessions)


# Stand-ins


async def test_b177_a_stand_in_answers_and_the_first_is_asked_again_after_the_cool_down(
    tmp_path: Path,
) -> None:
    now = [0.0]
    async with open_desk(tmp_path, "chat", "messages", monotonic=lambda: now[0]) as desk:
        talk = await desk.begin()
        desk.play(FAILING, GOOD)
        told = [await desk.say(talk, f"turn {turn}", stream=turn == 1) for turn in range(5)]
        assert {each.text for each in told} == {"the stand-in answers"}
        assert [each.asked for each in told] == [[4, 1]] * 3 + [[0, 1]] * 2
        assert [len(each.notices) for each in told] == [1, 0, 0, 0, 0], "told once"
        assert "overloaded" in told[0].notices[0]
        now[0] += 60
        again = await desk.say(talk, "still?")
        assert again.asked == [4, 1]
        assert (await desk.say(talk, "left alone at once")).asked == [0, 1]
        now[0] += 60
        desk.play(always(Text("back")), GOOD)
        assert (await desk.say(talk, "and now?")).text == "back"
        desk.play(FAILING, GOOD)
        assert len((await desk.say(talk, "the next outage")).notices) == 1
        assert await desk.check() == []


async def test_a_session_limit_goes_to_the_stand_in_at_once_until_it_is_over(
    tmp_path: Path,
) -> None:
    now = [0.0]
    async with open_desk(tmp_path, "chat", "chat", monotonic=lambda: now[0]) as desk:
        talk = await desk.begin()
        desk.play(always(Fail("rate_limit", retry_after=18_000)), GOOD)
        asked = [(await desk.say(talk, "again")).asked for _ in range(3)]
        assert asked == [[1, 1], [0, 1], [0, 1]]
        now[0] += 18_000
        assert (await desk.say(talk, "later")).asked == [1, 1]


async def test_without_a_fallback_a_long_limit_is_reported_at_once(tmp_path: Path) -> None:
    async with open_desk(tmp_path, "chat") as desk:
        talk = await desk.begin()
        desk.play(always(Fail("rate_limit", retry_after=300)))
        told = await desk.say(talk, "do it")
        assert told.asked == [1]
        assert "429" in told.text
        assert "asks to wait 5 min" in told.text


async def test_a_failure_of_the_fallback_is_reported(tmp_path: Path) -> None:
    async with open_desk(tmp_path, "chat", "responses") as desk:
        talk = await desk.begin()
        desk.play(FAILING, always(Fail("authentication")))
        told = await desk.say(talk, "do it", stream=True)
        assert told.asked == [4, 1]
        assert told.code == "authentication"
        assert told.text == told.notices[-1]
        desk.play(GOOD, GOOD)
        assert (await desk.say(talk, "and now?")).text == "the stand-in answers"


async def test_b179_the_stand_in_answers_what_the_first_met_with_nothing(
    tmp_path: Path, logs: list[EventDict]
) -> None:
    async with open_desk(tmp_path, "chat", "messages") as desk:
        talk = await desk.begin()
        desk.play(always(EmptyText("blank")), GOOD)
        told = await desk.say(talk, "do it", stream=True)
        assert told.asked == [2, 1]
        assert told.text == "the stand-in answers"
        first, second = told.by_provider[0]
        assert first.json != second.json, "the retry is a changed one"
    empty = [log for log in logs if log["event"] == "model_said_nothing"]
    assert len(empty) == 2
    for log in empty:
        assert log["response"].startswith("chatcmpl-")
        assert log["finish_reason"] == "stop"
        assert log["input_tokens"] > 0
        assert "output_tokens" in log


@pytest.mark.parametrize("stream", [False, True])
async def test_replies_without_a_choice_are_met_as_empty_ones(tmp_path: Path, stream: bool) -> None:
    async with open_desk(tmp_path, "chat", "chat") as desk:
        talk = await desk.begin()
        desk.play(always(EmptyChoices()), GOOD)
        told = await desk.say(talk, "do it", stream=stream)
        assert told.text == "the stand-in answers"
        first, second = told.by_provider[0]
        assert first.json != second.json, "the retry is a changed one"


async def test_a_stream_that_does_not_end_is_given_up(tmp_path: Path) -> None:
    async with open_desk(tmp_path, "chat", "chat") as desk:
        talk = await desk.begin()
        desk.hasten(2, silence=60)
        desk.play(always(Endless()), GOOD)
        told = await desk.say(talk, "do it", stream=True)
        assert told.text == "the stand-in answers"
        assert set(told.attempts) == {"the provider's reply did not come to an end"}
        assert told.shown[0].startswith("again"), "it was on the screen"
        assert told.screens == [("the stand-in answers",) * 2]


# Contexts that are too long


@pytest.mark.parametrize("form", FORMATS)
async def test_an_overflow_compacts_once_and_repeats_the_step(tmp_path: Path, form: Format) -> None:
    """The model's window is known to nobody but the provider."""
    async with open_desk(tmp_path, form) as desk:
        talk = await talk_at_length(desk)
        desk.play(summarising(with_context_window(2_500, always(Text("it fits")))))
        told = await desk.say(talk, "and the next one?", stream=True)
        assert told.text == "it fits"
        assert told.screens == [("it fits", "it fits")]
        assert len(told.attempts) == 1
        assert await sessions(desk, talk) == 2
        overflow, *summaries, repeated = told.requests
        assert (overflow.status, repeated.status) == (400, 200)
        assert {request.status for request in summaries} == {200}
        following = await desk.say(talk, "one more")
        assert following.asked == [1]
        assert await sessions(desk, talk) == 2
        assert await desk.check() == []


async def test_b006_an_overflow_in_a_tool_loop_repeats_the_same_step(tmp_path: Path) -> None:
    ran: list[str] = []

    def note(what: str) -> str:
        """A tool with an effect."""
        ran.append(what)
        return f"{what} noted. " + "It is a long story. " * 120

    async with open_desk(tmp_path, "chat", agent=Agent(tools=[note])) as desk:
        talk = await desk.begin()

        def script(request: ProviderRequest) -> Reply:
            if len(ran) < 6:
                return Calls([ScriptedCall("note", {"what": f"fact {len(ran)}"})])
            return Text("all is noted")

        desk.play(summarising(with_context_window(3_000, script)))
        told = await desk.say(talk, "note six facts", stream=True)
        assert told.text == "all is noted"
        assert ran == [f"fact {n}" for n in range(6)], "nothing was done twice"
        assert await sessions(desk, talk) == 2
        assert len(told.attempts) == 1
        assert await desk.check() == []


async def test_s1_8_an_overflow_that_cannot_be_helped_gives_advice(tmp_path: Path) -> None:
    async with open_desk(tmp_path, "messages") as desk:
        talk = await talk_at_length(desk)
        desk.play(always(Fail("context_overflow")))
        told = await desk.say(talk, "and the next one?")
        assert "context window" in told.text
        assert "/compact" in told.text
        assert told.code == "context_length_exceeded"
        assert len(told.requests) == 2, "once for the turn, once for a summary"
        assert await sessions(desk, talk) == 1
        desk.play(summarising(with_context_window(2_500, always(Text("it fits")))))
        told = await desk.say(talk, "short")
        assert await desk.check() == []


@pytest.mark.parametrize("stream", [False, True])
async def test_b181_empty_replies_to_long_requests_are_met_as_an_overflow(
    tmp_path: Path, stream: bool
) -> None:
    async with open_desk(tmp_path, "chat") as desk:
        talk = await talk_at_length(desk)

        def script(request: ProviderRequest) -> Reply:
            return EmptyText() if request.input_tokens > 2_500 else Text("it fits")

        desk.play(summarising(script))
        told = await desk.say(talk, "and the next one?", stream=stream)
        assert told.text == "it fits"
        assert await sessions(desk, talk) == 2
        statuses = [request.reply for request in told.requests]
        assert statuses[:2] == ["EmptyText", "EmptyText"]
        assert statuses[-1] == "Text"
        assert (await desk.say(talk, "one more")).asked == [1]
        assert await desk.check() == []


async def test_empty_replies_in_a_short_conversation_compact_nothing(tmp_path: Path) -> None:
    async with open_desk(tmp_path, "chat") as desk:
        talk = await desk.begin()
        desk.play(summarising(always(EmptyText())))
        told = await desk.say(talk, "do it")
        assert told.asked == [2]
        assert await sessions(desk, talk) == 1
        assert "(empty)" not in told.text
        assert told.text.strip()


@pytest.mark.parametrize("form", FORMATS)
async def test_b175_a_refused_tool_call_compacts_nothing_and_ends_clearly(
    tmp_path: Path, form: Format
) -> None:
    async with open_desk(tmp_path, form, "chat") as desk:
        talk = await talk_at_length(desk)
        desk.play(summarising(always(Fail("bad_tool_call"))), GOOD)
        told = await desk.say(talk, "do it")
        assert told.asked == [1, 0], "no other model would take what this one refused"
        assert told.code == "bad_request"
        assert told.text.startswith("That failed: 400 ")
        assert await sessions(desk, talk) == 1


# Tools


@pytest.mark.parametrize("form", FORMATS)
async def test_s1_6_a_turn_that_worked_names_the_tool_that_it_could_not_call(
    tmp_path: Path, form: Format
) -> None:
    async with open_desk(tmp_path, form, agent=Agent(tools=[look])) as desk:
        talk = await desk.begin()
        calls = [Calls([ScriptedCall("look", {"at": f"thing {n}"})]) for n in range(3)]
        desk.play(reply_in_sequence(calls, UnknownTool("nonexistent_tool")))
        told = await desk.say(talk, "look around", stream=True)
        assert "nonexistent_tool" in told.text
        assert "5 model calls" in told.text
        assert told.ended.turn is not None
        assert told.ended.turn.steps == 5
        assert told.asked == [5]
        assert any("Unknown tool" in request.body.decode() for request in told.requests), (
            "the model was told, and could have gone on"
        )


# Clients


async def test_a_client_sees_a_cut_stream_taken_back_and_the_text_once(tmp_path: Path) -> None:
    async with open_desk(tmp_path, "chat") as desk:
        talk = await desk.begin()
        text = Text("one two three four five six", chunks=6)
        desk.play(reply_in_sequence([CutStream(after=3, reply=text)], text))
        accepted = await desk.engine.submit("count", target=local_route(talk))
        screen, shown, took_back = "", 0, 0
        async with aclosing(desk.engine.stream_input(accepted)) as events:
            async for event in events:
                match event:
                    case Delta(text=piece):
                        screen, shown = screen + piece, shown + 1
                    case Retracted():
                        screen, took_back = "", took_back + 1
                    case EntryAppended():
                        pass
                    case InputCompleted():
                        assert event.text == "one two three four five six"
                    case _:
                        pass
        assert took_back == 1
        assert screen in ("", "one two three four five six")
        told = await desk.say(talk, "again", stream=True)
        assert told.screens == [("one two three four five six",) * 2]


async def until_closed(
    events: AsyncIterator[ConversationEvent], told: list[ConversationEvent]
) -> TurnFinished:
    while True:
        event = await anext(events)
        told.append(event)
        if isinstance(event, TurnFinished):
            return event


@pytest.mark.parametrize("woken", [False, True])
async def test_a_slow_client_gets_every_event_in_one_order(tmp_path: Path, woken: bool) -> None:
    async with open_desk(tmp_path, "chat", agent=Agent(tools=[look])) as desk:
        talk = await desk.begin()
        conversation = desk.ids[talk]
        text = Text("one two three four five six", chunks=6)
        called = Calls([ScriptedCall("look", {"at": "it"})], text="I look.")
        desk.play(
            reply_in_sequence([CutStream(after=2), called, CutStream(after=3, reply=text), text])
        )
        said = await desk.engine.read_entries(conversation)
        told: list[ConversationEvent] = []
        async with aclosing(desk.engine.stream_events(conversation, after=said[-1].seq)) as events:
            first = asyncio.create_task(anext(events))
            await wait_until(
                lambda: desk.means.event_bus.has_live_subscriber(conversation),
                "a follower",
                pause=0,
            )
            if woken:
                desk.means.event_bus.publish(conversation, STORE_CHANGED)
            await desk.say(talk, "count")
            # It comes back only now, and reads what was told meanwhile.
            told.append(await first)
            desk.means.event_bus.publish(conversation, STORE_CHANGED)
            first_turn = await until_closed(events, told)
            await desk.say(talk, "again")
            last_turn = await until_closed(events, told)
        shown = screens(told)
        assert [stored for _, stored in shown] == ["I look.", text.text, "done"]
        assert all(pieces in ("", stored) for pieces, stored in shown), shown
        seqs = [event.entry.seq for event in told if isinstance(event, EntryAppended)]
        assert seqs == list(range(said[-1].seq + 1, said[-1].seq + 1 + len(seqs)))
        late = told[told.index(first_turn) :]
        pieces = [event for event in late if isinstance(event, (Delta, Retracted))]
        assert {event.turn for event in pieces} <= {last_turn.turn.id}


async def test_a_busy_client_gets_a_quick_turn_from_its_start_to_its_end(
    tmp_path: Path,
) -> None:
    async with open_desk(tmp_path, "chat") as desk:
        talk = await desk.begin()
        conversation = desk.ids[talk]
        said = await desk.engine.read_entries(conversation)
        events = desk.engine.stream_events(conversation, after=said[-1].seq, with_standing=True)
        async with aclosing(events):
            told = [await anext(events)]
            # It reads on only when the turn is over, and is told to look at the store first.
            desk.means.event_bus.publish(conversation, STORE_CHANGED)
            desk.play(always(Text("quick")))
            await desk.say(talk, "hello")
            await until_closed(events, told)
    stored = [event for event in told if not isinstance(event, Delta)]
    assert [type(event) for event in stored] == [
        ConversationStateChanged, EntryAppended, TurnStarted, EntryAppended, TurnFinished
    ]  # fmt: skip


async def test_pieces_that_their_entry_has_overtaken_are_not_told(tmp_path: Path) -> None:
    async with open_desk(tmp_path, "chat") as desk:
        talk = await desk.begin()
        conversation = desk.ids[talk]
        last = (await desk.engine.read_entries(conversation))[-1].seq
        late, next_one = (
            Delta(
                conversation=conversation,
                turn=TurnId("trn_running"),
                after=after,
                kind=DeltaKind.TEXT,
                text="piece",
            )
            for after in (last - 1, last)
        )
        async with aclosing(desk.engine.stream_events(conversation, after=last - 1)) as events:
            assert isinstance(await anext(events), EntryAppended)
            following = asyncio.create_task(anext(events))
            await asyncio.sleep(0)
            # The entry was read from the store before this process had told of its pieces.
            desk.means.event_bus.publish(conversation, late)
            desk.means.event_bus.publish(conversation, Retracted(
                conversation=conversation, turn=late.turn, after=last - 1, reason="again"
            ))  # fmt: skip
            desk.means.event_bus.publish(conversation, next_one)
            assert await following == next_one


# Costs


@pytest.mark.parametrize("form", FORMATS)
async def test_each_request_of_a_turn_is_counted(tmp_path: Path, form: Format) -> None:
    async with open_desk(tmp_path, form, agent=Agent(tools=[look])) as desk:
        talk = await desk.begin()
        before = (await desk.engine.get_view(desk.ids[talk])).usage
        desk.play(
            reply_in_sequence(
                [
                    Calls(
                        [ScriptedCall("look", {"at": "it"})], usage=ReplyUsage(100, 7, cached=40)
                    ),
                    Fail("server"),
                    Text("done", usage=ReplyUsage(200, 9, cached=90)),
                ]
            )
        )
        await desk.say(talk, "look", stream=form == "chat")
        after = (await desk.engine.get_view(desk.ids[talk])).usage
        assert after.input_tokens - before.input_tokens == 300
        assert after.cached_tokens - before.cached_tokens == 130
        assert after.output_tokens - before.output_tokens == 16
        assert after.cost_micros is None, "nobody knows the price of a fake model"


async def test_replies_that_came_to_nothing_are_counted_too(tmp_path: Path) -> None:
    async with open_desk(tmp_path, "messages") as desk:
        talk = await desk.begin()
        before = (await desk.engine.get_view(desk.ids[talk])).usage
        early = EarlyEnd(reply=Text("one two", usage=ReplyUsage(100, 7)))
        empty = Text("", usage=ReplyUsage(30, 1))
        desk.play(reply_in_sequence([early, empty, empty]))
        told = await desk.say(talk, "do it")
        assert told.code == "empty_reply"
        after = (await desk.engine.get_view(desk.ids[talk])).usage
        assert after.input_tokens - before.input_tokens == 160
        assert after.output_tokens - before.output_tokens == 9


async def test_a_summary_is_counted(tmp_path: Path) -> None:
    async with open_desk(tmp_path, "chat") as desk:
        talk = await talk_at_length(desk)
        before = (await desk.engine.get_view(desk.ids[talk])).usage
        desk.play(
            summarising(
                with_context_window(2_500, always(Text("it fits", usage=ReplyUsage(10, 1))))
            )
        )
        told = await desk.say(talk, "and the next one?")
        after = (await desk.engine.get_view(desk.ids[talk])).usage
        summaries = len(told.requests) - 2
        assert summaries >= 1
        assert after.input_tokens - before.input_tokens > 10 + 500 * summaries


async def test_the_price_is_known_where_the_library_knows_it(tmp_path: Path) -> None:
    async with open_desk(tmp_path, "chat", model_name="gpt-4o-mini") as desk:
        talk = await desk.begin()
        before = (await desk.engine.get_view(desk.ids[talk])).usage.cost_micros
        assert before is not None
        desk.play(always(Text("done", usage=ReplyUsage(1_000_000, 1_000_000))))
        await desk.say(talk, "do it")
        after = (await desk.engine.get_view(desk.ids[talk])).usage.cost_micros
        assert after is not None
        assert after - before >= 100_000
