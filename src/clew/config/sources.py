"""The sources of settings: what the file, the environment and the flags say, with its place."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from clew.config.keys import NEST, PREFIX
from clew.config.reading import is_reference
from clew.config.settings import SECTIONS, Origin
from clew.errors import SettingsError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

Path_ = tuple[str, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Given:
    """A value that somebody gave, before anything is known about it."""

    path: Path_
    value: object
    origin: Origin
    #: A text that stands for a value of another type (environment, flag).
    is_text: bool


def from_file(file: Path) -> list[Given]:
    """
    What ``config.toml`` says; nothing if there is none.

    :raises SettingsError: if it cannot be read or is not TOML
    """
    try:
        text = file.read_text(encoding="utf-8-sig")
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise SettingsError(f"{file} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise SettingsError(f"{file} is not UTF-8 (byte {error.start})") from error
    try:
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(f"{file} is not TOML: {error}") from error
    lines = line_numbers(text)
    return [
        Given(path=path, value=value, origin=_in_file(file, path, lines), is_text=False)
        for path, value in _leaves((), tables)
    ]


def _leaves(path: Path_, table: Mapping[str, object]) -> Iterator[tuple[Path_, object]]:
    """The values of a table, descending as far as tables are sections and not values."""
    for name, value in table.items():
        here = (*path, name)
        if (
            isinstance(value, dict)
            and _is_section(here)
            and not is_reference(cast("object", value))
        ):
            inner = cast("dict[str, object]", value)
            yield from _leaves(here, inner) if inner else [(here, value)]
        else:
            yield here, value


def _is_section(path: Path_) -> bool:
    open_table = path[0] in ("channels", "providers") or (
        path[0] == "plugins" and path[1:2] != ("enabled",)
    )
    return open_table or (len(path) == 1 and path[0] in SECTIONS)


def _in_file(file: Path, path: Path_, lines: Mapping[Path_, int]) -> Origin:
    for end in range(len(path), 0, -1):
        if line := lines.get(path[:end]):
            return Origin(kind="file", place=f"{file}, line {line}")
    return Origin(kind="file", place=str(file))


_HEADER = r"\s*\[\[?\s*([^]]+?)\s*\]\]?\s*(?:#.*)?"
_ASSIGNMENT = r"""\s*((?:[\w-]+|"[^"]*"|'[^']*')(?:\s*\.\s*(?:[\w-]+|"[^"]*"))*)\s*="""
_LONG = ('"""', "'''")


def line_numbers(text: str) -> dict[Path_, int]:
    """The line of each table and key. Only for messages: it need not know all of TOML."""
    found: dict[Path_, int] = {}
    table: Path_ = ()
    long = ""
    for number, line in enumerate(text.splitlines(), start=1):
        if not long:
            if header := re.fullmatch(_HEADER, line):
                table = _split(header[1])
                found.setdefault(table, number)
            elif assignment := re.match(_ASSIGNMENT, line):
                found.setdefault((*table, *_split(assignment[1])), number)
        for quotes in _LONG:
            if line.count(quotes) % 2 and long in ("", quotes):
                long = "" if long else quotes
    return found


def _split(dotted: str) -> Path_:
    return tuple(part.strip().strip("\"'") for part in dotted.split("."))


def from_environment(environ: Mapping[str, str]) -> list[Given]:
    """What ``CLEW_SECTION__KEY`` says; an empty variable says nothing."""
    return [
        Given(
            path=tuple(name.removeprefix(PREFIX).lower().split(NEST)),
            value=text,
            origin=Origin(kind="environment", place=name),
            is_text=True,
        )
        for name, text in sorted(environ.items())
        if name.startswith(PREFIX) and NEST in name.removeprefix(PREFIX) and text
    ]


def from_flags(flags: Mapping[str, object]) -> list[Given]:
    """What ``section.key`` was set to on the command line."""
    return [
        Given(
            path=tuple(name.split(".")),
            value=value,
            origin=Origin(kind="flag", place=f"--set {name}"),
            is_text=isinstance(value, str),
        )
        for name, value in flags.items()
    ]
