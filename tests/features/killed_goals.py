"""A goal whose gateways are killed between and in its rounds; the next one goes on with it."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from clew import runtime
from clew.core.ids import ConversationId, new_session_id
from clew.engine.engine import Engine
from clew.engine.feature_runner import FeatureRunner
from clew.features.goals import front
from clew.features.goals.goals import GOALS, ROUNDS, GoalState
from clew.plugin.loading import get_features, load_settings_with_features
from clew.store.checks.registry import find_all
from clew.store.opening import open_store
from clew.store.transactions.conversations import open_route
from clew.testing import FakeProvider, Text
from tests.features.goal_world import call_goal, round_of
from tests.features.job_world import CHAT
from tests.killing import processes
from tests.killing.child import until_terminated
from tests.killing.killer import Killer, Place, WatchedStore
from tests.killing.records import Log
from tests.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from clew.features.goals.goals import Goal
    from clew.store.contract import Store, Tx
    from clew.testing import ProviderRequest, Reply

KILLED = -9
#: Rounds until the agent says that the goal is reached.
ROUNDS_IN_ALL = 3
_JOBS = (
    "rounds.advance_goal", "turns.begin_work", "turns.finish_turn", "front.end_by_agent",
    "judging.store_verdict",
)  # fmt: skip
#: Each may be reached at least this often.
PLACES = tuple(f"{job} {where}" for job in _JOBS for where in ("before", "inside", "after"))


@dataclass(frozen=True, kw_only=True, slots=True)
class GoalJob:
    """Orders of a process."""

    home: Path
    store_url: str
    provider: str
    place: Place | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcome:
    """What is in the store when the goal is reached."""

    kills: int
    goal: str
    rounds: tuple[str, ...]
    #: Inputs of rounds, the turns that they began, and the answers and notices of the chat.
    inputs: int
    turns: int
    told: tuple[tuple[str, int], ...]
    findings: int


RIGHT = Outcome(
    kills=0,
    goal="done agent",
    rounds=("done",) * ROUNDS_IN_ALL,
    inputs=ROUNDS_IN_ALL,
    turns=ROUNDS_IN_ALL,
    told=(("answer", ROUNDS_IN_ALL), ("notice", 1)),
    findings=0,
)


def is_right(found: Outcome) -> bool:
    """Return whether no round was lost, and none doubled."""
    return replace(found, kills=0) == RIGHT


def pursue_under_kills(home: Path, store_url: str, places: Sequence[Place]) -> Outcome:
    """Kill a gateway at each of the places, let another one go on to the end, and look."""
    with FakeProvider(_answer) as provider:
        job = GoalJob(home=home, store_url=store_url, provider=provider.openai_url)
        asyncio.run(_prepare(job))
        kills = 0
        for place in places:
            code = processes.ended(processes.fork(run_gateway, replace(job, place=place)))
            assert code in (0, KILLED), code
            kills += code == KILLED
        assert processes.ended(processes.fork(run_gateway, job)) == 0
        return replace(asyncio.run(_look(job)), kills=kills)


def _answer(request: ProviderRequest) -> Reply:
    if request.model == "judge":
        return Text("NOT REACHED: go on")
    n = round_of(request)
    if n == ROUNDS_IN_ALL and not request.messages[-1].results:
        return call_goal()
    return Text(f"answer {n}")


async def _open(job: GoalJob) -> Store:
    return await open_store(job.store_url, home=job.home, features=get_features(_load(job)).schemas)


def _load(job: GoalJob) -> runtime.Settings:
    flags = {
        "model.name": "openai-chat:fake-model",
        "model.base_url": job.provider,
        "store.url": job.store_url,
        "goals.judge": "openai-chat:judge",
    }
    return load_settings_with_features(home=job.home, flags=flags, environ={})


async def _prepare(job: GoalJob) -> None:
    async with await _open(job) as store:
        await store.write(_set_goal)


def _set_goal(t: Tx) -> Goal:
    new = ConversationId("cnv_home")
    home = open_route(t, CHAT, new_conversation=new, session_ids=new_session_id)
    limits = front.GoalLimits(rounds=20, budget=1_000_000)
    request = front.GoalRequest(id="gol_1", text="water it all", limits=limits, route=CHAT.key)
    return front.set_goal(t, home, request)


def run_gateway(job: GoalJob) -> None:
    """Go on with the goal until it has ended."""
    asyncio.run(until_terminated(_run(job)))


async def _run(job: GoalJob) -> None:
    killer = Killer(job.place, Log(job.home / "fronts.log"), job.home)
    async with WatchedStore(await _open(job), killer.reach) as store:
        settings = _load(job)
        services = runtime.build_services(settings, store)
        killer.arm()
        async with Engine(services, role="test", version="0") as engine:
            context = services.feature_context
            async with FeatureRunner(get_features(settings), context, engine.owner_id):
                await wait_until(lambda: store.read(_has_ended))
                await engine.wait_until_idle()


def _has_ended(t: Tx) -> bool:
    [goal] = GOALS.fetch_all(t, "")
    return goal.state is not GoalState.ACTIVE and goal.told == 1


async def _look(job: GoalJob) -> Outcome:
    async with await _open(job) as store:
        findings = await store.read(find_all)
        return await store.read(_count, len(findings))


def _count(t: Tx, findings: int) -> Outcome:
    [goal] = GOALS.fetch_all(t, "")
    rounds = ROUNDS.fetch_all(t, "ORDER BY n")
    inputs = t.fetch_column("SELECT turn_id FROM inbox WHERE kind = 'completion'")
    told = Counter[str](t.fetch_column("SELECT kind FROM delivery"))
    return Outcome(
        kills=0,
        goal=f"{goal.state.value} {goal.reason.value if goal.reason else ''}",
        rounds=tuple([one.state.value for one in rounds]),
        inputs=len(inputs),
        turns=len({one.turn for one in rounds} & {*inputs}),
        told=tuple(sorted(told.items())),
        findings=findings,
    )
