"""The files of the dashboard: read when they are first needed, and again when one was edited."""

from __future__ import annotations

import gzip
import hashlib
import os
import posixpath
import re
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from clew.record import Record

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

FOLDER: Final = Path(__file__).parents[2] / "web"
INDEX_NAME: Final = "index.html"
MEDIA_TYPES: Final = {
    ".css": "text/css; charset=utf-8",
    ".png": "image/png",
    ".webmanifest": "application/manifest+json",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
}
#: Stands for the version in the page, and for the links that load all modules at once.
_VERSION_MARK: Final = "VERSION"
_MODULES_MARK: Final = "<!-- modules -->"
_LATER_MARK: Final = "<!-- later modules -->"
#: The module that the page begins with, and what a module imports before it runs.
_FIRST_MODULE: Final = "main.js"
_IMPORT: Final = re.compile(rb"""\b(?:from|import)\s*["'](\.{1,2}/[^"']+)["']""")
#: What a module imports once somebody needs it.
_LATER_IMPORT: Final = re.compile(rb"""\bimport\(\s*["'](\.{1,2}/[^"']+)["']""")


class SiteFile(Record, kw_only=False):
    """A file as it is sent."""

    media_type: str
    content: bytes
    packed: bytes
    etag: str


class SiteVersion(Record):
    """All files at one moment; those that reference each other belong together."""

    #: Digest of all files, in the path of each.
    name: str
    files: Mapping[str, SiteFile]
    #: Path, size and time of each file when it was read.
    stamp: tuple[tuple[str, int, int], ...] = field(repr=False)


class SiteFiles:
    """The files of a folder."""

    def __init__(self, folder: Path = FOLDER) -> None:
        self._folder = folder
        self._version: SiteVersion | None = None

    def get_version(self) -> SiteVersion:
        """Return the files as they were when the page was loaded last."""
        return self._version or self.load()

    def load(self) -> SiteVersion:
        """Return the files as they are now."""
        stamp = tuple(self._iter_stamps())
        if self._version is None or self._version.stamp != stamp:
            self._version = _read_version(self._folder, stamp)
        return self._version

    def _iter_stamps(self) -> Iterator[tuple[str, int, int]]:
        start = len(str(self._folder)) + 1
        for path in sorted(_iter_files(str(self._folder))):
            found = os.stat(path)  # noqa: PTH116 - each visit looks at all: no objects
            yield path[start:].replace(os.sep, "/"), found.st_size, found.st_mtime_ns


def _iter_files(folder: str) -> Iterator[str]:
    for place, _, names in os.walk(folder):
        for name in names:
            if not name.startswith(".") and os.path.splitext(name)[1] in MEDIA_TYPES:  # noqa: PTH122
                yield f"{place}{os.sep}{name}"


def _read_version(folder: Path, stamp: tuple[tuple[str, int, int], ...]) -> SiteVersion:
    contents = {name: (folder / name).read_bytes() for name, *_ in stamp}
    digest = hashlib.sha256()
    for name, content in contents.items():
        digest.update(f"{name} {len(content)} ".encode() + content)
    version = digest.hexdigest()[:16]
    page = contents[INDEX_NAME].decode()
    first = _find_modules(contents, [_FIRST_MODULE])
    later = _find_modules(contents, _iter_later(contents, first))
    page = page.replace(_MODULES_MARK, _link("modulepreload", first))
    page = page.replace(_LATER_MARK, _link("later-modulepreload", sorted({*later} - {*first})))
    page = page.replace(_VERSION_MARK, version)
    contents[INDEX_NAME] = page.encode()
    files = {name: _make_file(name, content) for name, content in contents.items()}
    return SiteVersion(name=version, files=files, stamp=stamp)


def _link(kind: str, names: Iterable[str]) -> str:
    return "\n".join(f'<link rel="{kind}" href="web/{_VERSION_MARK}/{name}">' for name in names)


def _find_modules(contents: Mapping[str, bytes], begin: Iterable[str]) -> list[str]:
    """Return modules with all that they import before anybody acts."""
    found: dict[str, None] = {}
    waiting = list(begin)
    while waiting:
        name = waiting.pop()
        if name in contents and name not in found:
            found[name] = None
            waiting.extend(_find_imports(name, contents[name], _IMPORT))
    return list(found)


def _iter_later(contents: Mapping[str, bytes], first: Iterable[str]) -> Iterator[str]:
    """Yield the modules that the first ones load after the page is shown."""
    for name in first:
        yield from _find_imports(name, contents[name], _LATER_IMPORT)


def _find_imports(name: str, content: bytes, kind: re.Pattern[bytes]) -> Iterator[str]:
    for imported in kind.findall(content):
        yield posixpath.normpath(posixpath.join(posixpath.dirname(name), imported.decode()))


def _make_file(name: str, content: bytes) -> SiteFile:
    return SiteFile(
        MEDIA_TYPES[Path(name).suffix],
        content,
        gzip.compress(content, 6, mtime=0),
        f'"{hashlib.sha256(content).hexdigest()[:32]}"',
    )
