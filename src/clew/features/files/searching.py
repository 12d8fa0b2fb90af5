"""Search for lines in the files of a workspace, with limits to time and size."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import regex

from clew.agent.known_secrets import redact_secrets
from clew.core.text import truncate_text
from clew.documents.document_text import DocumentRefused, may_be_document, read_document
from clew.features.files.listing import iter_matching, quote_path
from clew.features.files.reading import MAX_CHARS, decode_text
from clew.features.files.restrictions import describe_left_out
from clew.sandbox.errors import FileRefused, FileTooLarge

if TYPE_CHECKING:
    from clew.features.files.restrictions import Restriction
    from clew.features.files.turn_workspace import LocatedPath

#: Lines in one result, and characters of each.
MAX_MATCHES: Final = 200
_MAX_LINE_CHARS: Final = 300
#: Bytes of a text file that is searched, and of a document.
_FILE_LIMIT, _DOCUMENT_LIMIT = 5_000_000, 20_000_000
#: Documents that are searched: each is read by a process of its own.
MAX_DOCUMENTS: Final = 30
#: Names of files that were not searched.
_MAX_NAMED: Final = 10
#: Seconds for all text files, and then for all documents.
_SECONDS: Final = 20.0


async def search_lines(
    place: LocatedPath, pattern: str, *, names: str, is_hidden: Restriction = lambda _: False
) -> str:
    """
    Return the matching lines, as ``PATH:LINE: TEXT``: of text files, then of documents.

    :raises FileRefused: if the expression is not valid, or there is no such folder
    """
    try:
        compiled = regex.compile(pattern)
    except regex.error as error:
        raise FileRefused(f"{pattern!r} is not a regular expression: {error}") from error
    search = _Search(place, compiled, is_hidden)
    await asyncio.to_thread(search.search_texts, names)
    await search.search_documents()
    return search.render()


@dataclass(slots=True)
class _Search:
    """One search: its matches, and whether it has reached a limit."""

    place: LocatedPath
    pattern: regex.Pattern[str]
    is_hidden: Restriction
    found: list[str] = field(default_factory=list[str])
    documents: list[str] = field(default_factory=list[str])
    #: Files that were not searched, and that a person may have meant.
    left_out: list[str] = field(default_factory=list[str])
    hidden: int = 0
    stopped: str | None = None
    _room: int = MAX_CHARS
    _ends: float = field(default_factory=lambda: time.monotonic() + _SECONDS)

    def search_texts(self, names: str) -> None:
        """Search all text files; note the documents."""
        for entry in iter_matching(self.place, names):
            if self.is_hidden(entry.path):
                self.hidden += 1
            else:
                self._search_file(entry.path)
            if self.stopped is not None:
                return

    def _search_file(self, path: str) -> None:
        """Search a file; skip one that is not text or gone, and name large ones."""
        try:
            content = self.place.workspace.read_file(path, limit=_DOCUMENT_LIMIT)
            if may_be_document(content):
                self.documents.append(path)
            elif len(content) > _FILE_LIMIT:
                self.left_out.append(path)
            else:
                self._search_text(path, decode_text(path, content).text)
        except FileTooLarge:
            self.left_out.append(path)
        except FileRefused:
            return

    async def search_documents(self) -> None:
        """Search the documents, until there are too many or they take too long."""
        self._ends = time.monotonic() + _SECONDS
        for n, path in enumerate(self.documents):
            if self.stopped is not None:
                return
            if n >= MAX_DOCUMENTS or (text := await self._read_in_time(path)) is None:
                self.left_out.append(path)
            else:
                await asyncio.to_thread(self._search_text, path, text)

    async def _read_in_time(self, path: str) -> str | None:
        """Return the text of a document; ``None`` if it cannot be read in time."""
        try:
            async with asyncio.timeout(max(0.0, self._ends - time.monotonic())):
                content = await asyncio.to_thread(
                    self.place.workspace.read_file, path, limit=_DOCUMENT_LIMIT
                )
                document = await read_document(content)
        except (TimeoutError, DocumentRefused, FileRefused):
            return None
        return None if document is None else document.text

    def _search_text(self, path: str, text: str) -> None:
        shown = quote_path(self.place.show_path(path))
        for number, line in enumerate(text.split("\n"), start=1):
            if self._matches(line):
                self._add(
                    f"{shown}:{number}: {truncate_text(redact_secrets(line), _MAX_LINE_CHARS)}"
                )
            if self.stopped is not None:
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
            shown = (
                quote_path(self.place.show_path(one)) for one in sorted(self.left_out)[:_MAX_NAMED]
            )
            named = ", ".join(shown)
            more = len(self.left_out) - _MAX_NAMED
            others = f" and {more:,} more" if more > 0 else ""
            end.append(
                f"[not searched, no plain text or too large: {named}{others}; see read_file]"
            )
        end += describe_left_out(self.hidden)
        return "\n".join([*(self.found or ([] if self.stopped else ["[nothing found]"])), *end])
