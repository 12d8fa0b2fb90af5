"""
The settings: frozen and complete, every key with its type, default and meaning.

``load_settings`` makes them, once. All other code receives these values and never reads the
environment or the file.
"""

# A setting is a field: its default is the immutable one that it names.

from __future__ import annotations

from dataclasses import field
from datetime import time, timedelta
from ipaddress import ip_address
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from clew.config.approval_rules import RULES
from clew.config.builtin_types import (
    CLOCK_TIME,
    DURATION,
    FLAG,
    IDS,
    MODEL,
    MODELS,
    OBJECT,
    ORIGINS,
    PATH,
    SECRET,
    SHARE,
    STORE_URL,
    TEXT,
    TEXTS,
    TIMEZONE,
    URL,
    VARIABLES,
    choice_type,
    integer_type,
)
from clew.config.fields import setting
from clew.core.conversation import UNDELETE_FOR
from clew.core.sandbox_level import LEVELS
from clew.errors import SettingsError
from clew.record import Record

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from clew.config.secret import Secret
    from clew.core.policy_rule import PolicyRule

OFFLINE: Final = "offline"
#: ``auto`` and the rules of ``clew.core.double_text``: a test compares them; the import takes 5 ms.
_DOUBLE_TEXT = choice_type(["auto", "queue", "steer", "collect", "interrupt", "rollback", "reject"])


class ModelSettings(Record):
    """The model that answers, and its address."""

    name: str = setting(
        MODEL,
        OFFLINE,
        "A Pydantic AI model string: `openai:` is OpenAI's Responses API, `openai-chat:` is Chat "
        "Completions (most servers behind a `base_url`). `offline` is built in, answers from a "
        "script and needs no key.",
        default_doc="by the provider's key in the environment, else `offline`",
    )
    base_url: str | None = setting(
        URL,
        None,
        "Where the model is served; holds for every model of the same provider.",
        default_doc="the provider's own",
        shown=False,
    )
    api_key: Secret | None = setting(
        SECRET,
        None,
        "The provider's key; holds for every model of the same provider.",
        default_doc="the provider's variable in the environment, where no `base_url` is set",
    )
    context_window: int | None = setting(
        integer_type(least=1, unit="tokens"),
        None,
        "Size of the context window in tokens; only needed where the provider does not say.",
        default_doc="what the provider says",
    )
    fallback: tuple[str, ...] = setting(
        MODELS, (), "Models that are tried in this order while the main one fails."
    )
    timeout: timedelta = setting(
        DURATION, timedelta(seconds=120), "How long the provider may send nothing during a request."
    )
    pictures: bool = setting(
        FLAG,
        True,
        "Whether the model receives the pictures in messages; `false` for a model without "
        "picture input, which would refuse every request with a picture.",
    )
    picture_model: str | None = setting(
        MODEL,
        None,
        "A model that describes the pictures in messages in words, where `pictures` is `false`.",
        default_doc="none: the model is told the names of pictures",
    )
    #: The reason why this model was chosen, for people: "OPENAI_API_KEY is in the environment".
    chosen_by: str = "it is the default"


class ProviderSettings(Record):
    """The address and key of one provider's models."""

    base_url: str | None = setting(
        URL,
        None,
        "Where this provider's models are served.",
        default_doc="the provider's own",
        shown=False,
    )
    api_key: Secret | None = setting(
        SECRET,
        None,
        "The provider's key.",
        default_doc="the provider's variable in the environment, where no `base_url` is set",
    )


class AgentSettings(Record):
    """The agent: its instructions, or an agent object of your own."""

    instructions: str | None = setting(
        TEXT,
        None,
        "Instructions for the agent, at the start of each session, in addition to `SOUL.md` and "
        "`AGENTS.md` in `CLEW_HOME`.",
    )
    instructions_file: Path | None = setting(
        PATH, None, "A file with the instructions, instead; relative to `CLEW_HOME`."
    )
    object: str | None = setting(
        OBJECT, None, "A Pydantic AI `Agent` of your own, as `MODULE:NAME`; brings its own tools."
    )
    features: bool = setting(
        FLAG,
        True,
        "Whether an `object` also gets the tools and instructions of features and plugins.",
    )
    max_steps: int = setting(
        integer_type(least=1), 100, "Model requests after which a turn ends with a notice."
    )
    code_timeout: timedelta = setting(
        DURATION,
        timedelta(seconds=60),
        "How long the functions of an `object` may take before and after a request: its "
        "instructions, hooks and processors.",
    )
    turns_at_once: int = setting(
        integer_type(least=1),
        16,
        "How many turns a process works on at once; others wait, the oldest first. One that waits "
        "for a person, or for a model or tool longer than a second, makes room for another.",
    )

    unattended_tokens: int = setting(
        integer_type(least=0),
        500_000,
        "Tokens a day, for the conversations of one person or group, of turns that no person "
        "began, such as those about the end of a process; above it, the agent reads of it with "
        "the next message.",
    )

    @property
    def uses_features(self) -> bool:
        """Return whether the agent gets what features add."""
        return self.object is None or self.features

    def read_instructions(self) -> str | None:
        """
        Return the configured instructions, from the file if they are in one.

        :raises SettingsError: if the file cannot be read
        """
        if self.instructions_file is None:
            return self.instructions
        try:
            return self.instructions_file.read_text(encoding="utf-8-sig")
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
            raise SettingsError(
                f"agent.instructions_file is {self.instructions_file}, which cannot be read: "
                f"{reason}"
            ) from error


class StoreSettings(Record):
    """The database."""

    url: str = setting(
        STORE_URL,
        "sqlite:///clew.db",
        "The database: `sqlite:///FILE` (relative to `CLEW_HOME`; an absolute path has four "
        "slashes) or `postgresql://USER@HOST/DATABASE`.",
        shown=False,
    )


class ApiSettings(Record):
    """The HTTP interface of `clew serve`."""

    host: str = setting(
        TEXT, "127.0.0.1", "The address to listen on. Beyond loopback a `token` is required."
    )
    port: int = setting(integer_type(least=0, most=65535), 8420, "The port; 0 takes any free one.")
    token: Secret | None = setting(
        SECRET, None, "What clients must send as `Authorization: Bearer TOKEN`."
    )
    origins: tuple[str, ...] = setting(
        ORIGINS,
        (),
        "The pages that may call the API from a browser, as `http://localhost:5173`.",
    )

    def require_token_beyond_loopback(self) -> None:
        """
        Reject an API that is open to the network.

        :raises SettingsError: if ``host`` is not loopback and there is no token
        """
        if self.token is None and not _is_loopback(self.host):
            raise SettingsError(
                f"api.host is {self.host!r}, which others can reach, and there is no api.token: "
                'set one, for example token = { env = "CLEW_TOKEN" }, or listen on 127.0.0.1'
            )


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"


class SessionSettings(Record):
    """Restarting conversations, and messages that arrive during a turn."""

    reset: str = setting(
        choice_type(["none", "idle", "daily", "both"]),
        "none",
        "When a new conversation starts automatically: after a pause, at a time of day, both or "
        "never.",
    )
    idle: timedelta = setting(
        DURATION, timedelta(hours=24), "The pause after which `idle` starts a new conversation."
    )
    at: time = setting(CLOCK_TIME, time(4), "The time of day at which `daily` does.")
    timezone: str = setting(
        TIMEZONE, "UTC", "The time zone of `at`.", default_doc="the machine's, else UTC"
    )
    double_text: str = setting(
        _DOUBLE_TEXT,
        "auto",
        "What happens to a message while a turn is unfinished. `auto`: programs queue, people on "
        "channels collect.",
    )
    undelete: timedelta = setting(
        DURATION,
        UNDELETE_FOR,
        "How long a deleted conversation can be restored (`clew sessions undelete`).",
    )
    title_model: str | None = setting(
        MODEL,
        None,
        "The model that names a conversation after its first answer.",
        default_doc="none: the name is the beginning of the first message",
    )


class CompactionSettings(Record):
    """Summaries of long sessions."""

    enabled: bool = setting(FLAG, True, "Whether sessions are compacted automatically.")
    threshold: float = setting(
        SHARE, 0.75, "Compact when the next request would fill this share of the context window."
    )
    keep_recent: float = setting(
        SHARE, 0.2, "The share of the context window that the newest messages keep."
    )
    model: str | None = setting(
        MODEL,
        None,
        "The model that summarises; where it fails, the main model does.",
        default_doc="the main model",
    )
    compactor: str | None = setting(
        TEXT,
        None,
        "The compactor of a plugin that is used instead of the built-in one.",
        default_doc="the built-in one",
    )


class LeaseSettings(Record):
    """The exclusive right to write to a conversation."""

    seconds: int = setting(
        integer_type(least=2, most=3600, unit="seconds"),
        15,
        "Seconds after which other processes take over the work of a process that hangs (they "
        "take over from a dead process at once). The lease is renewed at half that time.",
    )

    @property
    def duration(self) -> timedelta:
        return timedelta(seconds=self.seconds)


class ChannelSettings(Record):
    """A chat platform; keys that are not listed here belong to the channel itself."""

    enabled: bool = setting(FLAG, True, "Whether `clew serve` runs this channel.")
    token: Secret | None = setting(SECRET, None, "The bot's token.")
    base_url: str | None = setting(
        URL, None, "Where the platform's API is.", default_doc="the platform's own", shown=False
    )
    allow: tuple[str, ...] = setting(
        IDS,
        (),
        'User ids that may talk to the agent; `"*"` for everyone.',
    )
    pairing: str = setting(
        choice_type(["auto", "on", "off"]),
        "auto",
        "Whether strangers who write are shown a pairing code; `auto`: only where `allow` is "
        "empty. Else they get no answer.",
    )
    operators: tuple[str, ...] = setting(
        IDS,
        (),
        "User ids that may also grant and revoke access, with `/pair` in a chat.",
    )
    groups: tuple[str, ...] = setting(
        IDS, (), 'Ids of the group chats in which the agent takes part; `"*"` for all.'
    )
    mention: bool = setting(
        FLAG,
        True,
        "In groups the agent answers only messages that address it: mentions, replies, commands.",
    )
    open_groups: bool = setting(
        FLAG, False, "In its groups everyone may talk to the agent, not only people with access."
    )
    apart: bool = setting(
        FLAG,
        False,
        "In groups each person has a conversation of their own, instead of one for all.",
    )
    stream: bool = setting(
        FLAG, True, "Show an answer while it is generated, where the platform can edit messages."
    )
    largest_file: int = setting(
        integer_type(least=0, unit="bytes"),
        20_000_000,
        "Files that people send are accepted up to this size.",
    )
    file_types: tuple[str, ...] = setting(
        TEXTS, ("*",), "The kinds of files that are accepted: `image/*`, `application/pdf`, `*`."
    )
    alarm_failures: int = setting(
        integer_type(least=1),
        5,
        "Report the channel as failing after this many failed deliveries in a row.",
    )
    alarm_after: timedelta = setting(
        DURATION,
        timedelta(minutes=5),
        "Report the channel as failing when a message has waited this long for its delivery.",
    )
    agent: str = setting(
        TEXT,
        "main",
        "The agent of its chats: the name of one from `[agents.NAME]`. A chat that has talked to "
        "another keeps that conversation beside the new one.",
    )
    kind: str | None = setting(
        TEXT,
        None,
        "The kind of channel, for a second account of a platform under a name of its own.",
        default_doc="the table's name",
    )
    double_text: str | None = setting(
        _DOUBLE_TEXT, None, "As `session.double_text`, for this channel.", default_doc="that one"
    )
    #: The channel's own keys, as written; keys with a secret's name hold a ``Secret``.
    options: Mapping[str, object] = field(default_factory=lambda: MappingProxyType({}))


class ToolsSettings(Record):
    """Tools for the agent."""

    modules: tuple[str, ...] = setting(
        TEXTS, (), "Modules with tools: importable names, or files under `CLEW_HOME/plugins`."
    )
    call_timeout: timedelta = setting(
        DURATION,
        timedelta(minutes=10),
        "How long one call of a tool may take; then it is abandoned, and the model is told so.",
    )
    ready_timeout: timedelta = setting(
        DURATION,
        timedelta(seconds=60),
        "How long a set of tools, such as an MCP server, may take to open and to list its tools.",
    )


class SandboxSettings(Record):
    """The place where commands of the agent run, and their limits."""

    level: str = setting(
        choice_type(LEVELS),
        "work",
        "How far commands are kept apart. `read`: they see the system's programs and the "
        "workspace, and write nothing; `work`: they write in the workspace; `box`: in a container; "
        "`net`: as `work`, and they reach `hosts`; `host`: nothing is kept apart, and each command "
        "asks. Commands with a network ask as well.",
    )
    workspace: Path | None = setting(
        PATH,
        None,
        "One folder for the commands and files of all conversations, instead of one for each "
        "scope.",
        default_doc="`CLEW_HOME/work/SCOPE`",
    )
    memory: int = setting(
        integer_type(least=16, unit="MB"),
        1024,
        "Memory of a command and all that it starts, in MB.",
    )
    processes: int = setting(
        integer_type(least=4), 128, "How many processes a command may have at once."
    )
    seconds: int = setting(
        integer_type(least=1, most=86400, unit="seconds"),
        3600,
        "Seconds after which a command is stopped, also one in the background.",
    )
    output: int = setting(
        integer_type(least=1000, unit="bytes"),
        500_000,
        "Bytes of a command's output that are kept: the first half and the last. Of long ones the "
        "model is shown 60,000 characters, and can read the rest.",
    )
    disk: int = setting(
        integer_type(least=1, unit="MB"), 1024, "Size that a workspace may have, in MB."
    )
    hosts: tuple[str, ...] = setting(
        TEXTS,
        (),
        "The hosts that commands may reach at the level `net`: `example.org`, `*.example.org` for "
        "all below, with `:PORT` if it is not 80 or 443. Private addresses are reached only if "
        "they are listed themselves, as `10.0.0.5:8080`.",
    )
    secrets: tuple[tuple[str, Secret], ...] = setting(
        VARIABLES,
        (),
        "Names of environment variables that commands are given with their values; they get "
        "nothing else of the gateway's environment. With a host, as `WIKI_TOKEN@10.0.0.5:8080`, "
        "they do not get it: at the level `net` it is added to their requests to that host, only "
        "without TLS.",
    )
    image: str = setting(
        TEXT, "docker.io/library/python:3-slim", "The image of the containers at the level `box`."
    )


class ApprovalsSettings(Record):
    """Rules for tool calls: which run, which need approval, which are denied."""

    rule: tuple[PolicyRule, ...] = setting(
        RULES,
        (),
        "Rules, each a table `[[approvals.rule]]` with `then` (`allow`, `ask` or `deny`) and the "
        "calls that it is about: `tool`, `command`, `host`, `path`, `who`. A rule that denies "
        "comes first, then one that asks, then what a person has granted, then one that allows.",
    )
    approvers: str = setting(
        choice_type(["operators", "people"]),
        "operators",
        "Whose answers count in group chats: the `operators` of the channel, or also the `people` "
        "whose messages the agent is answering. In a direct message it is the person.",
    )
    expires: timedelta = setting(
        DURATION,
        timedelta(hours=24),
        "How long a question waits for its answer; then the call is denied.",
    )
    unattended: str = setting(
        choice_type(["owner", "deny"]),
        "owner",
        "What becomes of a question in a turn that no person began, such as a scheduled one: it "
        "is asked in the chat of its `owner`, or the call is denied.",
    )


class PluginsSettings(Record):
    """Plugins; a table `[plugins.NAME]` holds a plugin's own settings."""

    enabled: tuple[str, ...] = setting(TEXTS, (), "Names of the plugins to load.")
    #: The tables of plugins, by name; keys with a secret's name hold a ``Secret``.
    options: Mapping[str, object] = field(default_factory=lambda: MappingProxyType({}))


class FeaturesSettings(Record):
    """Features: what Clew brings along beside its core, and what plugins register."""

    disabled: tuple[str, ...] = setting(
        TEXTS, (), "Names of the features that are not loaded, built-in ones and plugins."
    )


class Origin(Record):
    """The origin of a value."""

    #: ``flag``, ``environment``, ``file`` or ``default``.
    kind: str
    #: For people: ``CLEW_API__PORT``, ``/home/…/config.toml, line 3``.
    place: str


class Settings(Record):
    """All settings."""

    #: ``CLEW_HOME``: absolute; may not exist yet (``ensure_home``).
    home: Path
    model: ModelSettings = ModelSettings()
    agent: AgentSettings = AgentSettings()
    store: StoreSettings = StoreSettings()
    api: ApiSettings = ApiSettings()
    session: SessionSettings = SessionSettings()
    compaction: CompactionSettings = CompactionSettings()
    lease: LeaseSettings = LeaseSettings()
    #: The tables ``[providers.NAME]``, by the prefix of a model's name.
    providers: Mapping[str, ProviderSettings] = field(default_factory=lambda: MappingProxyType({}))
    #: By name: the tables ``[channels.NAME]``.
    channels: Mapping[str, ChannelSettings] = field(default_factory=lambda: MappingProxyType({}))
    tools: ToolsSettings = ToolsSettings()
    sandbox: SandboxSettings = SandboxSettings()
    approvals: ApprovalsSettings = ApprovalsSettings()
    plugins: PluginsSettings = PluginsSettings()
    features: FeaturesSettings = FeaturesSettings()
    #: The sections that features declare, by table: ``schedule``, ``plugins.NAME``.
    sections: Mapping[str, object] = field(default_factory=lambda: MappingProxyType({}))
    #: Tables that features let the user name: ``agents`` holds those of ``[agents.NAME]``.
    tables: Mapping[str, Mapping[str, object]] = field(default_factory=lambda: MappingProxyType({}))
    #: The origin of each value that is not a default, by ``section.key``.
    origins: Mapping[str, Origin] = field(
        default_factory=lambda: MappingProxyType({}), repr=False, compare=False
    )
    #: Warnings: usable settings that should be changed.
    warnings: tuple[str, ...] = field(default=(), compare=False)
    #: The features for which the settings were loaded (``clew.plugin.loading``).
    loaded_features: object = field(default=None, repr=False, compare=False)

    @property
    def config_file(self) -> Path:
        return self.home / "config.toml"


#: The sections whose keys are fixed.
SECTIONS: Final[Mapping[str, type]] = MappingProxyType(
    {
        "model": ModelSettings,
        "agent": AgentSettings,
        "store": StoreSettings,
        "api": ApiSettings,
        "session": SessionSettings,
        "compaction": CompactionSettings,
        "lease": LeaseSettings,
        "tools": ToolsSettings,
        "sandbox": SandboxSettings,
        "approvals": ApprovalsSettings,
        "plugins": PluginsSettings,
        "features": FeaturesSettings,
    }
)
