"""Servers as other programs configure them: ``mcpServers`` of Claude and Cursor, VS Code's form."""

from __future__ import annotations

import json
import re
from dataclasses import field
from typing import TYPE_CHECKING, Any, Final, cast

from clew.config.secret import is_secret_name
from clew.errors import UsageError
from clew.features.mcp.settings import NAME_PATTERN
from clew.record import Record

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

#: The tables of servers, by the keys that lead there.
_TABLES: Final = (("mcpServers",), ("servers",), ("mcp", "servers"), ("context_servers",))
_URL_KEYS: Final = ("url", "serverUrl", "httpUrl")
#: Keys that say nothing of their own.
_IMPLIED: Final = frozenset({"type", "transport", "disabled", "enabled"})
_TYPES: Final = frozenset({"stdio", "http", "streamable-http", "streamableHttp", None})
#: A whole value that is a variable of the environment.
_VARIABLE: Final = re.compile(r"\$\{(?:env:)?([A-Za-z_][A-Za-z0-9_]*)\}")


class PlainSecret(Record, kw_only=False):
    """A secret that is written down; it is kept in a file of its own."""

    text: str = field(repr=False)


#: A value of a table: as TOML has it, or a secret.
SecretValue = str | dict[str, str] | PlainSecret


class ServerEntry(Record):
    """A server to be added."""

    name: str
    #: The keys of its table but ``env`` and ``headers``.
    values: Mapping[str, object]
    env: Mapping[str, SecretValue] = field(default_factory=dict[str, SecretValue])
    headers: Mapping[str, SecretValue] = field(default_factory=dict[str, SecretValue])


class ReadServers(Record):
    """Servers in a file of another program."""

    servers: Sequence[ServerEntry]
    #: What was not taken, in sentences without values.
    remarks: Sequence[str]


class _NotTaken(Exception):
    """The reason why a server cannot be taken."""


def read_servers(text: str) -> ReadServers:
    """
    Read the servers of a file.

    :raises UsageError: if there are none in it
    """
    try:
        found: object = json.loads(text)
    except ValueError as error:
        raise UsageError(f"the file is not JSON: {error}") from None
    table = _find_table(found)
    servers: list[ServerEntry] = []
    remarks: list[str] = []
    for name, given in table.items():
        try:
            servers.append(_read_server(name, given, remarks))
        except _NotTaken as error:
            remarks.append(f"{name} was not taken: {error}")
    return ReadServers(servers=servers, remarks=remarks)


def _find_table(found: object) -> Mapping[str, object]:
    for path in _TABLES:
        table = found
        for key in path:
            table = cast("dict[str, object]", table).get(key) if isinstance(table, dict) else None
        if isinstance(table, dict):
            return cast("dict[str, object]", table)
    raise UsageError("the file has no mcpServers, and no servers as VS Code has them")


def _read_server(name: str, given: object, remarks: list[str]) -> ServerEntry:
    if not isinstance(given, dict):
        raise _NotTaken("it is no table")
    fields = cast("dict[str, Any]", given)
    if fields.get("disabled") is True or fields.get("enabled") is False:
        raise _NotTaken("it is disabled there")
    kind = fields.get("type", fields.get("transport"))
    if kind not in _TYPES:
        raise _NotTaken(f"its type {kind!r} is not supported: use stdio or http")
    values = _read_place(fields)
    own = _make_name(name)
    is_command = "command" in values
    used = {"command", "args", "env"} if is_command else {*_URL_KEYS, "headers"}
    if other := sorted(fields.keys() - used - _IMPLIED):
        remarks.append(f"{name}: not taken are {', '.join(other)}")
    key = "env" if is_command else "headers"
    secrets = dict(_read_secrets(name, key, fields.get(key) or {}, remarks))
    return ServerEntry(name=own, values=values, **{key: secrets})


def _make_name(name: str) -> str:
    own = re.sub(r"[^a-z0-9_-]+", "-", name.lower()).strip("-")
    if not NAME_PATTERN.fullmatch(own):
        raise _NotTaken("no name can be made of its own: it has a-z, 0-9, - and _, at most 40")
    return own


def _read_place(fields: Mapping[str, Any]) -> dict[str, object]:
    """Return the command or the address of a server."""
    url: object = next((fields[key] for key in _URL_KEYS if fields.get(key)), None)
    command: object = fields.get("command")
    if url is None and not command:
        raise _NotTaken("it has neither a command nor a url")
    given = [*_as_list(command), *_as_list(fields.get("args") or [])] if command else [url]
    texts = [one for one in given if isinstance(one, str)]
    if len(texts) < len(given):
        raise _NotTaken("its command, args or url is no text")
    if any("${" in one for one in texts):
        raise _NotTaken(
            "its command, args or url has a variable: add it with clew mcp add, written out"
        )
    return {"command": texts} if command else {"url": texts[0]}


def _as_list(value: object) -> list[object]:
    return cast("list[object]", value) if isinstance(value, list) else [value]


def _read_secrets(
    name: str, key: str, given: object, remarks: list[str]
) -> Iterator[tuple[str, SecretValue]]:
    if not isinstance(given, dict):
        raise _NotTaken(f"its {key} is no table")
    for item, value in cast("dict[str, object]", given).items():
        if isinstance(value, (int, float, bool)):
            value = json.dumps(value)
        if not isinstance(value, str) or ("${" in value and not _VARIABLE.fullmatch(value)):
            remarks.append(f"{name}: {key}.{item} was not taken: set it yourself")
        else:
            yield item, read_secret(item, value, is_header=key == "headers")


def read_secret(name: str, value: str, *, is_header: bool = False) -> SecretValue:
    """Return a value: a variable that it names, a secret if it is one by its name, or text."""
    if (variable := _VARIABLE.fullmatch(value)) is not None:
        return {"env": variable[1]}
    if is_header or is_secret_name(name) or ("://" in value and "@" in value):
        return PlainSecret(value)
    return value
