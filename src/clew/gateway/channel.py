"""
The channel contract: the interface between an adapter to a chat platform and the gateway.

A channel is a pure codec (payloads to events, text to messages), a thin transport, and
declared capabilities. The gateway checks capabilities and never names a platform.
``clew.testing`` contains the contract suite that every channel passes. A third party
provides a channel through an entry point in the group ``clew.channels`` that names a
``ChannelFactory``.
"""

from __future__ import annotations

import abc
import math
from dataclasses import field
from typing import TYPE_CHECKING, Protocol, Self, TypeVar

from clew.record import Record

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
    from types import TracebackType

    from clew.config.secret import Secret
    from clew.core.channel_events import ButtonPressed, ChannelEvent, IncomingFile, OutboundMessage
    from clew.core.route import Route
    from clew.core.sent_files import SentFile

T = TypeVar("T")


class ChannelCapabilities(Record):
    """Features and limits of a platform, as far as the gateway needs them."""

    #: Length of the longest message, in ``unit``; ``render`` never exceeds it.
    max_length: int
    #: The unit of ``max_length``, for people: "UTF-16 code units".
    unit: str = "characters"
    #: The codec's formatting, for people: "entities", "Markdown", "none".
    markup: str = "none"
    #: Sent messages can be edited: answers are shown while they are generated.
    edits: bool = False
    #: Chats have threads.
    threads: bool = False
    #: Messages have buttons; without them people write /approve and /deny.
    buttons: bool = False
    #: The platform has a typing indicator.
    typing: bool = False
    #: People can send files; ``fetch_file`` downloads them.
    files: bool = False
    #: ``render`` puts the document of a message before it, as a chunk of its own.
    documents: bool = False
    #: Bytes of the largest file that ``send_file`` sends; 0: it sends none.
    max_file_bytes: int = 0
    #: Sending again with the same ``key`` sends no second message.
    idempotent: bool = False
    #: Seconds for which the platform remembers a ``key``; ``idempotent`` holds that long.
    key_lifetime: float = math.inf
    #: ``find_message`` can tell whether a message has arrived.
    read_back: bool = False
    #: ``find_message`` knows the messages of which the platform has told; others may have arrived.
    receipts: bool = False
    #: Ids of messages are numbers that grow, for those of people and the agent's alike.
    ordered_ids: bool = False
    #: Seconds between two calls to one chat, by kind of chat; an edit waits at least a second.
    chat_pause: Mapping[str, float] | None = None
    #: Seconds between two calls on one account.
    account_pause: float = 0.0


class RateLimited(Protocol):
    """Makes a call once the platform's rate limit allows it."""

    async def __call__(self, call: Callable[[], Awaitable[T]], /) -> T: ...


async def _call_unlimited(call: Callable[[], Awaitable[T]]) -> T:
    return await call()


class Channel(abc.ABC):
    """
    One account on a platform.

    The constructor opens nothing; ``async with`` connects. The gateway enters the channel,
    reads ``receive`` in one task and calls the other methods from others; after leaving, it
    creates a new channel from the same settings. Any exception besides ``ChannelError``
    counts as a bug in the channel: it is logged, and the channel is reopened after a pause.

    Every call ends within a minute, by itself or by cancellation; only ``receive`` runs on.
    """

    #: The name of the platform in routes: ``telegram``.
    platform: str
    #: The platform's own id of the account: two channels with the
    #: same id would receive the same events.
    account: str
    capabilities: ChannelCapabilities
    #: The rate limit for look-ups that the channel makes while receiving; calls that the
    #: gateway makes have passed its rate limiter already.
    rate_limited: RateLimited = staticmethod(_call_unlimited)

    def use_rate_limit(self, rate_limited: RateLimited) -> None:
        """Make look-ups through the gateway's rate limiter from now on."""
        self.rate_limited = rate_limited

    async def __aenter__(self) -> Self:
        """
        Connect.

        :raises ChannelError: if the connection fails now, or with these settings
        """
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Disconnect; raises nothing."""
        return

    @abc.abstractmethod
    def receive(self) -> AsyncIterator[Sequence[ChannelEvent]]:
        """
        Yield event batches in order, for ever; an empty batch means "still connected".

        Requesting the next batch confirms that the previous one is stored: only then may
        the channel acknowledge it to the platform. After the next start, unacknowledged
        events are received again with the same ``event``. A batch at least every 60 seconds
        proves that the connection is alive: a watchdog replaces a channel that is silent
        for longer.

        May be called again on the same channel after it has raised.

        :raises ChannelError: when the connection is lost
        """

    # Pure: rendering. A chunk is text that only the channel understands; it is
    # stored before it is sent, and sent as it was stored.

    @abc.abstractmethod
    def render(self, message: OutboundMessage) -> Sequence[str]:
        """
        Render a message as chunks, one platform message each.

        Each chunk leaves room for the repeat notice. No text is lost, and the
        text mentions nobody. A message without text has no chunks. A message with a document
        comes only to a channel with the capability ``documents``.
        """

    def render_file(self, file: SentFile) -> str:
        """
        Render a file as a chunk, without its content.

        Requires the capability ``max_file_bytes``.
        """
        raise NotImplementedError

    @abc.abstractmethod
    def with_repeat_notice(self, chunk: str) -> str:
        """Return the chunk with a notice that it may have been sent before."""

    def without_formatting(self, chunk: str) -> str:
        """Return the chunk without formatting, for a platform that rejected the formatting."""
        return chunk

    # Transport.

    @abc.abstractmethod
    async def send(self, route: Route, chunk: str, *, key: str) -> str:
        """
        Send one message, once, and return the platform's id of it.

        Returns after the platform has confirmed it. All attempts at one message have the
        same ``key``, which no other message has.

        :raises NotSent: if it certainly did not arrive; a retry is safe
        :raises Throttled: if the platform is rate limiting
        :raises OutcomeUnknown: if it may have arrived
        :raises NotDelivered: if it will never arrive
        """

    async def send_file(self, route: Route, chunk: str, content: bytes, *, key: str) -> str:
        """
        Send a file, once, and return the platform's id of its message, as ``send``.

        :raises NotDelivered: if the platform refuses it, such as for its size
        :raises ChannelError: as ``send``
        """
        raise NotImplementedError

    async def edit(self, route: Route, message: str, chunk: str) -> None:
        """
        Replace a sent message with a chunk; idempotent.

        :raises NotDelivered: with ``gone`` if the message no longer exists
        :raises ChannelError: as ``send``
        """
        raise NotImplementedError

    async def find_message(self, route: Route, chunk: str, *, key: str) -> str | None:
        """
        Return the id of the message that ``send`` tried to send, if it arrived.

        Requires the capability ``read_back`` or ``receipts``.
        """
        raise NotImplementedError

    async def show_typing(self, route: Route) -> None:
        """Show the typing indicator for some seconds."""
        raise NotImplementedError

    async def answer_button(
        self, pressed: ButtonPressed, text: str, *, closed: bool, became: str = ""
    ) -> None:
        """
        Tell the person who pressed a button the result.

        Once ``closed``, remove the buttons and show ``became``, the outcome of the question
        ("Refused: pay"), in their place if it is known. Nothing depends on this call: the
        press itself is stored.

        :raises ChannelError: if the call fails; it is not retried
        """
        raise NotImplementedError

    async def fetch_file(self, file: IncomingFile, *, most: int) -> bytes:
        """
        Return the content of a file.

        :raises NotDelivered: if it no longer exists or has more than ``most`` bytes
        """
        raise NotImplementedError


class ChannelStorage(Protocol):
    """A few short texts by name that outlive the process; each write replaces the last."""

    async def get(self, name: str) -> str | None: ...

    async def put(self, name: str, value: str) -> None: ...


class MemoryChannelStorage:
    """Channel storage that does not outlive the process, such as in tests."""

    def __init__(self) -> None:
        self._values: dict[str, str] = {}

    async def get(self, name: str) -> str | None:
        return self._values.get(name)

    async def put(self, name: str, value: str) -> None:
        self._values[name] = value


class ChannelConfig(Record):
    """The arguments from which a factory creates a channel."""

    #: NAME of the table ``[channels.NAME]``.
    name: str
    token: Secret | None
    base_url: str | None
    #: The channel's own settings, as written; a setting named like a secret is a ``Secret``.
    options: Mapping[str, object]
    #: The account's name in routes; ``None`` where the platform has one table.
    label: str | None = None
    #: Name and description of each chat command, for platforms that list them.
    commands: Sequence[tuple[str, str]] = ()
    #: State that a channel needs after a restart, such as its read position.
    storage: ChannelStorage = field(default_factory=MemoryChannelStorage)


class ChannelFactory(Protocol):
    """The callable that an entry point in the group ``clew.channels`` names."""

    def __call__(self, config: ChannelConfig, /) -> Channel:
        """
        Create a channel; opens nothing.

        :raises SettingsError: if a setting is missing or invalid
        """
        ...
