"""
The channel contract: what an adapter to a chat platform does, and what the gateway relies on.

A channel is a pure codec (events out of payloads, messages out of text), a thin transport, and
declared capabilities. The gateway asks capabilities and never names a platform. ``clew.testing``
holds the suite that every channel passes; a third party offers one by an entry point in the group
``clew.channels`` that names a ``Factory``.
"""

from __future__ import annotations

import abc
import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, Self, TypeVar

from clew.engine.doors import WebhookRegistry

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
    from types import TracebackType

    from clew.config.secret import Secret
    from clew.core.chat import ButtonPressed, ChannelEvent, IncomingFile, OutboundMessage
    from clew.core.route import Route

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True, slots=True)
class Capabilities:
    """What a platform can do, as far as the gateway has to know."""

    #: The longest message, in ``unit``; ``render`` keeps to it.
    longest: int
    #: What ``longest`` counts, for people: "UTF-16 code units".
    unit: str = "characters"
    #: How the codec writes formatting, for people: "entities", "Markdown", "none".
    markup: str = "none"
    #: Messages can be changed after they were sent: answers are shown while they are made.
    edits: bool = False
    #: Conversations within a chat.
    threads: bool = False
    #: Buttons under messages; without them people write /approve and /deny.
    buttons: bool = False
    #: Whether it can be shown that an answer is being made.
    typing: bool = False
    #: People can send files, and ``fetch`` gets them.
    files: bool = False
    #: The same ``key`` sends the same message once, however often it is tried.
    idempotent: bool = False
    #: Seconds for which the platform remembers a ``key``.
    remembers: float = math.inf
    #: ``find`` can say whether a message has arrived.
    read_back: bool = False
    #: Seconds between two calls to one chat, of its kind; an edit waits at least a second.
    chat_pause: Mapping[str, float] | None = None
    #: Seconds between two calls of an account.
    account_pause: float = 0.0


class Pass(Protocol):
    """Lets a call go out when the platform's pace allows it."""

    async def __call__(self, call: Callable[[], Awaitable[T]], /) -> T: ...


async def _at_once(call: Callable[[], Awaitable[T]]) -> T:
    return await call()


class Channel(abc.ABC):
    """
    One account on a platform.

    Constructing opens nothing; ``async with`` connects. The gateway enters it, reads ``receive``
    in one task and calls the rest from others; after leaving, a new one is made from the same
    settings. Whatever is raised besides ``ChannelError`` counts as a fault of the channel: it is
    logged, and the channel is opened again after a pause.

    Every call ends within a minute, by itself or because it is cancelled; only ``receive`` lasts.
    """

    #: The platform, as routes name it: ``telegram``.
    platform: str
    #: Which account of the platform it is, by the platform's own id of it: two channels with the
    #: same one would hear the same events.
    account: str
    capabilities: Capabilities
    #: What look-ups pass that the channel makes by itself while it receives. Set by the gateway:
    #: calls that it asks for have passed its rate gate already.
    passing: Pass = staticmethod(_at_once)

    async def __aenter__(self) -> Self:
        """
        Connect.

        :raises ChannelError: if that cannot be done now, or with these settings
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
        What happens on the platform, in order, for ever; an empty batch says "still connected".

        Asking for the next batch says that the last one is stored: only then may the channel
        acknowledge it to the platform. What was not acknowledged is told again, with the same
        ``event``, after the next start. A batch at least every 60 seconds proves that the
        connection lives: a watchdog replaces a channel that is silent for longer.

        May be called again on the same channel once it has raised.

        :raises ChannelError: when the connection is lost
        """

    # Pure: what a message looks like. A chunk is text that only the channel understands; it is
    # stored before it is sent, and sent as it was stored.

    @abc.abstractmethod
    def render(self, message: OutboundMessage) -> Sequence[str]:
        """
        A message in chunks, each one message of the platform, with room left for ``repeated``.

        Nothing of the text is lost, and nobody is mentioned by it. Without any text: no chunks.
        """

    @abc.abstractmethod
    def repeated(self, chunk: str) -> str:
        """The same chunk, which says that it may have been sent before."""

    def plain(self, chunk: str) -> str:
        """The same text without formatting, for a platform that refused the formatting."""
        return chunk

    # The transport.

    @abc.abstractmethod
    async def send(self, route: Route, chunk: str, *, key: str) -> str:
        """
        Send one message, once; the platform's id of it.

        Returns when the platform has confirmed it. ``key`` is the same for every attempt at the
        same message, and of no other.

        :raises NotSent: if it certainly did not arrive; trying again is safe
        :raises Throttled: if it was refused for now
        :raises OutcomeUnknown: if it may have arrived
        :raises NotDelivered: if it never will
        """

    async def edit(self, route: Route, message: str, chunk: str) -> None:
        """
        Put a chunk in the place of a message that was sent; doing it twice is doing it once.

        :raises NotDelivered: with ``gone`` where the message is not there any more
        :raises ChannelError: as ``send``
        """
        raise NotImplementedError

    async def find(self, route: Route, chunk: str, *, key: str) -> str | None:
        """The id of the message that ``send`` was to send, if it has arrived (``read_back``)."""
        raise NotImplementedError

    async def typing(self, route: Route) -> None:
        """Show for some seconds that an answer is being made."""
        raise NotImplementedError

    async def answer(
        self, pressed: ButtonPressed, text: str, *, closed: bool, became: str = ""
    ) -> None:
        """
        Tell whoever pressed a button what came of it; once ``closed``, take the buttons away, and
        show in their place what ``became`` of the question ("Refused: pay"), if that is known.

        Nothing depends on it: the press itself is stored.

        :raises ChannelError: if that cannot be done; it is not tried again
        """
        raise NotImplementedError

    async def fetch(self, file: IncomingFile, *, most: int) -> bytes:
        """
        The content of a file.

        :raises NotDelivered: if it is gone or has more than ``most`` bytes
        """
        raise NotImplementedError


class Marks(Protocol):
    """A few short texts, by name, that outlive the process; the last one written counts."""

    async def get(self, name: str) -> str | None: ...

    async def put(self, name: str, value: str) -> None: ...


class MemoryMarks:
    """Marks that do not outlive the process: for tests, and where nothing is kept."""

    def __init__(self) -> None:
        self._marks: dict[str, str] = {}

    async def get(self, name: str) -> str | None:
        return self._marks.get(name)

    async def put(self, name: str, value: str) -> None:
        self._marks[name] = value


@dataclass(frozen=True, kw_only=True, slots=True)
class ChannelConfig:
    """What a factory makes a channel from."""

    #: The table ``[channels.NAME]``.
    name: str
    token: Secret | None
    base_url: str | None
    #: The channel's own keys, as written; what is named like a secret is a ``Secret``.
    options: Mapping[str, object]
    #: How its routes name the account; ``None`` where the platform has one table.
    label: str | None = None
    #: Name and meaning of each chat command, for platforms that list them.
    commands: Sequence[tuple[str, str]] = ()
    #: Where a channel opens a door under its name, that other programs hand something in by.
    doors: WebhookRegistry = field(default_factory=WebhookRegistry)
    #: What a channel has to know after a restart, such as how far it has read.
    marks: Marks = field(default_factory=MemoryMarks)


class Factory(Protocol):
    """What an entry point in the group ``clew.channels`` names."""

    def __call__(self, config: ChannelConfig, /) -> Channel:
        """
        Make a channel; opens nothing.

        :raises SettingsError: if a setting is missing or cannot be used
        """
        ...
