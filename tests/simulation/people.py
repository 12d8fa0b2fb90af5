"""Clients: what each conversation's person does, over a network that loses and repeats."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from clew.core.double_text import DoubleText
from clew.core.route import local_route
from clew.errors import ClewError, NotFound, StoreError
from clew.record import Record
from tests.simulation.gateways import Unreachable

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from random import Random

    from clew.core.events import InputCompleted
    from clew.core.ids import ConversationId, InboxId
    from clew.core.inbox import AcceptResult
    from clew.engine.engine import Engine
    from tests.simulation.world import World

_PLANS = ("", "", "", "look", "put", "send", "send", "look send", "look; put send", "pay", "wipe")
_RULES = {
    DoubleText.QUEUE: 10, DoubleText.STEER: 4, DoubleText.INTERRUPT: 3, DoubleText.COLLECT: 2,
    DoubleText.ROLLBACK: 1, DoubleText.REJECT: 1,
}  # fmt: skip
_DEEDS = {
    "say": 40, "stop": 2, "undo": 2, "compact": 3, "restore": 1, "new": 1, "close": 1,
    "delete": 0.6, "cancel": 1,
}  # fmt: skip


class Deed(Record):
    """Something that a person does, and how long after the deed before."""

    room: int
    pause: float
    name: str
    text: str = ""
    rule: DoubleText = DoubleText.QUEUE
    #: The platform names the event; else only the id is the same when it is sent again.
    event: bool = False


def plan_deeds(random: Random, *, rooms: int, messages: int) -> list[Deed]:
    """Draw what people do; ``messages`` of them say something."""
    deeds: list[Deed] = []
    said = 0
    while said < messages:
        room = random.randrange(rooms)
        name = random.choices([*_DEEDS], [*_DEEDS.values()])[0]
        text = ""
        if name == "say":
            said += 1
            text = f"c{room}m{said}: {random.choice(_PLANS)}"
        deeds.append(
            Deed(
                room=room, pause=random.random() ** 2 * 3.0, name=name, text=text,
                rule=random.choices([*_RULES], [*_RULES.values()])[0], event=random.random() < 0.5,
            )
        )  # fmt: skip
    return deeds


@dataclass(kw_only=True)
class Said:
    """A message as its sender sees it."""

    key: str
    room: int
    id: InboxId
    conversation: ConversationId
    #: The end that the sender was told; a ``NotFound`` where the conversation was deleted.
    end: InputCompleted | None = None


class People:
    """All clients of one seed."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.said: list[Said] = []
        self.deleted: set[str] = set()
        self._newest: dict[int, Said] = {}
        self._following: list[asyncio.Task[None]] = []
        self._approving: list[asyncio.Task[None]] = []

    async def act(self, deeds: list[Deed]) -> None:
        """Do everything, each room on its own, and follow each message to its end."""
        rooms = sorted({deed.room for deed in deeds})
        async with asyncio.TaskGroup() as tasks:
            for room in rooms:
                tasks.create_task(self._act_in([d for d in deeds if d.room == room]))
        self._world.calm_down()
        for following in self._following:
            await following
        for approving in self._approving:
            approving.cancel()

    async def _act_in(self, deeds: list[Deed]) -> None:
        for deed in deeds:
            await asyncio.sleep(deed.pause)
            if deed.name == "say":
                await self._say(deed)
            elif (newest := self._newest.get(deed.room)) is not None:
                await self._do(deed, newest)

    async def _insist(self, work: Callable[[Engine], Awaitable[Any]]) -> Any:
        """Have something done by whatever gateway answers, again and again."""
        while True:
            gateway = self._world.chances.random.choice(self._world.gateways)
            try:
                return await gateway.call(work)
            except (Unreachable, StoreError):
                await asyncio.sleep(0.1 + self._world.chances.delay(1.0))

    async def _say(self, deed: Deed) -> None:
        route, key = local_route(f"room {deed.room}"), deed.text.partition(":")[0]
        item: Any = None

        async def submit(engine: Engine) -> AcceptResult:
            nonlocal item
            if item is None or (deed.event and self._world.chances.random.random() < 0.5):
                # A platform that delivers again knows nothing of the id that we gave.
                new = engine.new_input(deed.text, double_text=deed.rule)
                item = replace(new, event=("sim", "bot", key)) if deed.event else new
            return await engine.submit(item, target=route)

        accepted: AcceptResult = await self._insist(submit)
        said = Said(
            key=key, room=deed.room, id=accepted.inbox_id, conversation=accepted.conversation_id
        )
        self.said.append(said)
        self._newest[deed.room] = said
        self._following.append(asyncio.create_task(self._follow(said)))
        if "pay" in deed.text or "wipe" in deed.text:
            self._approving.append(asyncio.create_task(self._approve(said)))

    async def _follow(self, said: Said) -> None:
        async def wait(engine: Engine) -> InputCompleted:
            return await engine.wait_for_input(
                _AcceptedAgain(said.id, said.conversation)  # pyright: ignore[reportArgumentType]
            )

        try:
            said.end = await self._insist(wait)
        except NotFound:
            if said.conversation not in self.deleted:
                self._world.watch.complain(f"{said.key}: nobody knows it any more")

    async def _approve(self, said: Said) -> None:
        async def answer(engine: Engine) -> None:
            for approval in await engine.list_approvals(said.conversation):
                await engine.answer_approval(
                    approval.id, yes=self._world.chances.random.random() < 0.7, by="person"
                )

        while True:
            await asyncio.sleep(0.3 + self._world.chances.delay(4.0))
            try:
                await self._insist(answer)
            except ClewError:
                continue

    async def _do(self, deed: Deed, newest: Said) -> None:
        conversation = newest.conversation

        async def work(engine: Engine) -> None:
            match deed.name:
                case "stop":
                    await engine.request_stop(conversation)
                case "undo":
                    await engine.sessions.queue_undo(conversation)
                case "restore":
                    await engine.sessions.queue_restore(conversation)
                case "compact":
                    await engine.sessions.queue_compaction(conversation)
                case "new":
                    await engine.start_new_conversation(local_route(f"room {deed.room}"))
                case "close":
                    await engine.queue_close(conversation, reason="user_exit")
                case "cancel":
                    await engine.cancel_input(newest.id)
                case _:
                    self.deleted.add(conversation)
                    await engine.delete_conversation(conversation, at_once=True)

        try:
            await self._insist(work)
        except ClewError:
            return


class _AcceptedAgain(Record, kw_only=False):
    """What is needed to follow an input."""

    inbox_id: InboxId
    conversation_id: ConversationId
