"""The tables of MCP servers in ``config.toml``, and the files of their secrets."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from clew.config.toml_edit import (
    CONFIG_NAME,
    atomic_write,
    edit_toml,
    remove_table,
    to_toml,
)
from clew.errors import SettingsError, UsageError
from clew.features.mcp.importing import PlainSecret
from clew.features.mcp.settings import SECTION

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from clew.config import Settings
    from clew.features.mcp.importing import SecretValue, ServerEntry

#: The folder of the files that each hold one key.
_KEYS: Final = "keys"


def add_servers(
    home: Path, entries: Sequence[ServerEntry], load: Callable[[], Settings]
) -> Settings:
    """
    Write servers into ``config.toml``, and return the settings with them.

    If these cannot be loaded, the file is as it was.

    :raises UsageError: if there is such a server, or the layout does not allow the edit
    :raises SettingsError: if the settings would be wrong
    """
    file = home / CONFIG_NAME
    before = _read(file)
    changes: dict[tuple[str, str], str | None] = {}
    for entry in entries:
        if find_table(before, entry.name):
            raise UsageError(
                f"there is an MCP server {entry.name} already: clew mcp remove {entry.name}"
            )
        changes |= _make_changes(home, entry)
    return _write(file, before, edit_toml(before, changes), load)


def _make_changes(home: Path, entry: ServerEntry) -> dict[tuple[str, str], str | None]:
    table: dict[str, object] = dict(entry.values)
    for key, secrets in (("env", entry.env), ("headers", entry.headers)):
        if secrets:
            table[key] = {
                name: _store_secret(home, f"{entry.name}-{name}", value)
                for name, value in secrets.items()
            }
    section = f"{SECTION}.{entry.name}"
    return {(section, key): to_toml(value) for key, value in table.items()}


def _store_secret(home: Path, name: str, value: SecretValue) -> object:
    """Return what ``config.toml`` has of a value; a secret gets a file of its own."""
    if not isinstance(value, PlainSecret):
        return value
    folder = home / _KEYS
    folder.mkdir(mode=0o700, exist_ok=True)
    file = folder / f"{SECTION}-{re.sub(r'[^A-Za-z0-9_-]', '_', name)}"
    atomic_write(file, f"{value.text}\n")
    return {"file": f"{_KEYS}/{file.name}"}


def remove_server(home: Path, name: str, load: Callable[[], Settings]) -> Settings:
    """
    Remove a server with the files of its secrets, and return the settings without it.

    :raises UsageError: if there is no such server, or the layout does not allow the edit
    """
    file = home / CONFIG_NAME
    before = _read(file)
    if not find_table(before, name):
        raise UsageError(f"{file} has no table [{SECTION}.{name}]")
    settings = _write(file, before, remove_table(before, f"{SECTION}.{name}"), load)
    for path in set(re.findall(rf'"({_KEYS}/{SECTION}-{re.escape(name)}-[\w-]+)"', before)):
        (home / path).unlink(missing_ok=True)
    return settings


def find_table(content: str, name: str) -> bool:
    """Return whether a server has a table."""
    pattern = rf"(?m)^\s*\[\s*{SECTION}\s*\.\s*\"?{re.escape(name)}\"?\s*\]"
    return re.search(pattern, content) is not None


def _read(file: Path) -> str:
    return file.read_text(encoding="utf-8-sig") if file.is_file() else ""


def _write(file: Path, before: str, after: str, load: Callable[[], Settings]) -> Settings:
    atomic_write(file, after)
    try:
        return load()
    except SettingsError:
        atomic_write(file, before)
        raise
