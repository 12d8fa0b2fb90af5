"""
The delivery worker: sends stored messages, in order per chat, each chunk once.

A chunk is marked before it is sent and after it has arrived. If the outcome is unknown the
platform is queried; where that is impossible the chunk is sent once more with a notice.
"""

from __future__ import annotations

import asyncio
import enum
import json
from contextlib import suppress
from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NoReturn

import structlog

from clew import wording
from clew.background import cancel_and_wait, shield_until_done
from clew.backoff import add_jitter
from clew.core.channel_events import OutboundMessage, load_message, verbatim
from clew.core.delivery import DeliveryKind, DeliveryState
from clew.core.ids import TurnId
from clew.core.route import Route
from clew.core.sent_files import SentFile
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
from clew.record import Record, replace

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from clew.core.delivery import Chunk, Delivery
    from clew.core.ids import DeliveryId
    from clew.core.route import RouteKey
    from clew.engine.deliveries import AnswerPreview, ClaimedDelivery, DeliveryQueue
    from clew.gateway.delivery_monitor import DeliveryMonitor
    from clew.gateway.platform_client import PlatformClient
    from clew.gateway.previews import PreviewRegistry
    from clew.gateway.timer import Timer

log = structlog.get_logger(__name__)

#: Repeats without an answer after which a chunk is abandoned.
MAX_REPEATS = 5
#: Seconds between two attempts at an unreachable platform: doubled up to the longest.
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 60.0
#: Seconds after which a store operation is retried.
_STORE_RETRY_PAUSE = 0.5
#: Seconds between two polls for deliveries without a wake-up.
POLL_INTERVAL = 5.0

#: The kinds of deliveries that previews turn into.
_PREVIEWED_KINDS = (DeliveryKind.ANSWER, DeliveryKind.TEXT)


class SendOutcome(enum.Enum):
    """The result of an attempt to send a delivery."""

    DONE = "over"  #: delivered or abandoned
    RETRY = "again"  #: to be retried as soon as the rate limiter allows it
    RETRY_LATER = "pause"  #: to be retried after a pause: the platform is unreachable


class DeliverySender:
    """Sends one delivery at a time."""

    def __init__(
        self,
        deliveries: DeliveryQueue,
        line: PlatformClient,
        previews: PreviewRegistry,
        moved: Callable[[Route, str], Awaitable[None]],
        monitor: DeliveryMonitor,
    ) -> None:
        self._throttle = LogThrottle()
        self._deliveries, self._line, self._previews = deliveries, line, previews
        self._channel, self._migrate_chat, self._monitor = line.channel, moved, monitor

    async def send(self, delivery: Delivery, chunks: Sequence[Chunk]) -> SendOutcome:
        """Send the chunks of a delivery that are not delivered yet."""
        route = Route.parse(delivery.route)
        try:
            for chunk in chunks or await self._fix_chunks(delivery):
                if chunk.state is DeliveryState.DELIVERED:
                    continue
                if (left := await self._send_chunk(delivery, route, chunk)) is not SendOutcome.DONE:
                    return left
        except asyncio.CancelledError:
            # The process may live on: recovery would not find the chunk.
            await shield_until_done(self._release_delivery(delivery, DeliveryState.PENDING))
            raise
        await self._deliveries.close_if_done(delivery.id)
        return SendOutcome.DONE

    async def _release_delivery(self, delivery: Delivery, state: DeliveryState) -> None:
        # Refused where an interrupted chunk has set it to unknown already.
        with suppress(NotFound, InvalidTransition, StoreError):
            await self._set_state(delivery, state, "the channel was stopped")

    async def _fix_chunks(self, delivery: Delivery) -> Sequence[Chunk]:
        """Render and store the chunks of a delivery that is not begun."""
        message = wording.word_message(load_message(delivery.body))
        if message.document is not None and not self._channel.capabilities.documents:
            await self._abandon_delivery(delivery, "the channel cannot send its document")
        bodies = [_new_body(chunk) for chunk in self._channel.render(replace(message, files=()))]
        bodies += [body for file in message.files for body in self._render_file(file)]
        if not bodies:
            # Marked as delivered, it would be lost silently.
            await self._abandon_delivery(delivery, "the channel makes no message of this text")
        turn = None if message.instead_of is None else TurnId(message.instead_of)
        if delivery.kind in _PREVIEWED_KINDS and turn is None:
            turn = delivery.turn_id
        if turn is None or not self._channel.capabilities.edits or "file" in bodies[0]:
            return await self._deliveries.store_chunks(delivery.id, _serialize_bodies(bodies))
        async with self._previews.get_lock(delivery.route):
            preview = await self._previews.take_message(delivery.route, turn)
            first = await self._replace_preview(preview, delivery, bodies[0])
            bodies = [first, *bodies[1:]]
            if message.instead_of is not None and first["edit"] is None:
                bodies = []
            taken = None if preview is None else turn
            return await self._deliveries.store_chunks(
                delivery.id, _serialize_bodies(bodies), preview=taken
            )

    def _render_file(self, file: SentFile) -> Sequence[Body]:
        """Return the chunk of a file, or a line that names one which the platform does not take."""
        most = self._channel.capabilities.max_file_bytes
        if (why := wording.find_file_limit(self._channel.platform, file.size, most)) is not None:
            return self._render_missing(file, why)
        return [{**_new_body(self._channel.render_file(file)), "file": asdict(file)}]

    def _render_missing(self, file: SentFile, why: str) -> Sequence[Body]:
        line = wording.format_unsent_file(file, why)
        return [_new_body(chunk) for chunk in self._channel.render(verbatim(line))]

    async def _replace_preview(
        self, preview: AnswerPreview | None, delivery: Delivery, body: Body
    ) -> Body:
        """Return the first chunk as an edit of its preview, or marked as a possible repeat."""
        if preview is None:
            return body
        message = preview.message or await self._find_preview(preview, delivery, body)
        if message is not None:
            return {**body, "edit": message}
        # It may have arrived; that cannot be determined.
        return body if self._channel.capabilities.read_back else {**body, "marked": True}

    async def _find_preview(
        self, preview: AnswerPreview, delivery: Delivery, body: Body
    ) -> str | None:
        """Return the preview message whose process died while sending it, if it can be found."""
        can, route = self._channel.capabilities, Route.parse(delivery.route)
        if can.read_back:
            return await self._line.find_message(route, body["chunk"], key=preview.key)
        age = (datetime.now(UTC) - preview.shown_at).total_seconds()
        if not (can.idempotent and age < can.key_lifetime):
            return None
        # The same key yields the same message, which is edited then.
        await self._line.rate_limiter.acquire(route)
        return await self._line.send_chunk(route, body["chunk"], key=preview.key)

    async def _send_chunk(self, delivery: Delivery, route: Route, chunk: Chunk) -> SendOutcome:
        body = json.loads(chunk.body)
        key = f"{delivery.id}:{chunk.position}"
        unknown = chunk.state is DeliveryState.UNKNOWN
        can = self._channel.capabilities
        if unknown and body["edit"] is None and (can.read_back or can.receipts):
            found = await self._line.find_message(route, body["chunk"], key=key)
            if found is not None:
                return await self._record_delivered(delivery, chunk, found)
        if unknown and chunk.repeated >= MAX_REPEATS:
            why = f"no answer to {chunk.repeated + 1} tries: it may have arrived"
            return await self._abandon_delivery(delivery, why)
        again = unknown and self._would_repeat_visibly(body, delivery)
        marked = again or chunk.repeated or body.get("marked")
        text = self._channel.with_repeat_notice(body["chunk"]) if marked else body["chunk"]
        await self._line.rate_limiter.acquire(route)
        await self._deliveries.begin_chunk(delivery.id, chunk.position, repeated=again)
        try:
            message = await self._call_platform(route, body, text, key)
            return await self._record_delivered(delivery, chunk, message)
        except ChannelError as error:
            return await self._handle_failure(_Attempt(delivery, route, chunk, body), error)
        except asyncio.CancelledError:
            await shield_until_done(self._release_delivery(delivery, DeliveryState.UNKNOWN))
            raise

    def _would_repeat_visibly(self, body: Body, delivery: Delivery) -> bool:
        """Return whether a chunk that had arrived would appear twice; an edit would not."""
        can = self._channel.capabilities
        age = (datetime.now(UTC) - delivery.created_at).total_seconds()
        known = can.idempotent and age < can.key_lifetime
        return body["edit"] is None and not (known or can.read_back)

    async def _call_platform(self, route: Route, body: Body, text: str, key: str) -> str:
        edited: str | None = body["edit"]
        if "file" in body:
            content = await self._deliveries.read_file(body["file"]["attachment"])
            if content is None:
                raise NotDelivered("its content is not kept any more")
            sent = await self._line.send_chunk(route, text, key=key, content=content)
            return sent or f"unknown:{key}"
        if edited is None:
            return await self._line.send_chunk(route, text, key=key) or f"unknown:{key}"
        await self._line.edit_message(route, edited, text)
        return edited

    async def _record_delivered(
        self, delivery: Delivery, chunk: Chunk, message: str
    ) -> SendOutcome:
        self._monitor.record_success()
        while True:
            try:
                state = await self._deliveries.end_chunk(delivery.id, chunk.position, message)
            except StoreError as error:
                # Otherwise it would be sent once more.
                self._throttle.warn_store_failure(log, "store_failed", error, delivery=delivery.id)
                await asyncio.sleep(_STORE_RETRY_PAUSE)
            else:
                if state is DeliveryState.FAILED:
                    raise InvalidTransition(
                        "delivery", old=state.value, new=DeliveryState.SENDING.value
                    )
                return SendOutcome.DONE

    async def _handle_failure(self, tried: _Attempt, error: ChannelError) -> SendOutcome:
        log.info(
            "delivery_failed",
            delivery=tried.delivery.id,
            part=tried.chunk.position,
            error=str(error),
        )
        if not isinstance(error, Throttled):
            self._monitor.record_failure(str(error))
        if isinstance(error, NotDelivered):
            return await self._handle_refusal(tried, error)
        state = DeliveryState.PENDING
        if isinstance(error, OutcomeUnknown):
            state = DeliveryState.UNKNOWN
        await self._set_state(tried.delivery, state, str(error))
        # The rate limiter handles throttling.
        return SendOutcome.RETRY if isinstance(error, Throttled) else SendOutcome.RETRY_LATER

    async def _handle_refusal(self, tried: _Attempt, error: NotDelivered) -> SendOutcome:
        """Try another form of the chunk where that may help, else abandon the delivery."""
        delivery, body = tried.delivery, tried.body
        if error.moved is not None:
            await self._set_state(delivery, DeliveryState.PENDING, str(error))
            await self._migrate_chat(tried.route, error.moved)
            return SendOutcome.RETRY
        plain = self._channel.without_formatting(body["chunk"])
        if error.gone and body["edit"] is not None:
            other = {**body, "edit": None}
        elif "file" in body:
            # Never silent: a line stands where the file would.
            (other, *_) = self._render_missing(SentFile(**body["file"]), str(error))
        elif error.formatting and plain != body["chunk"]:
            other = {**body, "chunk": plain}
        else:
            return await self._abandon_delivery(delivery, str(error))
        await self._deliveries.replace_chunk(
            delivery.id, tried.chunk.position, *_serialize_bodies([other])
        )
        await self._set_state(delivery, DeliveryState.PENDING, str(error))
        return SendOutcome.RETRY

    async def _abandon_delivery(self, delivery: Delivery, why: str) -> NoReturn:
        self._monitor.record_abandoned()
        log.warning("delivery_given_up", delivery=delivery.id, route=delivery.route, error=why)
        document = load_message(delivery.body).document
        if document is None:
            await self._set_state(delivery, DeliveryState.FAILED, why)
        else:
            notice = OutboundMessage(text=document.otherwise)
            await self._deliveries.replace_delivery(delivery, notice, error=why)
        raise DeadLettered(why)

    async def _set_state(self, delivery: Delivery, state: DeliveryState, why: str | None) -> None:
        await self._deliveries.set_chunk_state(delivery.id, state, error=why)


Body = dict[str, Any]


class _Attempt(Record, kw_only=False):
    delivery: Delivery
    route: Route
    chunk: Chunk
    body: Body


class DeadLettered(Exception):
    """The delivery has become a dead letter."""


def _new_body(chunk: str) -> Body:
    """Return the stored form of a chunk that is sent as a new message."""
    return {"chunk": chunk, "edit": None}


def _serialize_bodies(bodies: Sequence[Body]) -> list[str]:
    return [json.dumps(body, ensure_ascii=False) for body in bodies]


class _ChatLane:
    """The delivery queue of one chat."""

    def __init__(self) -> None:
        self.routes: dict[RouteKey, None] = {}
        #: New deliveries may exist; cleared before each check.
        self.has_more = True
        #: Nothing is running: the lane waits for the platform.
        self.is_waiting = False


class DeliveryWorker:
    """Delivers chat by chat, with one task per chat that has deliveries."""

    def __init__(
        self,
        deliveries: DeliveryQueue,
        line: PlatformClient,
        sender: DeliverySender,
        timer: Timer,
        *,
        label: str | None,
    ) -> None:
        self._throttle = LogThrottle()
        self._deliveries, self._line, self._sender, self._timer = deliveries, line, sender, timer
        self._label = label
        self._lanes: dict[str, _ChatLane] = {}
        self._tasks: dict[asyncio.Task[None], _ChatLane] = {}
        self._draining = False

    async def run(self) -> None:
        """Deliver stored and new deliveries, indefinitely."""
        look = asyncio.create_task(self._poll_undelivered(), name="deliveries:look")
        try:
            async for routes in self._deliveries.watch_routes():
                for route in (
                    await self._deliveries.list_undelivered_routes() if routes is None else routes
                ):
                    self.wake_route(route)
        finally:
            look.cancel()

    async def _poll_undelivered(self) -> None:
        while True:
            await asyncio.sleep(POLL_INTERVAL)
            try:
                for route in await self._deliveries.list_undelivered_routes():
                    self.wake_route(route)
            except StoreError as error:
                self._throttle.warn_store_failure(log, "store_failed", error, task="deliveries")

    def wake_route(self, key: RouteKey) -> None:
        """Check a route for deliveries."""
        route = Route.parse(key)
        mine = (route.platform, route.account) == (self._line.channel.platform, self._label)
        if self._draining or not mine:
            return
        lane = self._lanes.get(route.chat)
        if lane is None:
            lane = self._lanes[route.chat] = _ChatLane()
            task = asyncio.create_task(self._run_lane(route, lane), name=f"lane:{route.chat}")
            self._tasks[task] = lane
            task.add_done_callback(self._tasks.pop)
        lane.routes[key] = None
        lane.has_more = True

    async def flush(self) -> None:
        """Deliver what is stored now."""
        for route in await self._deliveries.list_undelivered_routes():
            self.wake_route(route)
        if tasks := self._active_tasks():
            await asyncio.wait(tasks)

    def _active_tasks(self) -> list[asyncio.Task[None]]:
        return [task for task, lane in self._tasks.items() if not lane.is_waiting]

    async def drain(self, seconds: float) -> None:
        """Begin no more deliveries; let running ones end for ``seconds``, then cancel them."""
        self._draining = True
        if tasks := self._active_tasks():
            await asyncio.wait(tasks, timeout=seconds)
        await cancel_and_wait(*self._tasks)

    async def _run_lane(self, route: Route, lane: _ChatLane) -> None:
        pause = 0.0
        try:
            while lane.has_more and not self._draining:
                lane.has_more = False
                await self._wait_for_platform(route, lane, pause)
                pause = await self._send_next(route, lane, pause)
        finally:
            # In one step of the event loop: a wake-up comes before, or finds no lane.
            del self._lanes[route.chat]

    async def _wait_for_platform(self, route: Route, lane: _ChatLane, pause: float) -> None:
        """Wait after a failure, and as long as the platform is throttling."""
        lane.is_waiting = True
        if pause:
            await self._timer.sleep(add_jitter(pause))
        await self._line.rate_limiter.wait_until_open(route)
        lane.is_waiting = False

    async def _send_next(self, route: Route, lane: _ChatLane, pause: float) -> float:
        """Send the next delivery, if any; return the seconds to wait afterwards."""
        delivery: DeliveryId | None = None
        try:
            if self._draining or (claimed := await self._claim_next(lane)) is None:
                return 0.0
            lane.has_more = True
            delivery = claimed.delivery.id
            left = await self._sender.send(claimed.delivery, claimed.chunks)
        except DeadLettered:
            left = SendOutcome.RETRY
        except (NotFound, InvalidTransition) as error:
            # Deleted or dropped while it was being sent.
            log.info("delivery_gone", delivery=delivery, error=str(error))
            left = SendOutcome.RETRY_LATER
        except ClewError as error:
            log.warning("delivery_not_tried", delivery=delivery, error=str(error))
            left = SendOutcome.RETRY_LATER
        except Exception:  # a channel may raise anything: only this delivery fails
            log.exception("delivery_broke", delivery=delivery)
            left = (
                SendOutcome.RETRY_LATER
                if delivery is None
                else await self._fail_permanently(delivery)
            )
        lane.has_more |= left is not SendOutcome.DONE
        if left is not SendOutcome.RETRY_LATER:
            return 0.0
        return min(LONGEST_PAUSE, max(FIRST_PAUSE, pause * 2))

    async def _claim_next(self, lane: _ChatLane) -> ClaimedDelivery | None:
        return await self._deliveries.claim_next(list(lane.routes))

    async def _fail_permanently(self, delivery: DeliveryId) -> SendOutcome:
        """Fail a delivery after an internal error, so that it cannot block the chat."""
        with suppress(ClewError):
            why = "an internal error, which the log describes"
            await self._deliveries.set_chunk_state(delivery, DeliveryState.FAILED, error=why)
        return SendOutcome.RETRY_LATER
