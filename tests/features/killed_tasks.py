"""A turn that gives a task to another agent, in gateways that are killed; others go on with it."""

from __future__ import annotations

import asyncio
import random
import signal
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Final, Literal

from clew import runtime
from clew.core import completion
from clew.core.entry import Role
from clew.core.route import local_route
from clew.engine.engine import Engine
from clew.features.delegation.children import CHILDREN, ChildState
from clew.features.delegation.service import settle_left_children
from clew.plugin import get_turn_context
from clew.plugin.loading import get_features, load_settings_with_features
from clew.store.checks.registry import find_all
from clew.store.opening import open_store
from clew.testing import FakeProvider
from tests.features.delegation_world import delegate, do, obey
from tests.killing import processes
from tests.killing.child import until_terminated, write_to
from tests.killing.killer import Killer, Place, WatchedStore
from tests.killing.records import Effect, Log
from tests.waiting import wait_until

if TYPE_CHECKING:
    from multiprocessing.process import BaseProcess
    from pathlib import Path

    from clew.core.ids import ConversationId
    from clew.plugin import Registry
    from clew.plugin.registry import Features
    from clew.store.contract import Store, Tx

KILLED = -9
#: What the task sends, once, and what it answers when it was not interrupted in that.
SENT: Final = "the letter"
ANSWER: Final = f"told: sent {SENT}"
#: The points of a delegation, in its order: name, place, and the times that it may be reached.
POINTS: Final = (
    ("asked, not opened", "opening.open_child before", 1),
    ("opened, not committed", "opening.open_child inside", 1),
    ("opened", "opening.open_child after", 1),
    ("a turn begins", "turns.begin_work after", 2),
    ("an answer is stored", "turns.store_step after", 2),
    ("sent, not recorded", "tool send after", 1),
    ("an end is told, not committed", "turns.finish_turn inside", 2),
    ("an end is told", "turns.finish_turn after", 2),
    ("a result is stored", "journal.record_result after", 2),
)
#: Who runs the turns: one gateway, or one for the parent and another for the task.
Gateways = Literal["one", "two"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Errand:
    """Orders of a gateway."""

    home: Path
    store_url: str
    provider: str
    background: bool
    place: Place | None = None
    #: Leaves the task to the other gateway.
    only_parent: bool = False
    #: Lives on, and says nothing.
    stays: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Delegated:
    """Result of a round."""

    children: int
    state: str
    #: Answers in the parent: results of the call, and completions.
    answers: int
    #: How often the letter was sent.
    sent: int
    findings: int
    kills: int

    @property
    def is_right(self) -> bool:
        """Return whether there is one child with one answer, which did nothing twice."""
        once = (self.children, self.state, self.answers) == (1, ChildState.DONE.value, 1)
        return once and self.sent <= 1 and not self.findings


def kill_in_a_delegation(
    home: Path, store_url: str, point: int, seed: int, *, background: bool, gateways: Gateways
) -> Delegated:
    """Kill a gateway at a point, let others finish, and look at what there is."""
    rng = random.Random(seed)
    _, name, times = POINTS[point]
    place = Place(name=name, nth=rng.randint(1, times))
    with FakeProvider(obey) as provider:
        errand = Errand(
            home=home, store_url=store_url, provider=provider.openai_url, background=background
        )
        if gateways == "one":
            codes = [_end(replace(errand, place=place))]
        else:
            codes = _run_two(errand, place, in_child=rng.random() < 0.5)
        assert _end(errand) == 0, (home / "output.log").read_text()[-4000:]
    found = asyncio.run(_look(errand))
    return replace(found, kills=codes.count(KILLED))


def _run_two(errand: Errand, place: Place, *, in_child: bool) -> list[int]:
    """Run one gateway for the parent and one for the task, of which one may be killed."""
    its, ours = (replace(place, nth=1), None) if in_child else (None, place)
    codes = list[int]()
    parent = processes.fork(run_gateway, replace(errand, only_parent=True, place=ours))
    child = processes.fork(run_gateway, replace(errand, stays=True, place=its))
    while parent.is_alive():
        parent.join(0.02)
        if not child.is_alive():
            codes.append(processes.ended(child))
            child = processes.fork(run_gateway, replace(errand, stays=True))
    return [*codes, processes.ended(parent), _terminate(child)]


def _terminate(process: BaseProcess) -> int:
    if process.is_alive():
        processes.send(process, signal.SIGTERM)
    return processes.ended(process)


def _end(errand: Errand) -> int:
    return processes.ended(processes.fork(run_gateway, errand))


def run_gateway(errand: Errand) -> None:
    """Say one thing, and wait until nothing goes on."""
    write_to(errand.home)
    completion.COLLECT_FOR = timedelta(milliseconds=20)  # type: ignore[misc]
    asyncio.run(until_terminated(_run(errand)))


async def _run(errand: Errand) -> None:
    killer = Killer(errand.place, Log(errand.home / "fronts.log"), errand.home)
    flags = {
        "model.name": "openai-chat:fake-model",
        "model.base_url": errand.provider,
        "store.url": errand.store_url,
    }
    settings = load_settings_with_features(home=errand.home, flags=flags, environ={})
    features = get_features(settings)
    features.register("tested", partial(_register, errand, killer))
    opened = await open_store(errand.store_url, home=errand.home, features=features.schemas)
    async with WatchedStore(opened, killer.reach) as store:
        services = runtime.build_services(settings, store)
        engine = Engine(services, role="test", version="0", own_only=errand.only_parent)
        if errand.only_parent:
            services.feature_context.waker.connect(lambda _: None)
        async with engine:
            killer.arm()
            await (asyncio.Event().wait() if errand.stays else _say(engine, store, errand))


def _register(errand: Errand, killer: Killer, registry: Registry) -> None:
    effects = Log(errand.home / "effects.log")

    def send(what: str) -> str:
        """Send something."""
        context = get_turn_context()
        assert context is not None
        assert context.call_key is not None
        effects.add(
            Effect(what=what, tool="send", effect="once", key=context.call_key.call_id), sync=True
        )
        killer.reach("tool send after")
        return f"sent {what}"

    registry.add_tool(send, effect="once")


async def _say(engine: Engine, store: Store, errand: Errand) -> None:
    task = delegate(do(("send", {"what": SENT})), background=errand.background)
    said = replace(engine.new_input(do(task)), event=("test", "bot", "1"))
    accepted = await engine.submit(said, target=local_route("main"))
    engine.wake_conversation(accepted.conversation_id)
    await engine.wait_for_input(accepted)

    async def is_idle() -> bool:
        if not errand.only_parent:
            await settle_left_children(engine.feature_context)
        return await store.read(_count_open) == 0

    await wait_until(is_idle)


def _count_open(t: Tx) -> int:
    return t.fetch_value(
        "SELECT (SELECT count(*) FROM inbox WHERE outcome IS NULL)"
        " + (SELECT count(*) FROM turn WHERE state <> 'done')"
        " + (SELECT count(*) FROM delegation_child WHERE state = 'running')"
    )


async def _look(errand: Errand) -> Delegated:
    features: Features = get_features(
        load_settings_with_features(home=errand.home, flags={}, environ={})
    )
    async with await open_store(
        errand.store_url, home=errand.home, features=features.schemas
    ) as store:
        findings = await store.read(find_all)
        return await store.read(_count, errand, len(findings))


def _count(t: Tx, errand: Errand, findings: int) -> Delegated:
    found = CHILDREN.fetch_all(t, "ORDER BY created_at")
    sent = len(Log(errand.home / "effects.log").of(Effect))
    state = ", ".join(child.state.value for child in found)
    parents = {child.parent_conversation for child in found}
    answers = sum(_count_answers(t, parent) for parent in parents)
    return Delegated(
        children=len(found), state=state, answers=answers, sent=sent, findings=findings, kills=0
    )


def _count_answers(t: Tx, parent: ConversationId) -> int:
    """Count the entries of the parent with an answer: of an interrupted call as well."""
    texts = t.fetch_column(
        "SELECT text FROM entry WHERE conversation_id = $1 AND role IN ($2, $3) ORDER BY seq",
        parent,
        Role.USER.value,
        Role.TOOL.value,
    )
    return sum("): done." in text and "told: " in text for text in texts)
