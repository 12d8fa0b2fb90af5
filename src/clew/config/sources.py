"""Sources of settings: raw values of file, environment and flags, with their origin."""

from __future__ import annotations

import re
import tomllib
from typing import TYPE_CHECKING, cast

from clew.config.fields import ENV_PREFIX, ENV_SEPARATOR
from clew.config.parsers import is_secret_reference
from clew.config.settings import SECTIONS, Origin
from clew.errors import SettingsError
from clew.record import Record

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping
    from pathlib import Path

KeyPath = tuple[str, ...]


class RawValue(Record):
    """A value as given, before it is checked."""

    path: KeyPath
    value: object
    origin: Origin
    #: True if the value is text to be parsed (environment, flag).
    is_text: bool


def read_config_file(
    file: Path,
    *,
    sections: Collection[str] = SECTIONS.keys(),
    named: Collection[str] = ("channels", "providers"),
) -> list[RawValue]:
    """
    Return the values in ``config.toml``; empty if there is none.

    ``sections`` are the names of the tables whose keys are fixed, ``named`` of those that hold
    tables which the user names.

    :raises SettingsError: if it cannot be read or is not TOML
    """
    try:
        text = file.read_text(encoding="utf-8-sig")
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise SettingsError(f"{file} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise SettingsError(f"{file} is not valid UTF-8 (byte {error.start})") from error
    try:
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(f"{file} is not TOML: {error}") from error
    lines = find_line_numbers(text)
    return [
        RawValue(path=path, value=value, origin=_file_origin(file, path, lines), is_text=False)
        for path, value in _iter_leaves((), tables, sections, named)
    ]


def _iter_leaves(
    path: KeyPath, table: Mapping[str, object], sections: Collection[str], named: Collection[str]
) -> Iterator[tuple[KeyPath, object]]:
    """Yield the values of a table, descending into tables that are sections."""
    for name, value in table.items():
        here = (*path, name)
        if (
            isinstance(value, dict)
            and _is_section(here, sections, named)
            and not is_secret_reference(cast("object", value))
        ):
            inner = cast("dict[str, object]", value)
            yield from _iter_leaves(here, inner, sections, named) if inner else [(here, value)]
        else:
            yield here, value


def _is_section(path: KeyPath, sections: Collection[str], named: Collection[str]) -> bool:
    open_table = path[0] in named or (path[0] == "plugins" and path[1:2] != ("enabled",))
    return open_table or (len(path) == 1 and path[0] in sections)


def _file_origin(file: Path, path: KeyPath, lines: Mapping[KeyPath, int]) -> Origin:
    for end in range(len(path), 0, -1):
        if line := lines.get(path[:end]):
            return Origin(kind="file", place=f"{file}, line {line}")
    return Origin(kind="file", place=str(file))


_HEADER = r"\s*\[\[?\s*([^]]+?)\s*\]\]?\s*(?:#.*)?"
_ASSIGNMENT = r"""\s*((?:[\w-]+|"[^"]*"|'[^']*')(?:\s*\.\s*(?:[\w-]+|"[^"]*"))*)\s*="""
_MULTILINE_QUOTES = ('"""', "'''")


def find_line_numbers(text: str) -> dict[KeyPath, int]:
    """Return the line of each table and key, for messages only: it covers a subset of TOML."""
    found: dict[KeyPath, int] = {}
    table: KeyPath = ()
    long = ""
    for number, line in enumerate(text.splitlines(), start=1):
        if not long:
            if header := re.fullmatch(_HEADER, line):
                table = _split_dotted(header[1])
                found.setdefault(table, number)
            elif assignment := re.match(_ASSIGNMENT, line):
                found.setdefault((*table, *_split_dotted(assignment[1])), number)
        for quotes in _MULTILINE_QUOTES:
            if line.count(quotes) % 2 and long in ("", quotes):
                long = "" if long else quotes
    return found


def _split_dotted(dotted: str) -> KeyPath:
    return tuple(part.strip().strip("\"'") for part in dotted.split("."))


def read_environment(environ: Mapping[str, str]) -> list[RawValue]:
    """Return the values of ``CLEW_SECTION__KEY`` variables; empty ones are ignored."""
    return [
        RawValue(
            path=tuple(name.removeprefix(ENV_PREFIX).lower().split(ENV_SEPARATOR)),
            value=text,
            origin=Origin(kind="environment", place=name),
            is_text=True,
        )
        for name, text in sorted(environ.items())
        if name.startswith(ENV_PREFIX) and ENV_SEPARATOR in name.removeprefix(ENV_PREFIX) and text
    ]


def read_flags(flags: Mapping[str, object]) -> list[RawValue]:
    """Return the values given as ``section.key`` on the command line."""
    return [
        RawValue(
            path=tuple(name.split(".")),
            value=value,
            origin=Origin(kind="flag", place=f"--set {name}"),
            is_text=isinstance(value, str),
        )
        for name, value in flags.items()
    ]
