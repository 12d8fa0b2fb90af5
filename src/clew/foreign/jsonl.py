"""Files with a JSON object in each line, while another program may still append to them."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any, Final

from clew.core.payload import as_object
from clew.record import Record

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

#: A conversation may still be written to if the last write is as recent, in milliseconds.
GROWING_FOR: Final = 600_000


class JsonLine(Record):
    """One line; ``data`` is empty if it is no JSON object."""

    number: int
    raw: str
    data: dict[str, Any]

    @property
    def is_damaged(self) -> bool:
        return not self.data


def parse_line(number: int, raw: str) -> JsonLine:
    """Return a line, read as far as it can be."""
    try:
        data = as_object(json.loads(raw))
    except (ValueError, RecursionError):
        data = {}
    return JsonLine(number=number, raw=raw, data=data)


def iter_lines(path: Path) -> Iterator[JsonLine]:
    """
    Yield the lines that are not empty.

    A last line without an end that is half written is left for the next time, as long as the
    file may still grow.
    """
    growing = is_growing(path)
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            text = line.rstrip(b"\r\n").decode("utf-8", "replace")
            if not text.strip():
                continue
            parsed = parse_line(number, text)
            if parsed.is_damaged and growing and not line.endswith(b"\n"):
                return
            yield parsed


def read_mtime(path: Path) -> int:
    """Return when a file was written last, in milliseconds; 0 if it is gone."""
    try:
        return path.stat().st_mtime_ns // 1_000_000
    except OSError:
        return 0


def is_recent(at: int) -> bool:
    """Return whether a write at that moment may be followed by others."""
    return at > time.time() * 1000 - GROWING_FOR


def is_growing(path: Path) -> bool:
    """Return whether another program may still be writing to a file."""
    return is_recent(read_mtime(path))


def list_changed(paths: Iterable[Path], since: int) -> list[Path]:
    """Return the files written at or after a time, the oldest first."""
    dated = sorted((read_mtime(path), path) for path in paths)
    return [path for at, path in dated if at >= since]
