"""
Two processes that compact one conversation, over and over; one of them is killed on the way.

In each round the conversation grows, both compact it at once, and what came of it is looked at: one
successor, all that was said in it or in its summary, and as few summaries as there can be.
"""

from __future__ import annotations

import asyncio
import json
import logging
import multiprocessing
import os
from collections import Counter
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

import structlog

from clew.agent import messages as codec
from clew.core.ids import SessionId
from clew.core.route import local_route
from clew.store.opening import open_store
from clew.store.transactions import compactions, context, locks, sessions
from tests.contract import invariants
from tests.contract.lifecycle.doubles import Summariser
from tests.contract.lifecycle.filling import fill
from tests.contract.lifecycle.house import open_house
from tests.killing import processes
from tests.killing.killer import WatchedStore, die, job_name

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from multiprocessing.process import BaseProcess
    from pathlib import Path

    from pydantic_ai.messages import ModelMessage

    from clew.agent.compactor import RunUsage
    from clew.agent.models import Model
    from clew.core.ids import ConversationId
    from clew.store.contract import Store

    #: Its ends are of different classes on different systems.
    Connection = Any

TALK = local_route("talk")
#: Tokens, and messages of 200 tokens that are said in each round.
_WINDOW, _SAID, _BYTES = 5000, 20, 600
_ROTATE = job_name(compactions.rotate_compacted_with_own_lease)
_LOCK = job_name(locks.try_acquire_compression_lock)
#: The place where one of the two is killed (``None``: nowhere), and the number of summaries.
PLACES: dict[str | None, int] = {
    None: 1,
    f"{_LOCK} after": 1,
    "summary begins": 2,
    "summary ends": 2,
    f"{_ROTATE} before": 2,
    f"{_ROTATE} inside": 2,
    f"{_ROTATE} after": 1,
    f"{job_name(locks.release_compression_lock)} before": 1,
}
#: Seconds between two attempts, and how many there are.
_PAUSE, _PATIENCE = 0.02, 500
_AFTER = (f"{_ROTATE} after", f"{job_name(locks.release_compression_lock)} before")


@dataclass(frozen=True, kw_only=True, slots=True)
class Order:
    """Orders to both: compact this session, which you hold."""

    session: str
    #: The first process to reach the place is killed, and leaves this file.
    place: str | None = None
    token: Path | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Told:
    moved: bool
    session: str
    note: str


def compact(url: str, home: Path, orders: Connection) -> None:
    """One of the two; works until it is told to end."""
    quiet = structlog.make_filtering_bound_logger(logging.CRITICAL)
    structlog.configure(wrapper_class=quiet)
    asyncio.run(_compact(url, home, orders))


async def _compact(url: str, home: Path, orders: Connection) -> None:
    order: Order | None = None

    def reach(place: str) -> None:
        if order is None or order.place != place or order.token is None:
            return
        with suppress(FileExistsError):
            order.token.touch(exist_ok=False)
            die()

    async with open_house(
        url,
        home,
        window=_WINDOW,
        summariser=Noting(home, reach),
        around=lambda store: WatchedStore(store, reach),
        own_only=True,
    ) as house:
        conversation = await house.engine.resolve_name(TALK.key)
        orders.send(None)
        while (order := await asyncio.to_thread(orders.recv)) is not None:
            state = await house.means.context_cache.refresh_context(conversation)
            held = [kept.message for kept in state.messages]
            done = await house.engine.compact(SessionId(order.session), held)
            orders.send(Told(moved=done.moved, session=done.session_id, note=done.note))


class Noting(Summariser):
    """Writes down what it summarises, before it does."""

    def __init__(self, home: Path, reach: Callable[[str], None]) -> None:
        super().__init__(seconds=0.01)
        self._log, self._reach = summaries_in(home), reach

    async def summarise_messages(
        self,
        messages: Sequence[ModelMessage],
        model: Model,
        *,
        window: int,
        focus: str | None,
        usage: RunUsage,
    ) -> str:
        line = json.dumps([os.getpid(), [number(message) for message in messages]])
        with self._log.open("a") as log:
            log.write(f"{line}\n")
        self._reach("summary begins")
        summary = await super().summarise_messages(
            messages, model, window=window, focus=focus, usage=usage
        )
        self._reach("summary ends")
        return f"{summary}\nUp to {number(messages[-1])}."


def summaries_in(home: Path) -> Path:
    """Return the summaries: a line for each."""
    return home / "summaries.log"


def number(message: ModelMessage) -> int:
    """The number of a message; 0 for a summary."""
    text = codec.extract_text(message)
    return int(text.partition(":")[0]) if text else 0


@dataclass(kw_only=True)
class Pair:
    """The two, and what was found; the store is looked at from here."""

    url: str
    home: Path
    store: Store
    conversation: ConversationId
    kills: Counter[str] = field(default_factory=Counter[str])
    rotations: int = 0
    summaries: int = 0
    complaints: list[str] = field(default_factory=list[str])
    _running: list[tuple[BaseProcess, Connection]] = field(
        default_factory=list["tuple[BaseProcess, Connection]"]
    )
    _rounds: int = 0

    async def start(self) -> Self:
        while len(self._running) < 2:
            ours, theirs = multiprocessing.Pipe()
            process = processes.fork(compact, self.url, self.home, theirs)
            theirs.close()
            self._running.append((process, ours))
            assert await asyncio.to_thread(ours.recv) is None
        return self

    async def end(self) -> None:
        for process, orders in self._running:
            with suppress(OSError):
                orders.send(None)
            await asyncio.to_thread(processes.ended, process)
            orders.close()
        self.complaints += await self.store.read(invariants.check)
        await self._complain_of_what_is_lost()

    async def round(self, place: str | None) -> None:
        """Grow, compact with both, one of them killed at the place, and judge."""
        self._rounds += 1
        await self.store.write(
            fill, self.conversation, _SAID, size=_BYTES, first=1 + (self._rounds - 1) * _SAID
        )
        before = await self._numbers()
        head = (await self.store.read(sessions.get_head, self.conversation)).id
        summarised = len(self._summarised())
        token = self.home / f"killed-{self._rounds}"
        told = await self._ask(Order(session=head, place=place, token=token))
        if place is not None:
            self.kills[place] += len(told) == 1
        if len(told) != (2 if place is None else 1):
            self._complain(place, f"{len(told)} lived on")
        killed_before = place not in (None, *_AFTER)
        for _ in range(_PATIENCE):
            if not killed_before or any(each.moved for each in told):
                break
            # It gave way to the one that was killed, whose death a server may notice later.
            await asyncio.sleep(_PAUSE)
            told += await self._ask(Order(session=head))
        await self.start()
        made = self._summarised()[summarised:]
        await self._judge(place, head, before, told, made)
        again = await self._ask(Order(session=head))
        if any(each.moved for each in again) or len(self._summarised()) > summarised + len(made):
            self._complain(place, f"who came when it was done did it again: {again}")

    async def _ask(self, order: Order) -> list[Told]:
        """Order all that live to compact at once; what those said that were not killed."""
        for _, orders in self._running:
            orders.send(order)
        told: list[Told] = []
        for process, orders in list(self._running):
            try:
                told.append(await asyncio.to_thread(orders.recv))
            except EOFError:
                await asyncio.to_thread(processes.ended, process)
                self._running.remove((process, orders))
                orders.close()
        return told

    async def _judge(
        self,
        place: str | None,
        head: str,
        before: Sequence[int],
        told: Sequence[Told],
        made: Sequence[Sequence[int]],
    ) -> None:
        self.summaries += len(made)
        lineage = await self.store.read(sessions.list_sessions, self.conversation)
        successors = [session.id for session in lineage if session.predecessor == head]
        self.rotations += len(successors)
        if len(successors) != 1 or lineage[-1].id != successors[0]:
            self._complain(place, f"successors: {successors}")
        moved = [each.session for each in told if each.moved]
        if moved != ([] if place in _AFTER else successors):
            self._complain(place, f"moved: {moved}, successors: {successors}")
        if len(made) != PLACES[place]:
            self._complain(place, f"{len(made)} summaries, not {PLACES[place]}")
        after = await self._numbers()
        summarised: Sequence[int] = made[-1] if made else ()
        if [*summarised, *after[1:]] != list(before):
            self._complain(place, f"of {before} it has a summary of {summarised}, and {after}")
        if await self.store.read(locks.get_compression_lock_holder, SessionId(head)):
            self._complain(place, "the lock is held")

    def _complain(self, place: str | None, what: str) -> None:
        self.complaints.append(f"round {self._rounds}, killed at {place}: {what}")

    def _summarised(self) -> list[list[int]]:
        path = summaries_in(self.home)
        return (
            [json.loads(line)[1] for line in path.read_text().splitlines()] if path.exists() else []
        )

    async def _numbers(self) -> list[int]:
        found = await self.store.read(context.read_head_context, self.conversation)
        return [number(codec.load_message(message.message)) for message in found.messages]

    async def _complain_of_what_is_lost(self) -> None:
        log = await self.store.read(
            context.read_messages, self.conversation, first=1, last=self._rounds * _SAID
        )
        numbers = [number(codec.load_message(message.message)) for message in log]
        if numbers != list(range(1, self._rounds * _SAID + 1)):
            self.complaints.append(f"the log has {numbers}")


async def compacted_by_two(url: str, home: Path, places: Sequence[str | None]) -> Pair:
    """A round for each place, on a store of its own."""
    async with AsyncExitStack() as stack:
        store = await stack.enter_async_context(await open_store(url, home=home))
        async with open_house(url, home, own_only=True) as house:
            conversation = await house.open(TALK)
        pair = Pair(url=url, home=home, store=store, conversation=conversation)
        await pair.start()
        for place in places:
            await pair.round(place)
        await pair.end()
        return pair
