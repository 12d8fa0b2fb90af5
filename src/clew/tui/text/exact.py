"""Exact text: every space has its cell, and invisible characters are escaped."""

from __future__ import annotations

import json
import unicodedata
from typing import TYPE_CHECKING, Final

from rich.cells import cell_len

from clew.record import Record

if TYPE_CHECKING:
    from collections.abc import Iterator

#: Categories of characters that are invisible, or that change how others look.
_INVISIBLE: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
#: Marks a line end of the text itself.
LINE_END: Final = "↵"
#: Marks a trailing space.
TRAILING_SPACE: Final = "·"


class CharacterRun(Record):
    """Consecutive characters of one kind."""

    text: str
    #: An escape in place of an invisible character.
    is_escaped: bool = False


def argument_fields(args: str) -> list[tuple[str, str]]:
    """
    Return name and value of each argument: strings as they are, the rest as JSON.

    Anything but a JSON object is one value without a name.
    """
    try:
        found: object = json.loads(args)
    except ValueError:
        return [("", args)]
    if not isinstance(found, dict):
        return [("", args)]
    values: dict[str, object] = found  # pyright: ignore[reportUnknownVariableType]
    return [
        (name, value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=1))
        for name, value in values.items()
    ]


def wrap_exact(text: str, width: int) -> Iterator[list[CharacterRun]]:
    """Yield the text in rows of at most ``width`` cells, split at any character."""
    row: list[CharacterRun] = []
    used = 0
    for run in _iter_runs(text):
        size = cell_len(run.text)
        if used + size > width and row:
            yield _merge_runs(row)
            row, used = [], 0
        row.append(run)
        used += size
        if run.text == LINE_END and run.is_escaped:
            yield _merge_runs(row)
            row, used = [], 0
    yield _merge_runs(row)


def _iter_runs(text: str) -> Iterator[CharacterRun]:
    """Yield one run per character, with trailing spaces made visible."""
    for number, line in enumerate(text.split("\n")):
        if number:
            yield CharacterRun(text=LINE_END, is_escaped=True)
        visible = line.rstrip(" ")
        yield from map(_make_run, visible)
        yield from [CharacterRun(text=TRAILING_SPACE, is_escaped=True)] * (len(line) - len(visible))


def _make_run(char: str) -> CharacterRun:
    return (
        CharacterRun(text=_escape_char(char), is_escaped=True)
        if _is_invisible(char)
        else CharacterRun(text=char)
    )


def _is_invisible(char: str) -> bool:
    category = unicodedata.category(char)
    return category in _INVISIBLE or (category == "Zs" and char != " ") or cell_len(char) == 0


def _escape_char(char: str) -> str:
    number = ord(char)
    if char == "\t":
        return "\\t"
    if char == "\r":
        return "\\r"
    if number < 0x100:
        return f"\\x{number:02x}"
    return f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"


def _merge_runs(row: list[CharacterRun]) -> list[CharacterRun]:
    found: list[CharacterRun] = []
    for run in row:
        if found and found[-1].is_escaped == run.is_escaped:
            found[-1] = CharacterRun(text=found[-1].text + run.text, is_escaped=run.is_escaped)
        else:
            found.append(run)
    return found
