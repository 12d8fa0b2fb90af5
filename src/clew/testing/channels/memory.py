"""An in-memory platform with a minimal channel: an example, and a double for tests."""

from __future__ import annotations

import asyncio
import itertools
import json
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, cast

from clew.core.channel_events import (
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
from clew.gateway.text.rich_text import BlockFrame, TextRun, to_plain_text
from clew.gateway.text.splitting import TextCost
from clew.gateway.timer import SystemTimer, Timer
from clew.testing.channels.contract import ShownMessage

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence
    from types import TracebackType
    from typing import Self

    from clew.core.sent_files import SentFile

_REPEAT_NOTICE = "(may be a repeat) "
_MAX_LENGTH = 1000

CAPABILITIES = ChannelCapabilities(max_length=_MAX_LENGTH, edits=True, buttons=True, typing=True)


@dataclass(kw_only=True)
class _Message:
    id: str
    chat: str
    text: str
    document: str | None = None
    buttons: list[list[str]] = field(default_factory=list[list[str]])


@dataclass(kw_only=True)
class MemoryPlatform:
    """People, chats and messages; unacknowledged events stay pending."""

    account: str = "bot"
    capabilities: ChannelCapabilities = CAPABILITIES
    #: The default chat of ``post_message``.
    person: str = "42"
    #: Every call that had an effect: (method, chat).
    calls: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    pending_events: list[ChannelEvent] = field(default_factory=list[ChannelEvent])
    messages: list[_Message] = field(default_factory=list[_Message])
    #: The clock for throttling.
    timer: Timer = field(default_factory=SystemTimer)
    #: When throttling of each chat ends, and the calls made in spite of it.
    throttled: dict[str, float] = field(default_factory=dict[str, float])
    intrusions: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    #: Called before each call with (method, chat); returns the seconds to throttle the chat.
    throttle_hook: Callable[[str, str], float | None] = lambda _what, _chat: None
    #: Errors of the next calls; true: raised after the effect.
    next_failures: list[tuple[ChannelError, bool]] = field(
        default_factory=list[tuple[ChannelError, bool]]
    )
    #: Seconds that sending a message takes.
    send_delay: float = 0.0
    blocked_chats: set[str] = field(default_factory=set[str])
    answers: dict[str, str] = field(default_factory=dict[str, str])
    #: Outcomes that replaced buttons, in order.
    outcomes: list[str] = field(default_factory=list[str])
    event_added: asyncio.Event = field(default_factory=asyncio.Event)
    _ids: itertools.count[int] = field(default_factory=itertools.count)
    _keys: dict[str, str] = field(default_factory=dict[str, str])

    @property
    def route(self) -> Route:
        return self.build_route(self.person)

    def build_route(self, chat: str, *, kind: str = DM) -> Route:
        return Route(platform="memory", kind=kind, chat=chat)

    def create_channel(self) -> MemoryChannel:
        return MemoryChannel(self)

    def post_message(
        self,
        text: str,
        *,
        user: str | None = None,
        chat: str | None = None,
        kind: str = DM,
        sent_at: datetime | None = None,
    ) -> str:
        """Post a message of a person, which may have been on its way for a while; return its id."""
        message = f"p{next(self._ids)}"
        sender = user or self.person
        self.add_event(
            MessageReceived(
                event=message,
                route=self.build_route(chat or sender, kind=kind),
                sender=MessageSender(id=sender, name=f"Person {sender}"),
                message=message,
                text=text,
                sent_at=sent_at or datetime.now(UTC),
            )
        )
        return message

    def press_button(
        self, label: str, *, user: str | None = None, route: Route | None = None
    ) -> str:
        """Press a button under the last message that has any; return the event."""
        message = [one for one in self.messages if one.buttons][-1]
        data = next(data for name, data in message.buttons if name == label)
        event = f"press{next(self._ids)}"
        self.add_event(
            ButtonPressed(
                event=event,
                route=route or self.build_route(message.chat),
                sender=MessageSender(id=user or self.person),
                message=message.id,
                data=data,
            )
        )
        return event

    def add_event(self, event: ChannelEvent) -> None:
        self.pending_events.append(event)
        self.event_added.set()

    def shown_messages(self, chat: str | None = None) -> Sequence[ShownMessage]:
        return [
            ShownMessage(message=one.id, text=one.text, document=one.document)
            for one in self.messages
            if one.chat == (chat or self.person)
        ]

    def list_texts(self, chat: str | None = None) -> list[str]:
        return [shown.text for shown in self.shown_messages(chat)]

    def cut_next_call(self, *, after: bool) -> None:
        self.next_failures.append((OutcomeUnknown("cut"), after))

    def throttle_calls(self, seconds: int) -> None:
        self.throttled[self.person] = self.timer.monotonic() + seconds

    def block_agent(self) -> None:
        self.blocked_chats.add(self.person)

    # Methods for the channel

    def check_call(self, what: str, chat: str) -> ChannelError | None:
        """Raise if a call fails before its effect; return an error to raise after it."""
        self.check_throttle(what, chat)
        if chat in self.blocked_chats:
            raise NotDelivered("the person has shut the agent out")
        error, after = self.next_failures.pop(0) if self.next_failures else (None, False)
        if error is not None and not after:
            raise error
        self.calls.append((what, chat))
        return error

    def check_throttle(self, what: str, chat: str) -> None:
        """Raise if the chat is throttled."""
        now = self.timer.monotonic()
        if (left := self.throttled.get(chat, now) - now) > 0:
            self.intrusions.append((what, chat))
            raise Throttled(left)
        if (wait := self.throttle_hook(what, chat)) is not None:
            self.throttled[chat] = now + wait
            raise Throttled(wait)

    def add_message(self, chat: str, body: dict[str, object], key: str) -> str:
        if self.capabilities.idempotent and key in self._keys:
            return self._keys[key]
        message = _Message(id=f"m{next(self._ids)}", chat=chat, text=str(body["text"]))
        message.document = cast("str | None", body.get("document"))
        message.buttons = [list(map(str, pair)) for pair in _button_pairs(body)]
        self.messages.append(message)
        self._keys[key] = message.id
        return message.id

    def edit_message(self, message: str, body: dict[str, object]) -> None:
        for one in self.messages:
            if one.id == message:
                one.text = str(body["text"])
                return
        raise NotDelivered("there is no such message", gone=True)

    def find_by_key(self, key: str) -> str | None:
        return self._keys.get(key)


def _button_pairs(body: dict[str, object]) -> Sequence[Sequence[object]]:
    pairs = body.get("buttons")
    return pairs if isinstance(pairs, list) else []  # pyright: ignore[reportUnknownVariableType]


class _CharacterMeasure:
    """The measure of a platform with plain text."""

    def run_cost(self, run: TextRun, frame: BlockFrame | None) -> TextCost:
        return TextCost(len(run.text))

    def frame_cost(self, frame: BlockFrame) -> TextCost:
        return TextCost(0)

    def text_cost(self, text: str) -> TextCost:
        return TextCost(len(text))

    def can_link(self, address: str) -> bool:
        return False


class MemoryChannel(Channel):
    """The channel to a ``MemoryPlatform``."""

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
            while not there.pending_events:
                there.event_added.clear()
                await there.event_added.wait()
            batch = list(there.pending_events)
            yield batch
            # The next batch was requested: this one is stored.
            del there.pending_events[: len(batch)]

    def render(self, message: OutboundMessage) -> Sequence[str]:
        parts = paginate(message, _CharacterMeasure(), TextCost(_MAX_LENGTH - len(_REPEAT_NOTICE)))
        bodies: list[dict[str, object]] = [{"text": to_plain_text(part)} for part in parts]
        if bodies and message.buttons:
            bodies[-1]["buttons"] = [[button.label, button.data] for button in message.buttons]
        if bodies and message.document is not None:
            bodies.insert(0, {"text": "", "document": message.document.text})
        return [json.dumps(body) for body in bodies]

    def render_file(self, file: SentFile) -> str:
        return json.dumps({"text": file.caption, "document": ""})

    def with_repeat_notice(self, chunk: str) -> str:
        body = json.loads(chunk)
        return json.dumps({**body, "text": _REPEAT_NOTICE + body["text"]})

    async def send(self, route: Route, chunk: str, *, key: str) -> str:
        late = self._platform.check_call("send", route.chat)
        await asyncio.sleep(self._platform.send_delay)
        message = self._platform.add_message(route.chat, json.loads(chunk), key)
        if late is not None:
            raise late
        return message

    async def send_file(self, route: Route, chunk: str, content: bytes, *, key: str) -> str:
        body = {**json.loads(chunk), "document": content.decode(errors="replace")}
        return await self.send(route, json.dumps(body), key=key)

    async def edit(self, route: Route, message: str, chunk: str) -> None:
        late = self._platform.check_call("edit", route.chat)
        self._platform.edit_message(message, json.loads(chunk))
        if late is not None:
            raise late

    async def find_message(self, route: Route, chunk: str, *, key: str) -> str | None:
        return self._platform.find_by_key(key)

    async def show_typing(self, route: Route) -> None:
        self._platform.check_throttle("typing", route.chat)

    async def answer_button(
        self, pressed: ButtonPressed, text: str, *, closed: bool, became: str = ""
    ) -> None:
        self._platform.check_throttle("answer", pressed.route.chat)
        self._platform.answers[pressed.event] = text
        if became:
            self._platform.outcomes.append(became)
