"""The contract suite that every channel passes."""

from __future__ import annotations

import abc
import asyncio
import hashlib
from typing import TYPE_CHECKING, Protocol

from clew.core.channel_events import MessageReceived, OutboundMessage, TextDocument
from clew.core.sent_files import SentFile
from clew.errors import ChannelError, NotDelivered, NotSent, OutcomeUnknown, Throttled
from clew.record import Record, replace

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence
    from contextlib import AbstractAsyncContextManager

    from clew.core.channel_events import ChannelEvent
    from clew.core.route import Route
    from clew.gateway.channel import Channel

#: Seconds after which a channel has no more events.
_QUIET_TIME = 0.3
_TIMEOUT = 30.0


class ShownMessage(Record):
    """A message of the agent, as the platform shows it."""

    message: str
    text: str
    #: The text of its file.
    document: str | None = None


class ChannelPlatform(Protocol):
    """
    A platform, real or fake, with a direct chat between a person and the agent.

    Failures affect the next call that would change something on the platform, polls
    excepted.
    """

    @property
    def route(self) -> Route:
        """Return the route of the direct chat."""
        ...

    def create_channel(self) -> Channel:
        """Create a channel to the platform, not entered yet, with the same settings each time."""
        ...

    def post_message(self, text: str) -> object:
        """Post a message of the person to the agent."""
        ...

    def shown_messages(self) -> Sequence[ShownMessage]:
        """Return the agent's messages in the chat, as shown now, in order."""
        ...

    def cut_next_call(self, *, after: bool) -> None:
        """Cut the connection of the next call, before or ``after`` it takes effect."""
        ...

    def throttle_calls(self, seconds: int) -> None:
        """Refuse all calls for ``seconds``."""
        ...

    def block_agent(self) -> None:
        """Let the person block the agent."""
        ...


class ChannelContract(abc.ABC):
    """
    Base class of a channel's contract tests.

    Subclass it in a test module, as ``TestMyChannel``, and implement ``platform``. Run it
    with pytest and its anyio plugin (``anyio_mode = "auto"``).
    """

    @abc.abstractmethod
    def open_platform(self) -> AbstractAsyncContextManager[ChannelPlatform]:
        """Return the platform for one test."""

    # Receiving

    async def test_user_message_is_received(self) -> None:
        async with self.open_platform() as platform, platform.create_channel() as channel:
            events = channel.receive()
            platform.post_message("Hello")
            (heard,) = await _next_events(events)
            assert isinstance(heard, MessageReceived)
            assert heard.text == "Hello"
            assert heard.addressed
            assert heard.route.key == platform.route.key
            assert heard.route.platform == channel.platform
            assert heard.sender.id

    async def test_unconfirmed_events_are_received_again_after_restart(self) -> None:
        async with self.open_platform() as platform:
            async with platform.create_channel() as channel:
                platform.post_message("Hello")
                (first,) = await _next_events(channel.receive())
                # The next batch is never requested: the process is killed here.
            async with platform.create_channel() as channel:
                (again,) = await _next_events(channel.receive())
            assert (again.event, again) == (first.event, first)

    async def test_confirmed_events_are_not_received_again(self) -> None:
        async with self.open_platform() as platform:
            async with platform.create_channel() as channel:
                events = channel.receive()
                platform.post_message("one")
                await _next_events(events)
                # Requesting the next batch confirms that the first one is stored.
                waiting = asyncio.ensure_future(_next_events(events))
                await asyncio.sleep(_QUIET_TIME)
                platform.post_message("two")
                (second,) = await waiting
            async with platform.create_channel() as channel:
                (again,) = await _next_events(channel.receive())
            assert again.event == second.event

    async def test_messages_are_received_in_order_with_unique_events(self) -> None:
        async with self.open_platform() as platform, platform.create_channel() as channel:
            for number in range(5):
                platform.post_message(f"message {number}")
            heard: list[ChannelEvent] = []
            events = channel.receive()
            while len(heard) < 5:
                heard += await _next_events(events)
            assert [one.text for one in heard if isinstance(one, MessageReceived)] == [
                f"message {number}" for number in range(5)
            ]
            assert len({one.event for one in heard}) == 5

    # Sending

    async def test_a_message_is_sent_and_shown(self) -> None:
        async with self.open_platform() as platform, platform.create_channel() as channel:
            first = await _send_text(channel, platform, "Hello")
            second = await _send_text(channel, platform, "again")
            assert [shown.message for shown in platform.shown_messages()] == [first, second]
            assert [shown.text.strip() for shown in platform.shown_messages()] == ["Hello", "again"]

    async def test_sent_messages_have_unique_ids(self) -> None:
        async with self.open_platform() as platform, platform.create_channel() as channel:
            ids: list[object] = [
                await _send_text(channel, platform, text) for text in ("one", "two")
            ]
            assert all(isinstance(id_, str) and id_.strip() for id_ in ids), ids
            assert len(set(ids)) == 2

    async def test_long_text_is_split_without_loss(self) -> None:
        words = [f"word{number}" for number in range(4000)]
        async with self.open_platform() as platform, platform.create_channel() as channel:
            chunks = channel.render(OutboundMessage(text=" ".join(words)))
            assert len(chunks) > 1
            for number, chunk in enumerate(chunks):
                await channel.send(platform.route, chunk, key=f"d:{number}")
            shown = " ".join(shown.text for shown in platform.shown_messages())
            assert shown.split() == words

    async def test_blank_message_has_no_chunks(self) -> None:
        async with self.open_platform() as platform:
            assert not platform.create_channel().render(OutboundMessage(text=" \n "))

    async def test_text_of_markup_only_is_sent_as_written(self) -> None:
        async with self.open_platform() as platform, platform.create_channel() as channel:
            for number, text in enumerate(["```make all", "#", "[](<>)"]):
                (chunk,) = channel.render(OutboundMessage(text=text))
                await channel.send(platform.route, chunk, key=f"marks:{number}")
            assert all(shown.text.strip() for shown in platform.shown_messages())

    async def test_a_document_comes_whole_and_before_its_message(self) -> None:
        text = "".join(f"line {number} ü 😀 `<&>`\n" for number in range(5000))
        document = TextDocument(name="call-1.txt", text=text, otherwise="")
        async with self.open_platform() as platform, platform.create_channel() as channel:
            if not channel.capabilities.documents:
                return
            message = OutboundMessage(text="Read the file.", document=document)
            file, question = channel.render(message)
            ids = [
                await channel.send(platform.route, chunk, key=f"k:{number}")
                for number, chunk in enumerate((file, question))
            ]
            shown = platform.shown_messages()
            assert [one.document for one in shown] == [text, None]
            assert shown[1].text.strip() == "Read the file."
            if channel.capabilities.read_back:
                assert await channel.find_message(platform.route, file, key="k:0") == ids[0]
                assert await channel.find_message(platform.route, file, key="k:7") is None
            if channel.capabilities.idempotent:
                assert await channel.send(platform.route, file, key="k:0") == ids[0]
                assert len(platform.shown_messages()) == 2
            again = channel.with_repeat_notice(file)
            await channel.send(platform.route, again, key="k:2")
            repeated = platform.shown_messages()[2]
            assert (repeated.document, bool(repeated.text.strip())) == (text, True)

    async def test_a_file_comes_whole_with_its_caption(self) -> None:
        content = "".join(f"{number};ü 😀 `<&>`\n" for number in range(20_000)).encode()
        file = SentFile(
            attachment="att_1",
            name="numbers 1.csv",
            media_type="text/csv",
            size=len(content),
            sha256=hashlib.sha256(content).hexdigest(),
            caption="Up <to> *yesterday*",
        )
        async with self.open_platform() as platform, platform.create_channel() as channel:
            if not channel.capabilities.max_file_bytes:
                return
            chunk, route = channel.render_file(file), platform.route
            sent = await channel.send_file(route, chunk, content, key="f:0")
            (shown,) = platform.shown_messages()
            assert shown.document == content.decode()
            assert "yesterday" in shown.text
            if channel.capabilities.read_back:
                assert await channel.find_message(route, chunk, key="f:0") == sent
                assert await channel.find_message(route, chunk, key="f:7") is None
            if channel.capabilities.idempotent:
                assert await channel.send_file(route, chunk, content, key="f:0") == sent
                assert len(platform.shown_messages()) == 1
            again = channel.with_repeat_notice(channel.render_file(replace(file, caption="")))
            await channel.send_file(route, again, content, key="f:2")
            repeated = platform.shown_messages()[1]
            assert (repeated.document, bool(repeated.text.strip())) == (content.decode(), True)

    async def test_chunk_with_repeat_notice_fits(self) -> None:
        async with self.open_platform() as platform, platform.create_channel() as channel:
            for chunk in channel.render(OutboundMessage(text="word " * 4000)):
                again = channel.with_repeat_notice(chunk)
                assert again != chunk
                await channel.send(
                    platform.route, again, key=f"again:{len(platform.shown_messages())}"
                )

    async def test_edit_is_idempotent(self) -> None:
        async with self.open_platform() as platform, platform.create_channel() as channel:
            if not channel.capabilities.edits:
                return
            message = await _send_text(channel, platform, "first")
            (chunk,) = channel.render(OutboundMessage(text="second"))
            for _ in range(2):
                await channel.edit(platform.route, message, chunk)
            assert [shown.text.strip() for shown in platform.shown_messages()] == ["second"]

    async def test_edit_of_missing_message_reports_gone(self) -> None:
        async with self.open_platform() as platform, platform.create_channel() as channel:
            if not channel.capabilities.edits:
                return
            message = await _send_text(channel, platform, "first")
            (chunk,) = channel.render(OutboundMessage(text="second"))
            gone = str(int(message) + 1) if message.isdigit() else f"{message}x"
            error = await _raised_error(channel.edit(platform.route, gone, chunk))
            assert isinstance(error, NotDelivered)
            assert error.gone

    # Failing

    async def test_throttling_reports_seconds(self) -> None:
        async with self.open_platform() as platform, platform.create_channel() as channel:
            platform.throttle_calls(35)
            error = await _raised_error(_send_text(channel, platform, "Hello"))
            assert isinstance(error, Throttled)
            assert 30 <= error.seconds <= 36
            assert not platform.shown_messages()

    async def test_call_cut_before_its_effect_can_be_repeated(self) -> None:
        async with self.open_platform() as platform, platform.create_channel() as channel:
            platform.cut_next_call(after=False)
            error = await _raised_error(_send_text(channel, platform, "Hello"))
            assert isinstance(error, (NotSent, OutcomeUnknown))
            assert not platform.shown_messages()
            await _send_text(channel, platform, "Hello")
            assert len(platform.shown_messages()) == 1

    async def test_call_cut_after_its_effect_has_unknown_outcome(self) -> None:
        async with self.open_platform() as platform, platform.create_channel() as channel:
            (chunk,) = channel.render(OutboundMessage(text="Hello"))
            platform.cut_next_call(after=True)
            error = await _raised_error(channel.send(platform.route, chunk, key="k"))
            assert isinstance(error, OutcomeUnknown)
            (shown,) = platform.shown_messages()
            if channel.capabilities.read_back:
                assert await channel.find_message(platform.route, chunk, key="k") == shown.message
            if channel.capabilities.idempotent:
                assert await channel.send(platform.route, chunk, key="k") == shown.message
                assert len(platform.shown_messages()) == 1

    async def test_unsent_message_is_not_found(self) -> None:
        async with self.open_platform() as platform, platform.create_channel() as channel:
            (chunk,) = channel.render(OutboundMessage(text="Hello"))
            if channel.capabilities.read_back:
                assert await channel.find_message(platform.route, chunk, key="k") is None

    async def test_permanent_refusal_is_not_delivered(self) -> None:
        async with self.open_platform() as platform, platform.create_channel() as channel:
            platform.block_agent()
            error = await _raised_error(_send_text(channel, platform, "Hello"))
            assert isinstance(error, NotDelivered)
            assert str(error)


async def _next_events(events: AsyncIterator[Sequence[ChannelEvent]]) -> Sequence[ChannelEvent]:
    """Return the next batch that is not empty."""
    async with asyncio.timeout(_TIMEOUT):
        async for batch in events:
            if batch:
                return batch
    raise AssertionError("the channel told nothing more")


async def _send_text(channel: Channel, platform: ChannelPlatform, text: str) -> str:
    (chunk,) = channel.render(OutboundMessage(text=text))
    return await channel.send(platform.route, chunk, key=f"key:{text}")


async def _raised_error(call: object) -> ChannelError:
    """Return the channel error that a call raises."""
    assert asyncio.iscoroutine(call)
    try:
        await call
    except ChannelError as error:
        return error
    raise AssertionError("the call did not fail")
