"""Declarations of a feature: plain records, made into parts of the program by its fronts."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Literal, Protocol

from clew.record import Record

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
    from datetime import timedelta
    from pathlib import Path

    from clew.config.settings import Settings
    from clew.core.access import ChannelActor
    from clew.core.agent_profile import NamedAgent
    from clew.core.doctor_finding import DoctorFinding
    from clew.core.file_reading import FileReading
    from clew.core.health import PartHealth
    from clew.core.ids import ConversationId
    from clew.core.policy_rule import CallNarrowing
    from clew.core.route import Route
    from clew.core.scope import Scope
    from clew.core.tool_facts import ToolFacts
    from clew.core.turn import Turn
    from clew.plugin.context import FeatureContext
    from clew.plugin.memory import MemoryProvider
    from clew.plugin.tracing import Tracer
    from clew.plugin.turn_context import TurnContext
    from clew.store.contract import Tx

    HealthReader = Callable[[], Mapping[str, PartHealth]]

#: The place of a service: each gateway, one per machine, or one of all.
ServicePlace = Literal["each", "host", "leader"]
#: The commands of ``clew``, which no feature can have.
CLI_COMMANDS = (
    "chat", "setup", "serve", "service", "mcp", "rpc", "sessions", "fsck", "pair", "deliveries",
    "cron", "ps", "goal", "agents", "memory", "skills", "config", "doctor", "backup", "restore",
    "migrate-store", "tools", "plugins", "completion", "acp", "dashboard", "usage", "import",
    "export", "hermes",
)  # fmt: skip


class CommandCall(Protocol):
    """The call of a chat command."""

    @property
    def conversation_id(self) -> ConversationId | None:
        """Return the conversation in which it was written; ``None`` if none exists yet."""
        ...

    @property
    def route(self) -> Route | None:
        """Return the route on which it was written; ``None`` if the conversation was named."""
        ...

    @property
    def who(self) -> ChannelActor | None:
        """Return the writer, on chat platforms."""
        ...

    @property
    def viewer(self) -> Scope:
        """Return the scope of the writer: nothing outside it can be seen or changed."""
        ...

    @property
    def services(self) -> FeatureContext:
        """Return the services of the running application."""
        ...


class Command(Record):
    """A chat command, for every front."""

    #: One word, or two: ``undo files`` takes ``/undo files`` from ``/undo``.
    name: str
    help: str
    #: Returns the reply.
    run: Callable[[CommandCall, str], Awaitable[str]]
    aliases: tuple[str, ...] = ()
    #: As shown in help: ``[title]``.
    arguments: str = ""
    #: Only for operators.
    operator: bool = False
    #: ``/ONE:TWO …`` is a call of it with the argument ``ONE TWO …``; of one command at most.
    takes_prefixed: bool = False


class CliEntry(Record):
    """A command of ``clew``: a click command that is imported when it is used."""

    name: str
    module: str
    attribute: str
    #: One line for the list of commands.
    help: str


class Service(Record):
    """A loop that runs beside the turns; restarted when it fails or ends."""

    name: str
    run: Callable[[FeatureContext], Awaitable[None]]
    where: ServicePlace = "each"


class PeriodicWork(Record):
    """Work that is due again and again, in one process of all."""

    name: str
    run: Callable[[FeatureContext], Awaitable[object]]
    every: timedelta


class AfterTurn(Record):
    """Work after each answered turn, one conversation at a time; delays no other turn."""

    name: str
    run: Callable[[FeatureContext, ConversationId], Awaitable[None]]
    #: Also after turns that failed or were stopped, and after queued commands.
    every_end: bool = False


class TurnWatch(Record):
    """Code of a feature in the transactions of turns; a failure undoes only what it did."""

    name: str
    #: A model's answer with tool calls is stored, and counted.
    on_step: Callable[[Tx, Turn], None] | None = None
    #: A turn ends, whatever its outcome.
    on_end: Callable[[Tx, Turn], None] | None = None
    #: A person stops what goes on in a conversation: returns whether anything was stopped.
    on_stop: Callable[[Tx, ConversationId], bool] | None = None


class DoctorCheck(Record):
    """A check of ``clew doctor``."""

    name: str
    run: Callable[[], Awaitable[Iterable[DoctorFinding]]]


class Metric(Record):
    """A metric, read whenever the metrics are asked for."""

    #: With its unit, as Prometheus has it: ``mail_waiting``; shown as ``clew_mail_waiting``.
    name: str
    kind: Literal["gauge", "counter"]
    doc: str
    read: Callable[[], float]


class HealthSource(Record):
    """The health of what a feature depends on, read whenever it is asked for; does no I/O."""

    name: str
    read: HealthReader


class ChannelKind(Record):
    """A kind of channel, opened for each ``[channels.NAME]`` of it."""

    name: str
    #: The factory, or ``MODULE:NAME`` of one that is imported when it is used.
    factory: str | Callable[..., object]


class OperationSource(Record):
    """The source of an operation of HTTP and JSON-RPC."""

    name: str
    #: Returns an operation or an endpoint of ``clew.api``; called when a server starts.
    make: Callable[[], object]


class HookCallback(Record):
    """The callback of one hook."""

    hook: str
    callback: Callable[..., object]

    def make_function(self) -> Callable[..., object]:
        """Return a function of its own, which may be marked: a bound method may not."""

        @functools.wraps(self.callback)
        def call(*args: object, **kwargs: object) -> object:
            return self.callback(*args, **kwargs)

        return call


class Instructions(Record):
    """A part of the instructions, rendered when a session opens."""

    name: str
    #: Given the ``TurnContext`` if it takes an argument; returns the text, ``None`` for none.
    render: Callable[..., str | Awaitable[str | None] | None]


class Note(Record):
    """Data for the model beside a person's message."""

    text: str


class ContextNote(Record):
    """The source of notes that become part of the messages of people."""

    name: str
    #: Runs in the transaction that stores the message.
    make: Callable[[Tx, TurnContext], Iterable[Note] | None]


class CapabilitySource(Record):
    """The source of a ready capability or toolset of the model library."""

    name: str
    #: Returns the ``AbstractCapability`` or ``AbstractToolset``; called when the agent is made.
    make: Callable[[], object]


class WatchedText(Record):
    """The text of something that is watched, as it is now."""

    text: str
    #: Strangers may have written it.
    untrusted: bool = False


class WatchSource(Record):
    """A kind of things that jobs can watch, such as files."""

    name: str
    #: Returns the text of a target within a scope; an error is a failure of the job.
    read: Callable[[FeatureContext, Scope, str], Awaitable[WatchedText]]
    #: Returns the facts by which it is decided whether the model may watch a target.
    facts: Callable[[str], ToolFacts | None]


class ReadableFolders(Record):
    """Folders that the commands of a turn may read beside the workspace."""

    name: str
    find: Callable[[TurnContext], Awaitable[Sequence[Path]]]


class FileToRead(Record):
    """A file of a message, to be read as text."""

    conversation: ConversationId
    name: str
    media_type: str
    content: bytes


class FileReader(Record):
    """
    A reader of files that the model cannot read itself, such as recordings.

    The message is stored and waits while one process of all reads, for 100 seconds at most;
    without a text it goes on with the reason.
    """

    name: str
    #: What the text is, in the line of the file: ``transcript``.
    read_as: str
    #: Returns whether a file is for it, by its media type and content; quick, no I/O.
    accepts: Callable[[str, bytes], bool]
    #: Returns the text, or why there is none.
    read: Callable[[FeatureContext, FileToRead], Awaitable[FileReading]]


class NarrowingSource(Record):
    """The source of narrowings: what may run without asking at most."""

    name: str
    #: Runs in a transaction that reads, before each call.
    find: Callable[[Tx, TurnContext], Iterable[CallNarrowing]]


class SkillFolder(Record):
    """A folder of skills that comes with a plugin."""

    path: Path


class SettingsCheck(Record):
    """A check of settings that their types do not do."""

    name: str
    #: Returns a sentence for each problem.
    find: Callable[[Settings], Iterable[str]]


class MemoryProviderKind(Record):
    """A place that keeps memories."""

    name: str
    make: Callable[[FeatureContext], MemoryProvider]


class CompactorKind(Record):
    """A context engine that can take the place of the built-in one."""

    name: str
    make: Callable[[], object]


class TracerSource(Record):
    """The source of a tracer of turns."""

    name: str
    #: Returns the tracer, ``None`` for none; called when the engine is built.
    make: Callable[[], Tracer | None]


class WebsiteSource(Record):
    """The source of a website."""

    name: str
    #: Returns a ``clew.api.website.Website``; called when a server starts.
    make: Callable[[], object]


class AgentSource(Record):
    """Agents that routes can name."""

    name: str
    list_agents: Callable[[], Mapping[str, NamedAgent]]
