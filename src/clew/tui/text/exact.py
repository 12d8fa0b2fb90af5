"""Text to the letter: every blank has its cell, and what cannot be seen is written out."""

from __future__ import annotations

import json
import unicodedata
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from rich.cells import cell_len

if TYPE_CHECKING:
    from collections.abc import Iterator

#: Categories of characters that show nothing, or change how others look.
_UNSEEN: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
#: Stands where a line ends in the text itself.
LINE_END: Final = "↵"
#: Stands for a blank behind which nothing stands in its line.
BLANK: Final = "·"


@dataclass(frozen=True, kw_only=True, slots=True)
class Run:
    """Characters of one kind in a row."""

    text: str
    #: Written in place of what cannot be seen.
    written_out: bool = False


def fields(args: str) -> list[tuple[str, str]]:
    """
    Name and value of each argument, strings as they will be handed over, the rest as JSON.

    What is no JSON object is one value without a name.
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


def rows(text: str, width: int) -> Iterator[list[Run]]:
    """The text in rows of at most ``width`` cells, cut at any character."""
    row: list[Run] = []
    used = 0
    for run in _runs(text):
        size = cell_len(run.text)
        if used + size > width and row:
            yield _joined(row)
            row, used = [], 0
        row.append(run)
        used += size
        if run.text == LINE_END and run.written_out:
            yield _joined(row)
            row, used = [], 0
    yield _joined(row)


def _runs(text: str) -> Iterator[Run]:
    """One run for each character; blanks at the end of a line could not be seen."""
    for number, line in enumerate(text.split("\n")):
        if number:
            yield Run(text=LINE_END, written_out=True)
        visible = line.rstrip(" ")
        yield from map(_run, visible)
        yield from [Run(text=BLANK, written_out=True)] * (len(line) - len(visible))


def _run(char: str) -> Run:
    return Run(text=_escape(char), written_out=True) if _is_unseen(char) else Run(text=char)


def _is_unseen(char: str) -> bool:
    category = unicodedata.category(char)
    return category in _UNSEEN or (category == "Zs" and char != " ") or cell_len(char) == 0


def _escape(char: str) -> str:
    number = ord(char)
    if char == "\t":
        return "\\t"
    if char == "\r":
        return "\\r"
    if number < 0x100:
        return f"\\x{number:02x}"
    return f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"


def _joined(row: list[Run]) -> list[Run]:
    found: list[Run] = []
    for run in row:
        if found and found[-1].written_out == run.written_out:
            found[-1] = Run(text=found[-1].text + run.text, written_out=run.written_out)
        else:
            found.append(run)
    return found
