"""
The delivery worker: what is to be said, chat by chat, in order, each part once.

A part is marked before it is sent and after it has arrived. Where the outcome is unknown the
platform is asked; where it cannot be asked the part is sent once more, and says so.
"""

from __future__ import annotations

import asyncio
import enum
import json
import random
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NoReturn

import structlog

from clew.core.chat import load_message
from clew.core.delivery import DeliveryKind, DeliveryState
from clew.core.ids import TurnId
from clew.core.route import Route
from clew.engine.log_throttle import LogThrottle
from clew.errors import (
    ChannelError,
    ClewError,
    InvalidTransition,
    NotDelivered,
    NotFound,
    OutcomeUnknown,
    StoreError,
    Throttled,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from clew.core.delivery import Chunk, Delivery
    from clew.core.ids import DeliveryId
    from clew.core.route import RouteKey
    from clew.engine.deliveries import AnswerPreview, ClaimedDelivery, DeliveryQueue
    from clew.gateway.line import Line
    from clew.gateway.monitor import DeliveryMonitor
    from clew.gateway.previews import Previews
    from clew.gateway.timer import Timer

log = structlog.get_logger(__name__)

#: A part that was sent again so often, each time without an answer, is given up.
MOST_REPEATS = 5
#: Seconds between two tries at a platform that cannot be reached: doubled up to the longest.
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 60.0
#: Seconds after which the store is asked again.
_STORE_PAUSE = 0.5
#: Seconds between two looks for what nobody announced.
LOOK_EVERY = 5.0

#: What an answer that is shown while it is made becomes.
_SHOWN = (DeliveryKind.ANSWER, DeliveryKind.TEXT)


class Left(enum.Enum):
    """How a delivery was left."""

    OVER = "over"  #: delivered, or given up
    AGAIN = "again"  #: to be tried again as soon as the gate is open
    PAUSE = "pause"  #: to be tried again after a pause: the platform cannot be reached


class Sender:
    """Sends one delivery at a time."""

    def __init__(
        self,
        deliveries: DeliveryQueue,
        line: Line,
        previews: Previews,
        moved: Callable[[Route, str], Awaitable[None]],
        monitor: DeliveryMonitor,
    ) -> None:
        self._throttle = LogThrottle()
        self._deliveries, self._line, self._previews = deliveries, line, previews
        self._channel, self._moved, self._monitor = line.channel, moved, monitor

    async def send(self, delivery: Delivery, chunks: Sequence[Chunk]) -> Left:
        """Send what is left of a delivery."""
        route = Route.parse(delivery.route)
        try:
            for chunk in chunks or await self._fixed(delivery):
                if chunk.state is DeliveryState.DELIVERED:
                    continue
                if (left := await self._part(delivery, route, chunk)) is not Left.OVER:
                    return left
        except asyncio.CancelledError:
            # The process may live on, and nobody would find its part dead.
            await asyncio.shield(self._let_go(delivery, DeliveryState.PENDING))
            raise
        await self._deliveries.close_if_done(delivery.id)
        return Left.OVER

    async def _let_go(self, delivery: Delivery, state: DeliveryState) -> None:
        # Refused where a part that was cut off has made it unknown before.
        with suppress(NotFound, InvalidTransition, StoreError):
            await self._moved_to(delivery, state, "the channel was stopped")

    async def _fixed(self, delivery: Delivery) -> Sequence[Chunk]:
        """The parts of a delivery that nobody has begun to send."""
        message = load_message(delivery.body)
        bodies = [_body(chunk) for chunk in self._channel.render(message)]
        if not bodies:
            # Closed as delivered it would be lost without a trace.
            await self._given_up(delivery, "the channel makes no message of this text")
        turn = None if message.instead_of is None else TurnId(message.instead_of)
        if delivery.kind in _SHOWN and turn is None:
            turn = delivery.turn_id
        if turn is None or not self._channel.capabilities.edits:
            return await self._deliveries.store_chunks(delivery.id, _stored(bodies))
        async with self._previews.lock(delivery.route):
            preview = await self._previews.take(delivery.route, turn)
            first = await self._in_place_of(preview, delivery, bodies[0])
            bodies = [first, *bodies[1:]]
            if message.instead_of is not None and first["edit"] is None:
                bodies = []
            taken = None if preview is None else turn
            return await self._deliveries.store_chunks(delivery.id, _stored(bodies), preview=taken)

    async def _in_place_of(
        self, preview: AnswerPreview | None, delivery: Delivery, body: Body
    ) -> Body:
        """The first part, so that people do not see the beginning of it twice without a word."""
        if preview is None:
            return body
        message = preview.message or await self._found(preview, delivery, body)
        if message is not None:
            return {**body, "edit": message}
        # It may be there, and nobody can say.
        return body if self._channel.capabilities.read_back else {**body, "marked": True}

    async def _found(self, preview: AnswerPreview, delivery: Delivery, body: Body) -> str | None:
        """The message that was to show the answer when its process died, if it can be found."""
        can, route = self._channel.capabilities, Route.parse(delivery.route)
        if can.read_back:
            return await self._line.find(route, body["chunk"], key=preview.key)
        age = (datetime.now(UTC) - preview.shown_at).total_seconds()
        if not (can.idempotent and age < can.remembers):
            return None
        # With the same key it is the same message, which is changed then.
        await self._line.gate.enter(route)
        return await self._line.send(route, body["chunk"], key=preview.key)

    async def _part(self, delivery: Delivery, route: Route, chunk: Chunk) -> Left:
        body = json.loads(chunk.body)
        key = f"{delivery.id}:{chunk.position}"
        unknown = chunk.state is DeliveryState.UNKNOWN
        if unknown and body["edit"] is None and self._channel.capabilities.read_back:
            found = await self._line.find(route, body["chunk"], key=key)
            if found is not None:
                return await self._arrived(delivery, chunk, found)
        if unknown and chunk.repeated >= MOST_REPEATS:
            why = f"no answer to {chunk.repeated + 1} tries: it may have arrived"
            return await self._given_up(delivery, why)
        again = unknown and self._would_be_seen(body, delivery)
        marked = again or chunk.repeated or body.get("marked")
        text = self._channel.repeated(body["chunk"]) if marked else body["chunk"]
        await self._line.gate.enter(route)
        await self._deliveries.begin_chunk(delivery.id, chunk.position, repeated=again)
        try:
            message = await self._call(route, body["edit"], text, key)
            return await self._arrived(delivery, chunk, message)
        except ChannelError as error:
            return await self._failed(_Try(delivery, route, chunk, body), error)
        except asyncio.CancelledError:
            await asyncio.shield(self._let_go(delivery, DeliveryState.UNKNOWN))
            raise

    def _would_be_seen(self, body: Body, delivery: Delivery) -> bool:
        """Whether a part that had arrived would be seen twice; an edit would not."""
        can = self._channel.capabilities
        age = (datetime.now(UTC) - delivery.created_at).total_seconds()
        known = can.idempotent and age < can.remembers
        return body["edit"] is None and not (known or can.read_back)

    async def _call(self, route: Route, edited: str | None, text: str, key: str) -> str:
        if edited is None:
            return await self._line.send(route, text, key=key) or f"unknown:{key}"
        await self._line.edit(route, edited, text)
        return edited

    async def _arrived(self, delivery: Delivery, chunk: Chunk, message: str) -> Left:
        self._monitor.delivered()
        while True:
            try:
                state = await self._deliveries.end_chunk(delivery.id, chunk.position, message)
            except StoreError as error:
                # Else it would be sent once more.
                self._throttle.warn_store_failure(log, "store_failed", error, delivery=delivery.id)
                await asyncio.sleep(_STORE_PAUSE)
            else:
                if state is DeliveryState.FAILED:
                    raise InvalidTransition(
                        "delivery", old=state.value, new=DeliveryState.SENDING.value
                    )
                return Left.OVER

    async def _failed(self, tried: _Try, error: ChannelError) -> Left:
        log.info(
            "delivery_failed",
            delivery=tried.delivery.id,
            part=tried.chunk.position,
            error=str(error),
        )
        if not isinstance(error, Throttled):
            self._monitor.failed(str(error))
        if isinstance(error, NotDelivered):
            return await self._refused(tried, error)
        state = DeliveryState.PENDING
        if isinstance(error, OutcomeUnknown):
            state = DeliveryState.UNKNOWN
        await self._moved_to(tried.delivery, state, str(error))
        # A wait that the platform asks for is the gate's affair.
        return Left.AGAIN if isinstance(error, Throttled) else Left.PAUSE

    async def _refused(self, tried: _Try, error: NotDelivered) -> Left:
        """Another form of it where that may help, else it is given up."""
        delivery, body = tried.delivery, tried.body
        if error.moved is not None:
            await self._moved_to(delivery, DeliveryState.PENDING, str(error))
            await self._moved(tried.route, error.moved)
            return Left.AGAIN
        plain = self._channel.plain(body["chunk"])
        if error.gone and body["edit"] is not None:
            other = {**body, "edit": None}
        elif error.formatting and plain != body["chunk"]:
            other = {**body, "chunk": plain}
        else:
            return await self._given_up(delivery, str(error))
        await self._deliveries.replace_chunk(delivery.id, tried.chunk.position, *_stored([other]))
        await self._moved_to(delivery, DeliveryState.PENDING, str(error))
        return Left.AGAIN

    async def _given_up(self, delivery: Delivery, why: str) -> NoReturn:
        self._monitor.gave_up()
        log.warning("delivery_given_up", delivery=delivery.id, route=delivery.route, error=why)
        await self._moved_to(delivery, DeliveryState.FAILED, why)
        raise GivenUp(why)

    async def _moved_to(self, delivery: Delivery, state: DeliveryState, why: str | None) -> None:
        await self._deliveries.set_chunk_state(delivery.id, state, error=why)


Body = dict[str, Any]


@dataclass(frozen=True, slots=True)
class _Try:
    delivery: Delivery
    route: Route
    chunk: Chunk
    body: Body


class GivenUp(Exception):
    """A delivery is a dead letter now."""


def _body(chunk: str) -> Body:
    """A part that is sent as a message of its own."""
    return {"chunk": chunk, "edit": None}


def _stored(bodies: Sequence[Body]) -> list[str]:
    return [json.dumps(body, ensure_ascii=False) for body in bodies]


class _Lane:
    """One chat."""

    def __init__(self) -> None:
        self.routes: dict[RouteKey, None] = {}
        #: Something new may be there; cleared before the look.
        self.more = True
        #: Nothing is under way: it waits for the platform.
        self.waits = False


class Lanes:
    """One line of deliveries per chat, for as long as there is something to deliver."""

    def __init__(
        self,
        deliveries: DeliveryQueue,
        line: Line,
        sender: Sender,
        timer: Timer,
        *,
        label: str | None,
    ) -> None:
        self._throttle = LogThrottle()
        self._deliveries, self._line, self._sender, self._timer = deliveries, line, sender, timer
        self._label = label
        self._lanes: dict[str, _Lane] = {}
        self._tasks: dict[asyncio.Task[None], _Lane] = {}
        self._draining = False

    async def run(self) -> None:
        """Deliver what is stored, and whatever is stored from now on; for ever."""
        look = asyncio.create_task(self._look_again(), name="deliveries:look")
        try:
            async for routes in self._deliveries.watch_routes():
                for route in (
                    await self._deliveries.list_undelivered_routes() if routes is None else routes
                ):
                    self.kick(route)
        finally:
            look.cancel()

    async def _look_again(self) -> None:
        while True:
            await asyncio.sleep(LOOK_EVERY)
            try:
                for route in await self._deliveries.list_undelivered_routes():
                    self.kick(route)
            except StoreError as error:
                self._throttle.warn_store_failure(log, "store_failed", error, task="deliveries")

    def kick(self, key: RouteKey) -> None:
        """There may be something to deliver on a route."""
        route = Route.parse(key)
        mine = (route.platform, route.account) == (self._line.channel.platform, self._label)
        if self._draining or not mine:
            return
        lane = self._lanes.get(route.chat)
        if lane is None:
            lane = self._lanes[route.chat] = _Lane()
            task = asyncio.create_task(self._live(route, lane), name=f"lane:{route.chat}")
            self._tasks[task] = lane
            task.add_done_callback(self._tasks.pop)
        lane.routes[key] = None
        lane.more = True

    async def flush(self) -> None:
        """Deliver what is stored now."""
        for route in await self._deliveries.list_undelivered_routes():
            self.kick(route)
        if tasks := self._under_way():
            await asyncio.wait(tasks)

    def _under_way(self) -> list[asyncio.Task[None]]:
        return [task for task, lane in self._tasks.items() if not lane.waits]

    async def drain(self, seconds: float) -> None:
        """Begin nothing more; what is on its way may arrive, but not for long."""
        self._draining = True
        if tasks := self._under_way():
            await asyncio.wait(tasks, timeout=seconds)
        for task in (tasks := list(self._tasks)):
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    async def _live(self, route: Route, lane: _Lane) -> None:
        pause = 0.0
        try:
            while lane.more and not self._draining:
                lane.more = False
                await self._wait(route, lane, pause)
                pause = await self._next(route, lane, pause)
        finally:
            # In one step of the event loop: a kick comes before or finds no lane.
            del self._lanes[route.chat]

    async def _wait(self, route: Route, lane: _Lane, pause: float) -> None:
        """Wait for the platform: after a failure, and for as long as it asks."""
        lane.waits = True
        if pause:
            await self._timer.sleep(pause * random.uniform(0.5, 1.0))
        await self._line.gate.until_open(route)
        lane.waits = False

    async def _next(self, route: Route, lane: _Lane, pause: float) -> float:
        """Deliver the next thing, if there is one; seconds to wait before the one after."""
        delivery: DeliveryId | None = None
        try:
            if self._draining or (claimed := await self._claimed(lane)) is None:
                return 0.0
            lane.more = True
            delivery = claimed.delivery.id
            left = await self._sender.send(claimed.delivery, claimed.chunks)
        except GivenUp:
            left = Left.AGAIN
        except (NotFound, InvalidTransition) as error:
            # Deleted or dropped while it was on its way.
            log.info("delivery_gone", delivery=delivery, error=str(error))
            left = Left.PAUSE
        except ClewError as error:
            log.warning("delivery_not_tried", delivery=delivery, error=str(error))
            left = Left.PAUSE
        except Exception:
            log.exception("delivery_broke", delivery=delivery)
            left = Left.PAUSE if delivery is None else await self._buried(delivery)
        lane.more |= left is not Left.OVER
        if left is not Left.PAUSE:
            return 0.0
        return min(LONGEST_PAUSE, max(FIRST_PAUSE, pause * 2))

    async def _claimed(self, lane: _Lane) -> ClaimedDelivery | None:
        return await self._deliveries.claim_next(list(lane.routes))

    async def _buried(self, delivery: DeliveryId) -> Left:
        """A fault of ours, which would come again: it must not hold the chat up for ever."""
        with suppress(ClewError):
            why = "an internal error, which the log describes"
            await self._deliveries.set_chunk_state(delivery, DeliveryState.FAILED, error=why)
        return Left.PAUSE
