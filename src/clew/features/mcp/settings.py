"""The settings of MCP servers."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, TypeVar, cast

from clew.config.builtin_types import (
    FLAG,
    SECRET,
    SECRETS,
    TEXT,
    TEXTS,
    URL,
    choice_type,
)
from clew.config.fields import setting
from clew.errors import UsageError
from clew.record import Record

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from clew.config.secret import Secret
    from clew.config.settings import Settings

_T = TypeVar("_T")

#: The section of the tables.
SECTION: Final = "mcp"
#: Levels of the sandbox at which a server can run: it keeps its pipes to the gateway.
SERVER_LEVELS: Final = ("read", "work", "host")
#: What the annotations of a server count for.
TRUST: Final = ("none", "annotations", "full")
#: How the gateway proves who it is.
AUTH: Final = ("none", "oauth", "client_credentials")
#: The name of a server.
NAME_PATTERN: Final = re.compile(r"[a-z][a-z0-9_-]{0,39}")


class McpServer(Record):
    """A server of the Model Context Protocol, whose tools the agent can call."""

    command: tuple[str, ...] = setting(
        TEXTS,
        (),
        "The program and its arguments; it is started when it is needed and talks over its "
        "standard input and output.",
    )
    url: str | None = setting(
        URL, None, "The address of a server that talks over HTTP, instead of a command."
    )
    env: Mapping[str, Secret] | None = setting(
        SECRETS,
        None,
        "Environment variables of the command: text, or a reference as every secret. It gets no "
        "others but PATH, HOME and LANG.",
    )
    headers: Mapping[str, Secret] | None = setting(
        SECRETS, None, "HTTP headers for the address: text, or a reference as every secret."
    )
    level: str = setting(
        choice_type(SERVER_LEVELS),
        "work",
        "The sandbox level of the command: at `work` and `read` it has no network and sees only a "
        "folder of its own; at `host` it has all rights of this user.",
    )
    readable: tuple[str, ...] = setting(
        TEXTS,
        (),
        "Files and folders that the command may read at `work` and `read`, beside its own "
        "folder and /usr; for example the environment that it is installed in.",
    )
    trust: str = setting(
        choice_type(TRUST),
        "none",
        "What the server's word about its tools counts for. `none`: each call asks and is never "
        "repeated. `annotations`: tools that say that they only read do not ask; what is "
        "said to be idempotent is repeated after a crash. `full`: as `annotations`, and no call "
        "asks.",
    )
    auth: str = setting(
        choice_type(AUTH),
        "none",
        "How the gateway proves who it is, beside `headers`. `oauth`: a person logs in with `clew "
        "mcp login NAME` or `/mcp login NAME`, and tokens are renewed by themselves; "
        "`client_credentials`: with `client_id` and `client_secret`, without a person.",
    )
    client_id: str | None = setting(
        TEXT,
        None,
        "The id of an account for programs.",
        default_doc="registered at the first login",
    )
    client_secret: Secret | None = setting(
        SECRET, None, "The secret of that account, if it has one."
    )
    scopes: tuple[str, ...] = setting(
        TEXTS, (), "The permissions that a login asks for.", default_doc="what the server names"
    )
    tools: tuple[str, ...] | None = setting(
        TEXTS,
        None,
        'The tools that are used; `*` stands for any text: `["get_*", "search"]`.',
        default_doc="all of them",
    )
    show: bool = setting(
        FLAG,
        False,
        "Put its tools, if they are at most 10, into the list of tools of each new session, so "
        "that the model needs no search for them. Each request is longer by their definitions.",
    )

    @property
    def place(self) -> str:
        """Return its address, or how its command runs."""
        return self.url or f"a command at {self.level}"


def get_servers(settings: Settings) -> Mapping[str, McpServer]:
    """Return the servers of the settings, by name."""
    return cast("Mapping[str, McpServer]", settings.tables.get(SECTION, {}))


def pick_server(servers: Mapping[str, _T], name: str) -> _T:
    """
    Return what belongs to a server.

    :raises UsageError: naming the servers, if there is no such one
    """
    if name not in servers:
        known = ", ".join(servers) or "none"
        raise UsageError(f"there is no MCP server {name!r}; there are {known}")
    return servers[name]


def check_login(name: str, server: McpServer) -> None:
    """
    Check that a person can log in at a server.

    :raises UsageError: saying why not
    """
    if server.auth != "oauth":
        raise UsageError(f'{name} needs no login: [mcp.{name}] has no auth = "oauth"')


def find_problems(settings: Settings) -> Iterator[str]:
    """Yield a sentence for each thing in the tables that cannot be honoured."""
    for name, server in get_servers(settings).items():
        table = f"[{SECTION}.{name}]"
        if not NAME_PATTERN.fullmatch(name):
            yield f"{table}: the name of a server has a-z, 0-9, - and _, at most 40 of them"
        if bool(server.command) == (server.url is not None):
            yield f"{table}: name either a command or a url"
        elif server.url is None and server.headers:
            yield f"{table}: headers are for servers with a url; a command has env"
        elif server.url is not None and (server.env or server.readable):
            yield f"{table}: env and readable are for servers with a command; a url has headers"
        if server.auth != "none" and server.url is None:
            yield f"{table}: auth is for servers with a url; a command has env"
        if server.auth == "client_credentials" and not (server.client_id and server.client_secret):
            yield f"{table}: client_credentials need client_id and client_secret"
