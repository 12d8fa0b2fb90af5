"""Search for lines in the text files of a workspace, with limits to time and size."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import regex

from clew.core.text import truncate_text
from clew.documents.document_text import may_be_document
from clew.features.files.listing import iter_matching, quote_path
from clew.features.files.reading import MAX_CHARS, decode_text
from clew.sandbox.errors import FileRefused, FileTooLarge

if TYPE_CHECKING:
    from clew.features.files.access import LocatedPath

#: Lines in one result, and characters of each.
MAX_MATCHES: Final = 200
_MAX_LINE_CHARS: Final = 300
#: Bytes of a file that is searched.
_FILE_LIMIT: Final = 5_000_000
#: Names of files that were not searched.
_MAX_NAMED: Final = 10
#: Seconds for a whole search.
_SECONDS: Final = 20.0


def search_lines(place: LocatedPath, pattern: str, *, names: str) -> str:
    """
    Return the matching lines, as ``PATH:LINE: TEXT``.

    :raises FileRefused: if the expression is not valid, or there is no such folder
    """
    try:
        compiled = regex.compile(pattern)
    except regex.error as error:
        raise FileRefused(f"{pattern!r} is not a regular expression: {error}") from error
    search = _Search(compiled)
    for entry in iter_matching(place, names):
        search.search_file(place, entry.path)
        if search.is_over:
            break
    return search.render()


@dataclass(slots=True)
class _Search:
    """One search: its matches, and whether it has reached a limit."""

    pattern: regex.Pattern[str]
    found: list[str] = field(default_factory=list[str])
    #: Files that were not searched, and that a person may have meant.
    left_out: list[str] = field(default_factory=list[str])
    stopped: str | None = None
    _room: int = MAX_CHARS
    _ends: float = field(default_factory=lambda: time.monotonic() + _SECONDS)

    @property
    def is_over(self) -> bool:
        return self.stopped is not None

    def search_file(self, place: LocatedPath, path: str) -> None:
        """Search a file; skip one that is not text or gone, and name documents and large ones."""
        try:
            content = place.workspace.read_file(path, limit=_FILE_LIMIT)
            if may_be_document(content):
                self.left_out.append(quote_path(place.show_path(path)))
                return
            text = decode_text(path, content).text
        except FileTooLarge:
            self.left_out.append(quote_path(place.show_path(path)))
            return
        except FileRefused:
            return
        for number, line in enumerate(text.split("\n"), start=1):
            if self._matches(line):
                shown = quote_path(place.show_path(path))
                self._add(f"{shown}:{number}: {truncate_text(line, _MAX_LINE_CHARS)}")
            if self.is_over:
                return

    def _matches(self, line: str) -> bool:
        left = self._ends - time.monotonic()
        try:
            if left > 0:
                return self.pattern.search(line, timeout=left) is not None
        except TimeoutError:
            pass
        self.stopped = f"stopped after {_SECONDS:g} s"
        return False

    def _add(self, line: str) -> None:
        self._room -= len(line) + 1
        if len(self.found) == MAX_MATCHES or self._room < 0:
            self.stopped = f"only the first {len(self.found)}"
        else:
            self.found.append(line)

    def render(self) -> str:
        end = [] if self.stopped is None else [f"[{self.stopped}: narrow the path or the names]"]
        if self.left_out:
            named = ", ".join(self.left_out[:_MAX_NAMED])
            more = len(self.left_out) - _MAX_NAMED
            others = f" and {more:,} more" if more > 0 else ""
            end.append(
                f"[not searched, no plain text or too large: {named}{others}; see read_file]"
            )
        return "\n".join([*(self.found or ([] if self.stopped else ["[nothing found]"])), *end])
