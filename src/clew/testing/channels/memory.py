"""A platform in memory, and the smallest channel to it: an example, and a double for tests."""

from __future__ import annotations

import asyncio
import itertools
import json
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from clew.core.chat import (
    DM,
    ButtonPressed,
    ChannelEvent,
    MessageReceived,
    MessageSender,
    OutboundMessage,
)
from clew.core.route import Route
from clew.errors import ChannelError, NotDelivered, OutcomeUnknown, Throttled
from clew.gateway.channel import Channel, ChannelCapabilities
from clew.gateway.text.paging import paginate
from clew.gateway.text.pieces import BlockFrame, TextRun, to_plain_text
from clew.gateway.text.splitting import TextCost
from clew.gateway.timer import SystemTimer, Timer
from clew.testing.channels.contract import Shown

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence
    from types import TracebackType
    from typing import Self

_REPEATED = "(may be a repeat) "
_LONGEST = 1000

CAPABILITIES = ChannelCapabilities(max_length=_LONGEST, edits=True, buttons=True, typing=True)


@dataclass(kw_only=True)
class _Message:
    id: str
    chat: str
    text: str
    buttons: list[list[str]] = field(default_factory=list[list[str]])


@dataclass(kw_only=True)
class MemoryPlatform:
    """People, chats and messages; what was told and not acknowledged stays."""

    account: str = "bot"
    capabilities: ChannelCapabilities = CAPABILITIES
    #: The chat of ``say`` without one.
    person: str = "42"
    #: Every call that had an effect: what was called, and in which chat.
    calls: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    waiting: list[ChannelEvent] = field(default_factory=list[ChannelEvent])
    messages: list[_Message] = field(default_factory=list[_Message])
    #: What waits are measured with.
    timer: Timer = field(default_factory=SystemTimer)
    #: Until when each chat takes no calls, and who called all the same.
    throttled: dict[str, float] = field(default_factory=dict[str, float])
    intrusions: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    #: Asked before each call (what, chat): seconds for which the chat takes none from now on.
    throttles: Callable[[str, str], float | None] = lambda _what, _chat: None
    #: What the next call raises, before or after its effect.
    fails: list[tuple[ChannelError, bool]] = field(default_factory=list[tuple[ChannelError, bool]])
    #: Seconds that a message is on its way.
    slow: float = 0.0
    refused: set[str] = field(default_factory=set[str])
    answers: dict[str, str] = field(default_factory=dict[str, str])
    #: What was to be shown in the place of buttons, in order.
    outcomes: list[str] = field(default_factory=list[str])
    news: asyncio.Event = field(default_factory=asyncio.Event)
    _ids: itertools.count[int] = field(default_factory=itertools.count)
    _keys: dict[str, str] = field(default_factory=dict[str, str])

    @property
    def route(self) -> Route:
        return self.route_of(self.person)

    def route_of(self, chat: str, *, kind: str = DM) -> Route:
        return Route(platform="memory", kind=kind, chat=chat)

    def channel(self) -> MemoryChannel:
        return MemoryChannel(self)

    def say(
        self, text: str, *, user: str | None = None, chat: str | None = None, kind: str = DM
    ) -> str:
        """Somebody writes; the message's id."""
        message = f"p{next(self._ids)}"
        sender = user or self.person
        self.tell(
            MessageReceived(
                event=message,
                route=self.route_of(chat or sender, kind=kind),
                sender=MessageSender(id=sender, name=f"Person {sender}"),
                message=message,
                text=text,
                sent_at=datetime.now(UTC),
            )
        )
        return message

    def press(self, label: str, *, user: str | None = None, route: Route | None = None) -> str:
        """Somebody presses a button under the last message that has one; the event."""
        message = [one for one in self.messages if one.buttons][-1]
        data = next(data for name, data in message.buttons if name == label)
        event = f"press{next(self._ids)}"
        self.tell(
            ButtonPressed(
                event=event,
                route=route or self.route_of(message.chat),
                sender=MessageSender(id=user or self.person),
                message=message.id,
                data=data,
            )
        )
        return event

    def tell(self, event: ChannelEvent) -> None:
        self.waiting.append(event)
        self.news.set()

    def shown(self, chat: str | None = None) -> Sequence[Shown]:
        return [
            Shown(message=one.id, text=one.text)
            for one in self.messages
            if one.chat == (chat or self.person)
        ]

    def texts(self, chat: str | None = None) -> list[str]:
        return [shown.text for shown in self.shown(chat)]

    def cut(self, *, after: bool) -> None:
        self.fails.append((OutcomeUnknown("cut"), after))

    def throttle(self, seconds: int) -> None:
        self.throttled[self.person] = self.timer.monotonic() + seconds

    def refuse(self) -> None:
        self.refused.add(self.person)

    # What a channel calls

    def check(self, what: str, chat: str) -> ChannelError | None:
        """Refuse a call, or fail after it: then with what is returned."""
        self.check_throttle(what, chat)
        if chat in self.refused:
            raise NotDelivered("the person has shut the agent out")
        error, after = self.fails.pop(0) if self.fails else (None, False)
        if error is not None and not after:
            raise error
        self.calls.append((what, chat))
        return error

    def check_throttle(self, what: str, chat: str) -> None:
        """Refuse a call to a chat that takes none."""
        now = self.timer.monotonic()
        if (left := self.throttled.get(chat, now) - now) > 0:
            self.intrusions.append((what, chat))
            raise Throttled(left)
        if (wait := self.throttles(what, chat)) is not None:
            self.throttled[chat] = now + wait
            raise Throttled(wait)

    def put(self, chat: str, body: dict[str, object], key: str) -> str:
        if self.capabilities.idempotent and key in self._keys:
            return self._keys[key]
        message = _Message(id=f"m{next(self._ids)}", chat=chat, text=str(body["text"]))
        message.buttons = [list(map(str, pair)) for pair in _pairs(body)]
        self.messages.append(message)
        self._keys[key] = message.id
        return message.id

    def change(self, message: str, body: dict[str, object]) -> None:
        for one in self.messages:
            if one.id == message:
                one.text = str(body["text"])
                return
        raise NotDelivered("there is no such message", gone=True)

    def by_key(self, key: str) -> str | None:
        return self._keys.get(key)


def _pairs(body: dict[str, object]) -> Sequence[Sequence[object]]:
    pairs = body.get("buttons")
    return pairs if isinstance(pairs, list) else []  # pyright: ignore[reportUnknownVariableType]


class _Characters:
    """Counts as a platform that shows plain text."""

    def run(self, run: TextRun, frame: BlockFrame | None) -> TextCost:
        return TextCost(len(run.text))

    def frame(self, frame: BlockFrame) -> TextCost:
        return TextCost(0)

    def text(self, text: str) -> TextCost:
        return TextCost(len(text))

    def links(self, address: str) -> bool:
        return False


class MemoryChannel(Channel):
    """The channel."""

    platform = "memory"

    def __init__(self, platform: MemoryPlatform) -> None:
        self._platform = platform
        self.account = platform.account
        self.capabilities = platform.capabilities
        self.entered = 0

    async def __aenter__(self) -> Self:
        self.entered += 1
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.entered -= 1

    async def receive(self) -> AsyncIterator[Sequence[ChannelEvent]]:
        there = self._platform
        while True:
            while not there.waiting:
                there.news.clear()
                await there.news.wait()
            batch = list(there.waiting)
            yield batch
            # Asked for more: the batch is stored.
            del there.waiting[: len(batch)]

    def render(self, message: OutboundMessage) -> Sequence[str]:
        parts = paginate(message, _Characters(), TextCost(_LONGEST - len(_REPEATED)))
        bodies: list[dict[str, object]] = [{"text": to_plain_text(part)} for part in parts]
        if bodies and message.buttons:
            bodies[-1]["buttons"] = [[button.label, button.data] for button in message.buttons]
        return [json.dumps(body) for body in bodies]

    def repeated(self, chunk: str) -> str:
        body = json.loads(chunk)
        return json.dumps({**body, "text": _REPEATED + body["text"]})

    async def send(self, route: Route, chunk: str, *, key: str) -> str:
        late = self._platform.check("send", route.chat)
        await asyncio.sleep(self._platform.slow)
        message = self._platform.put(route.chat, json.loads(chunk), key)
        if late is not None:
            raise late
        return message

    async def edit(self, route: Route, message: str, chunk: str) -> None:
        late = self._platform.check("edit", route.chat)
        self._platform.change(message, json.loads(chunk))
        if late is not None:
            raise late

    async def find(self, route: Route, chunk: str, *, key: str) -> str | None:
        return self._platform.by_key(key)

    async def typing(self, route: Route) -> None:
        self._platform.check_throttle("typing", route.chat)

    async def answer(
        self, pressed: ButtonPressed, text: str, *, closed: bool, became: str = ""
    ) -> None:
        self._platform.check_throttle("answer", pressed.route.chat)
        self._platform.answers[pressed.event] = text
        if became:
            self._platform.outcomes.append(became)
