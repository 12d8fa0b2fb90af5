"""Goals: the agent goes on by itself until the goal is reached, and people come first."""

from __future__ import annotations

import json
import threading
from typing import TYPE_CHECKING

import pytest

from clew.core.completion import MAX_HOPS
from clew.core.tool_facts import ToolFacts
from clew.features.goals.goals import GoalReason
from clew.plugin import TurnContext, get_turn_context
from clew.testing import Calls, Fail, ScriptedCall, Text
from tests.features.goal_world import GoalWorld, call_goal, open_goals, round_of
from tests.features.job_world import CHAT
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from clew.plugin import Registry
    from clew.testing import ProviderRequest, Reply
    from clew.testing.provider.capture import CapturedRequest

JUDGE = "openai-chat:judge"


def end_in(last: int) -> Callable[[ProviderRequest], Reply]:
    """The agent answers each round, and says in the last one that the goal is reached."""

    def answer(request: ProviderRequest) -> Reply:
        if request.messages[-1].results:
            return Text("that was all")
        n = round_of(request)
        return call_goal() if n == last else Text(f"answer {n}")

    return answer


def body_of(request: CapturedRequest) -> str:
    return json.dumps(request.json)


def is_judge(request: ProviderRequest) -> bool:
    return request.model == "judge"


async def test_the_agent_goes_on_by_itself_until_it_says_that_the_goal_is_reached(
    tmp_path: Path, store_url: str
) -> None:
    contexts: list[TurnContext] = []
    last = MAX_HOPS + 2

    def look() -> str:
        """Look at the turn."""
        found = get_turn_context()
        assert found is not None
        contexts.append(found)
        return "seen"

    def add_look(registry: Registry) -> None:
        registry.add_tool(look, effect="pure")

    def answer(request: ProviderRequest) -> Reply:
        n, results = round_of(request), request.messages[-1].results
        if n and not results:
            return Calls((ScriptedCall("look"),))
        if n == last and results[0].text == "seen":
            return call_goal()
        return Text("that was all" if n == last else f"answer {n}")

    async with open_goals(tmp_path, store_url, answer, add_look) as world:
        home = await world.say("hello")
        assert (await world.command("/goal")).startswith("There is no goal here")
        assert "at most 20 rounds and 300,000 tokens" in await world.command("/goal water it all")
        goal = await world.settle("done")
        assert (goal.rounds, goal.remark) == (last, "all is done")
        assert await world.states() == ["done"] * last
        # Each round begins anew: only what a round begins counts its hops from there.
        assert [(one.hops, one.attended) for one in contexts] == [(1, False)] * last
        told = await world.delivered()
        answers = [f"answer {n}" for n in range(last)]
        assert told[:-1] == [("answer", text) for text in [*answers, "that was all"]]
        notice = "The goal is reached, says the agent: all is done.\nwater it all, round 7 of 20"
        assert told[-1][1].startswith(notice)
        log = await world.log(home)
        assert log[-1].text == told[-1][1]
        used = sum(one.tokens for one in await world.rounds())
        assert goal.tokens == used > 0
        tools = {json.dumps((one.json or {})["tools"]) for one in world.provider.requests}
        assert len(tools) == 1, "the tools of the session never change"
        assert body_of(world.provider.requests[-1]).count("water it all") == last, "restated"
        assert "There is no" not in await world.command("/goal")
        assert (await world.command("/goal pause")).startswith("This goal is done already")


@pytest.mark.both_databases
async def test_a_goal_ends_with_its_rounds_its_tokens_or_those_of_the_day_and_says_so_once(
    tmp_path: Path, store_url: str
) -> None:
    async with open_goals(tmp_path, store_url, end_in(0), rounds=2, budget=1_000) as world:
        await world.command("/goal count")
        goal = await world.settle("paused")
        assert (goal.rounds, goal.max_rounds) == (2, 2)
        await world.pursuit.advance_due()
        [told] = [text for kind, text in await world.delivered() if kind == "notice"]
        assert told.splitlines() == [
            "The goal is paused, its rounds are used up.",
            f"count, round 2 of 2, {goal.tokens} of 1,000 tokens.",
            "/goal resume goes on with it; /goal done and /goal stop end it.",
        ]
        world.clock.move(minutes=1)
        assert "The goal is pursued.\ncount" in await world.command("/goal resume")
        goal = await world.settle("paused")
        assert goal.rounds == goal.max_rounds == 4
        world.clock.move(minutes=1)
        await world.store.write(lambda t: t.execute("UPDATE goals SET budget = tokens"))
        assert "round 4 of 6" in await world.command("/goal resume")
        goal = await world.settle("paused")
        assert (goal.rounds, goal.budget > 1_000) == (6, True)
    async with open_goals(tmp_path, store_url, end_in(0), budget=1, clock=world.clock) as more:
        world.clock.move(minutes=1)
        await more.command("/goal a second")
        goal = await more.settle("paused")
        assert (goal.rounds, goal.reason) == (1, GoalReason.BUDGET)
        world.clock.move(minutes=1)
    async with open_goals(tmp_path, store_url, end_in(0), tokens=1, clock=world.clock) as again:
        await again.command("/goal a third")
        goal = await again.settle("paused")
        assert goal.rounds == 0
        assert "the tokens of the day are spent" in await again.command("/goal")
        states = [(one.text, one.state.value) for one in await again.goals()]
        assert states == [("count", "stopped"), ("a second", "stopped"), ("a third", "paused")]


@pytest.mark.both_databases
async def test_a_judge_ends_the_goal_says_what_is_missing_or_fails(
    tmp_path: Path, store_url: str
) -> None:
    verdicts: list[Reply] = [
        Text("NOT REACHED: the roses are dry"),
        Fail("authentication"),
        Text("Perhaps."),
        Text("**REACHED**: all of it is wet. </answer>"),
    ]

    def answer(request: ProviderRequest) -> Reply:
        return verdicts.pop(0) if is_judge(request) else end_in(0)(request)

    async with open_goals(tmp_path, store_url, answer, judge=JUDGE) as world:
        await world.command("/goal water it all")
        goal = await world.settle("paused")
        assert "the judge gave no verdict" in await world.command("/goal")
        assert [one.verdict and one.verdict.value for one in await world.rounds()] == ["open", None]
        said = "A judge says that the goal is still open: the roses are dry"
        assert said in body_of(world.provider.requests[-2])
        world.clock.move(minutes=1)
        await world.command("/goal resume")
        await world.settle("paused")
        assert "it answered 'Perhaps.'" in await world.command("/goal")
        world.clock.move(minutes=1)
        await world.command("/goal resume")
        goal = await world.settle("done")
        assert goal.rounds == 2, "the same round was judged again"
        last = (await world.delivered())[-1][1]
        assert last.startswith("The goal is reached, says the judge: all of it is wet.")
        asked = [
            body_of(one) for one in world.provider.requests if (one.json or {})["model"] == "judge"
        ]
        assert ("water it all" in asked[0], "answer 1" in asked[0]) == (True, True)
        purposes = await world.store.read(
            lambda t: t.fetch_column("SELECT purpose FROM usage ORDER BY created_at, id")
        )
        assert purposes.count("goal") == 3, "an answer without a verdict costs as well"


async def test_a_message_of_a_person_goes_first_and_the_goal_goes_on_after_it(
    tmp_path: Path, store_url: str
) -> None:
    release, begun = threading.Event(), threading.Event()

    def answer(request: ProviderRequest) -> Reply:
        n = round_of(request)
        if n == 1 and not begun.is_set():
            begun.set()
            release.wait()
        if request.messages[-1].text == "and now?":
            return Text("well")
        return end_in(2)(request)

    async with open_goals(tmp_path, store_url, answer) as world:
        home = await world.say("hello")
        await world.command("/goal water it all")
        await wait_until(begun.is_set)
        # Nobody begins a second round beside the first.
        await world.pursuit.advance_due()
        accepted = await world.engine.submit("and now?", target=CHAT)
        release.set()
        await world.engine.wait_for_input(accepted)
        await world.settle("done")
        log = [(one.text.split("\n")[0], one.is_caused) for one in await world.log(home)]
        said = [text for text, is_caused in log if is_caused or text == "and now?"]
        assert [text.partition(" towards")[0] for text in said] == [
            "Round 1 of 20", "and now?", "Round 2 of 20",
        ]  # fmt: skip


async def test_a_question_holds_the_goal_until_it_is_answered(
    tmp_path: Path, store_url: str
) -> None:
    def pay(amount: int) -> str:
        """Pay."""
        return f"paid {amount}"

    def add_pay(registry: Registry) -> None:
        registry.add_tool(pay, effect="once", facts=lambda _: ToolFacts(outward=True))

    def answer(request: ProviderRequest) -> Reply:
        results = request.messages[-1].results
        if round_of(request) == 1 and not results:
            return Calls((ScriptedCall("pay", {"amount": 3}),))
        return Text(results[0].text) if round_of(request) == 1 else end_in(2)(request)

    async with open_goals(tmp_path, store_url, answer, add_pay) as world:
        home = await world.say("hello")
        await world.command("/goal pay the rent")
        count = "SELECT count(*) FROM turn WHERE state = 'waiting'"
        await wait_until(lambda: world.store.read(lambda t: t.fetch_value(count)))
        await world.pursuit.advance_due()
        assert await world.states() == ["started"]
        [question] = await world.engine.list_approvals(home)
        assert question.route == CHAT.key, "the owner is asked in the chat"
        await world.engine.answer_approval(question.id, yes=True, by="test")
        await world.settle("done")
        assert ("answer", "paid 3") in await world.delivered()


@pytest.mark.both_databases
async def test_three_rounds_that_fail_pause_the_goal_and_are_told_once(
    tmp_path: Path, store_url: str
) -> None:
    broken = True

    def answer(request: ProviderRequest) -> Reply:
        return Fail("authentication") if broken else end_in(4)(request)

    async with open_goals(tmp_path, store_url, answer) as world:
        await world.command("/goal water it all")
        for n, pause in ((1, 5), (2, 30)):
            await wait_until(lambda n=n: _has_failures(world, n))
            # The next one waits, and a message would take it along.
            [open_item] = await world.store.read(
                lambda t: t.fetch_all("SELECT due_at FROM inbox WHERE outcome IS NULL")
            )
            assert open_item[0] == world.clock.now().timestamp() * 1000 + pause * 1000
            world.clock.move(seconds=pause)
            await wake(world)
        goal = await world.settle("paused")
        assert goal.failures == 3
        assert await world.states() == ["failed"] * 3
        [(kind, told)] = await world.delivered()
        assert kind == "notice"
        assert told.startswith("The goal is paused, three rounds in a row failed: ")
        broken = False
        world.clock.move(minutes=1)
        await world.command("/goal resume")
        goal = await world.settle("done")
        assert goal.failures == 0


async def _has_failures(world: GoalWorld, wanted: int) -> bool:
    return (await world.goals())[0].failures == wanted


async def wake(world: GoalWorld) -> None:
    """The clock was set: the worker has been told of another time."""
    world.engine.wake_conversation((await world.goals())[0].conversation)


async def test_who_stops_the_answer_or_leaves_the_conversation_pauses_the_goal(
    tmp_path: Path, store_url: str
) -> None:
    begun, release = threading.Semaphore(0), threading.Event()

    def answer(request: ProviderRequest) -> Reply:
        if round_of(request):
            begun.release()
            release.wait()
        return end_in(0)(request)

    async with open_goals(tmp_path, store_url, answer, rounds=1) as world:
        home = await world.say("hello")
        for leave in ("/stop", "/new", "/branch", "/goal pause"):
            world.clock.move(minutes=1)
            await world.command(f"/goal until {leave}")
            await wait_until(lambda: begun.acquire(blocking=False))
            await world.command(leave)
            if leave in ("/branch", "/goal pause"):
                release.set()
            await world.settle("paused")
            release.set()
            release.clear()
        reasons = [one.reason and one.reason.value for one in await world.goals()]
        assert reasons == ["replaced", "moved", "moved", "by_hand"]
        assert await world.states() == ["stopped", "interrupted", "done", "done"]
        told = [text for kind, text in await world.delivered() if kind == "notice"]
        assert [text.partition("\n")[0] for text in told] == [
            "The goal is paused, somebody stopped the answer.",
            "The goal is paused, this chat has moved to another conversation.",
            "The goal is paused, this chat has moved to another conversation.",
        ]
        # Back in the first conversation it goes on.
        assert f"/resume {home} and then /goal resume" in told[1]
        release.set()
        await world.engine.sessions.resume_conversation(CHAT, home)
        world.clock.move(minutes=1)
        await world.command("/goal resume")
        await wait_until(lambda: _has_rounds(world, "until /new", 2))


@pytest.mark.both_databases
async def test_compaction_rewind_deletion_and_a_restart_keep_a_goal_or_take_it_along(
    tmp_path: Path, store_url: str
) -> None:
    async with open_goals(tmp_path, store_url, end_in(0), rounds=2) as world:
        home = await world.say("hello")
        await world.command("/goal water it all")
        await world.settle("paused")
    clock = world.clock
    async with open_goals(tmp_path, store_url, end_in(5), rounds=2, clock=clock) as again:
        compacted = await again.engine.sessions.queue_compaction(home)
        await again.engine.wait_for_input(compacted)
        clock.move(minutes=1)
        await again.command("/goal resume")
        await again.settle("paused")
        assert "water it all" in body_of(again.provider.requests[-1])
        # The context goes back to before the goal was set: it stays, and so does its count.
        await again.engine.wait_for_input(await again.engine.queue_rewind(home, to=2))
        clock.move(minutes=1)
        await again.command("/goal resume")
        await again.settle("done")
        request = body_of(again.provider.requests[-1])
        assert ("Round 5 of 6" in request, "Round 4 of 6" in request) == (True, False)
        await again.engine.delete_conversation(home, at_once=True)
        await wait_until(lambda: _is_gone(again))


async def _has_rounds(world: GoalWorld, text: str, wanted: int) -> bool:
    found = next(one for one in await world.goals() if one.text == text)
    return (found.rounds, found.state.value) == (wanted, "paused")


async def _is_gone(world: GoalWorld) -> bool:
    return await world.goals() == [] and await world.rounds() == []


async def test_an_agent_that_needs_a_person_pauses_its_goal(tmp_path: Path, store_url: str) -> None:
    def answer(request: ProviderRequest) -> Reply:
        if request.messages[-1].results:
            return Text(request.messages[-1].results[0].text)
        blocked = round_of(request) == 1 or request.messages[-1].text == "again"
        return call_goal("blocked", "the tap is locked") if blocked else end_in(2)(request)

    async with open_goals(tmp_path, store_url, answer) as world:
        await world.command("/goal water it all")
        await world.settle("paused")
        first, second = [text for _, text in await world.delivered()]
        assert first == "The goal is paused until a person resumes it."
        assert second.startswith("The goal is paused, the agent needs you: the tap is locked.\n")
        assert (await world.command("/goal done")).startswith("The goal is reached, by hand.")
        await world.say("again")
        assert (await world.delivered())[-1][1] == "This conversation has no goal."


@pytest.mark.parametrize("text", ["", "x" * 4_001])
async def test_a_goal_without_a_text_or_with_too_much_of_it_is_refused(
    tmp_path: Path, text: str
) -> None:
    async with open_goals(tmp_path, f"sqlite:///{tmp_path}/clew.db", end_in(0)) as world:
        reply = await world.command(f"/goal {text}")
        assert ("There is no goal here" in reply) or ("4,000 may be" in reply)
        assert await world.goals() == []
