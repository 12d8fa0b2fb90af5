"""Sessions that were forked from others: a fork begins with a copy of lines, ids included."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

_ID: Final = re.compile(rb'"uuid": ?"([^"]{1,80})"')


class ForkSources:
    """The older session of each fork."""

    def __init__(self, files: Sequence[Path]) -> None:
        firsts: dict[bytes, list[Path]] = {}
        for file in files:
            if name := next(_iter_ids(file), b""):
                firsts.setdefault(name, []).append(file)
        self._sources: dict[Path, Path] = {}
        same: dict[Path, Path] = {}
        for file in sorted(files, key=_read_birth):
            for place, name in enumerate(_iter_ids(file)):
                for fork in firsts.get(name, ()):
                    # A copy of a part lies within its source; of two that begin alike, the
                    # older one is the source.
                    (self._sources if place else same).setdefault(fork, file)
        self._sources = same | self._sources

    def find(self, file: Path) -> str | None:
        """Return the id of the session that this one was forked from."""
        source = self._sources.get(file, file)
        return None if source == file else source.stem


def _read_birth(file: Path) -> tuple[int, str]:
    try:
        about = file.stat()
    except OSError:
        return 0, file.stem
    return about.st_mtime_ns, file.stem


def _iter_ids(file: Path) -> Iterator[bytes]:
    try:
        with file.open("rb") as lines:
            for line in lines:
                yield from (match[1] for match in _ID.finditer(line))
    except OSError:
        return
