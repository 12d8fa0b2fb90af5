"""The contract suite that every channel passes."""

from __future__ import annotations

import abc
import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from clew.core.chat import MessageReceived, OutboundMessage
from clew.errors import ChannelError, NotDelivered, NotSent, OutcomeUnknown, Throttled

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence
    from contextlib import AbstractAsyncContextManager

    from clew.core.chat import ChannelEvent
    from clew.core.route import Route
    from clew.gateway.channel import Channel

#: Seconds after which a channel has nothing to tell.
_QUIET = 0.3
_PATIENCE = 30.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Shown:
    """A message of the agent, as the platform shows it."""

    message: str
    text: str


class Platform(Protocol):
    """
    A platform, or a fake of one, with a person and the agent in a direct chat.

    Failures are those of the next call that would change something on the platform, polls left out.
    """

    @property
    def route(self) -> Route:
        """The direct chat."""
        ...

    def channel(self) -> Channel:
        """A new channel to it, with the same settings each time; not entered yet."""
        ...

    def say(self, text: str) -> object:
        """The person writes to the agent."""
        ...

    def shown(self) -> Sequence[Shown]:
        """What the agent wrote in the chat, as it is shown now, in order."""
        ...

    def cut(self, *, after: bool) -> None:
        """The next call loses its connection, before or ``after`` it had its effect."""
        ...

    def throttle(self, seconds: int) -> None:
        """The platform takes no calls for so long."""
        ...

    def refuse(self) -> None:
        """The person has shut the agent out."""
        ...


class ChannelContract(abc.ABC):
    """
    Subclass it in a test module, as ``TestMyChannel``, and say where the platform is.

    Run it with pytest and its anyio plugin (``anyio_mode = "auto"``).
    """

    @abc.abstractmethod
    def platform(self) -> AbstractAsyncContextManager[Platform]:
        """The platform, for one test."""

    # Receiving

    async def test_what_a_person_says_is_told(self) -> None:
        async with self.platform() as platform, platform.channel() as channel:
            events = channel.receive()
            platform.say("Hello")
            (heard,) = await _told(events)
            assert isinstance(heard, MessageReceived)
            assert heard.text == "Hello"
            assert heard.addressed
            assert heard.route.key == platform.route.key
            assert heard.route.platform == channel.platform
            assert heard.sender.id

    async def test_what_was_not_stored_is_told_again_after_a_restart(self) -> None:
        async with self.platform() as platform:
            async with platform.channel() as channel:
                platform.say("Hello")
                (first,) = await _told(channel.receive())
                # The next batch is never asked for: the process is killed here.
            async with platform.channel() as channel:
                (again,) = await _told(channel.receive())
            assert (again.event, again) == (first.event, first)

    async def test_what_was_stored_is_not_told_again(self) -> None:
        async with self.platform() as platform:
            async with platform.channel() as channel:
                events = channel.receive()
                platform.say("one")
                await _told(events)
                # Asking for the next batch says that the first one is stored.
                waiting = asyncio.ensure_future(_told(events))
                await asyncio.sleep(_QUIET)
                platform.say("two")
                (second,) = await waiting
            async with platform.channel() as channel:
                (again,) = await _told(channel.receive())
            assert again.event == second.event

    async def test_messages_are_told_in_order_and_each_has_an_event_of_its_own(self) -> None:
        async with self.platform() as platform, platform.channel() as channel:
            for number in range(5):
                platform.say(f"message {number}")
            heard: list[ChannelEvent] = []
            events = channel.receive()
            while len(heard) < 5:
                heard += await _told(events)
            assert [one.text for one in heard if isinstance(one, MessageReceived)] == [
                f"message {number}" for number in range(5)
            ]
            assert len({one.event for one in heard}) == 5

    # Sending

    async def test_a_message_is_sent_and_shown(self) -> None:
        async with self.platform() as platform, platform.channel() as channel:
            first = await _sent(channel, platform, "Hello")
            second = await _sent(channel, platform, "again")
            assert [shown.message for shown in platform.shown()] == [first, second]
            assert [shown.text.strip() for shown in platform.shown()] == ["Hello", "again"]

    async def test_what_was_sent_has_an_id_of_its_own(self) -> None:
        async with self.platform() as platform, platform.channel() as channel:
            ids: list[object] = [await _sent(channel, platform, text) for text in ("one", "two")]
            assert all(isinstance(id_, str) and id_.strip() for id_ in ids), ids
            assert len(set(ids)) == 2

    async def test_a_long_text_is_sent_in_parts_and_none_of_it_is_lost(self) -> None:
        words = [f"word{number}" for number in range(4000)]
        async with self.platform() as platform, platform.channel() as channel:
            chunks = channel.render(OutboundMessage(text=" ".join(words)))
            assert len(chunks) > 1
            for number, chunk in enumerate(chunks):
                await channel.send(platform.route, chunk, key=f"d:{number}")
            shown = " ".join(shown.text for shown in platform.shown())
            assert shown.split() == words

    async def test_a_message_without_text_has_no_parts(self) -> None:
        async with self.platform() as platform:
            assert not platform.channel().render(OutboundMessage(text=" \n "))

    async def test_a_text_of_nothing_but_marks_is_sent_as_it_is_written(self) -> None:
        async with self.platform() as platform, platform.channel() as channel:
            for number, text in enumerate(["```make all", "#", "[](<>)"]):
                (chunk,) = channel.render(OutboundMessage(text=text))
                await channel.send(platform.route, chunk, key=f"marks:{number}")
            assert all(shown.text.strip() for shown in platform.shown())

    async def test_a_repeat_fits_and_says_that_it_is_one(self) -> None:
        async with self.platform() as platform, platform.channel() as channel:
            for chunk in channel.render(OutboundMessage(text="word " * 4000)):
                again = channel.with_repeat_notice(chunk)
                assert again != chunk
                await channel.send(platform.route, again, key=f"again:{len(platform.shown())}")

    async def test_an_edit_changes_what_is_shown_and_twice_is_once(self) -> None:
        async with self.platform() as platform, platform.channel() as channel:
            if not channel.capabilities.edits:
                return
            message = await _sent(channel, platform, "first")
            (chunk,) = channel.render(OutboundMessage(text="second"))
            for _ in range(2):
                await channel.edit(platform.route, message, chunk)
            assert [shown.text.strip() for shown in platform.shown()] == ["second"]

    async def test_an_edit_of_what_is_gone_says_so(self) -> None:
        async with self.platform() as platform, platform.channel() as channel:
            if not channel.capabilities.edits:
                return
            message = await _sent(channel, platform, "first")
            (chunk,) = channel.render(OutboundMessage(text="second"))
            gone = str(int(message) + 1) if message.isdigit() else f"{message}x"
            error = await _error(channel.edit(platform.route, gone, chunk))
            assert isinstance(error, NotDelivered)
            assert error.gone

    # Failing

    async def test_a_wait_that_the_platform_asks_for_is_told_with_its_length(self) -> None:
        async with self.platform() as platform, platform.channel() as channel:
            platform.throttle(35)
            error = await _error(_sent(channel, platform, "Hello"))
            assert isinstance(error, Throttled)
            assert 30 <= error.seconds <= 36
            assert not platform.shown()

    async def test_a_call_that_breaks_before_its_effect_does_not_count_as_made(self) -> None:
        async with self.platform() as platform, platform.channel() as channel:
            platform.cut(after=False)
            error = await _error(_sent(channel, platform, "Hello"))
            assert isinstance(error, (NotSent, OutcomeUnknown))
            assert not platform.shown()
            await _sent(channel, platform, "Hello")
            assert len(platform.shown()) == 1

    async def test_a_call_that_breaks_after_its_effect_does_not_count_as_failed(self) -> None:
        async with self.platform() as platform, platform.channel() as channel:
            (chunk,) = channel.render(OutboundMessage(text="Hello"))
            platform.cut(after=True)
            error = await _error(channel.send(platform.route, chunk, key="k"))
            assert isinstance(error, OutcomeUnknown)
            (shown,) = platform.shown()
            if channel.capabilities.read_back:
                assert await channel.find_message(platform.route, chunk, key="k") == shown.message
            if channel.capabilities.idempotent:
                assert await channel.send(platform.route, chunk, key="k") == shown.message
                assert len(platform.shown()) == 1

    async def test_what_never_arrived_is_not_found(self) -> None:
        async with self.platform() as platform, platform.channel() as channel:
            (chunk,) = channel.render(OutboundMessage(text="Hello"))
            if channel.capabilities.read_back:
                assert await channel.find_message(platform.route, chunk, key="k") is None

    async def test_what_the_platform_refuses_for_good_is_not_to_be_tried_again(self) -> None:
        async with self.platform() as platform, platform.channel() as channel:
            platform.refuse()
            error = await _error(_sent(channel, platform, "Hello"))
            assert isinstance(error, NotDelivered)
            assert str(error)


async def _told(events: AsyncIterator[Sequence[ChannelEvent]]) -> Sequence[ChannelEvent]:
    """The next batch with anything in it."""
    async with asyncio.timeout(_PATIENCE):
        async for batch in events:
            if batch:
                return batch
    raise AssertionError("the channel told nothing more")


async def _sent(channel: Channel, platform: Platform, text: str) -> str:
    (chunk,) = channel.render(OutboundMessage(text=text))
    return await channel.send(platform.route, chunk, key=f"key:{text}")


async def _error(call: object) -> ChannelError:
    """What a call raises."""
    assert asyncio.iscoroutine(call)
    try:
        await call
    except ChannelError as error:
        return error
    raise AssertionError("the call did not fail")
