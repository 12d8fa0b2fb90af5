"""Listing of folders, whose names may contain any character."""

from __future__ import annotations

import fnmatch
import json
import posixpath
from itertools import islice
from typing import TYPE_CHECKING, Final

from clew.core.text import sanitize_text
from clew.features.files.restrictions import describe_left_out

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from clew.features.files.restrictions import Restriction
    from clew.features.files.turn_workspace import LocatedPath
    from clew.sandbox.workspace import FolderEntry, Workspace

#: Names in one result.
MAX_NAMES: Final = 500


def list_folder(
    place: LocatedPath, *, names: str, recursive: bool, is_hidden: Restriction = lambda _: False
) -> str:
    """
    Return the names in a folder, one in each line.

    :raises FileRefused: if there is no such folder
    """
    hidden = 0

    def is_shown(entry: FolderEntry) -> bool:
        nonlocal hidden
        if not matches_name(entry.path, names):
            return False
        hidden += (hides := is_hidden(entry.path))
        return not hides

    found = _list_entries(place.workspace, place.path, recursive=recursive)
    shown = [*islice(filter(is_shown, found), MAX_NAMES + 1)]
    lines = [_describe(place, entry) for entry in shown[:MAX_NAMES]]
    if len(shown) > MAX_NAMES:
        lines.append(f"[only the first {MAX_NAMES}: narrow the path or the names]")
    return "\n".join([*lines, *describe_left_out(hidden)]) or "[nothing]"


def _list_entries(workspace: Workspace, path: str, *, recursive: bool) -> Iterable[FolderEntry]:
    return workspace.iter_files(path) if recursive else workspace.list_folder(path)


def matches_name(path: str, names: str) -> bool:
    """Return whether the name at the end of a path, or the whole path, matches a glob."""
    return fnmatch.fnmatchcase(posixpath.basename(path), names) or fnmatch.fnmatchcase(path, names)


def quote_path(path: str) -> str:
    """Return a path as it is, or as a JSON string if it could be taken for something else."""
    clean = sanitize_text(path)
    return clean if clean.isprintable() and clean == clean.strip() else json.dumps(clean)


def _describe(place: LocatedPath, entry: FolderEntry) -> str:
    name = quote_path(place.show_path(entry.path))
    match entry.kind:
        case "folder":
            return f"{name}/"
        case "file":
            return f"{name}  {entry.size:,}"
        case kind:
            return f"{name}  ({kind})"


def iter_matching(place: LocatedPath, names: str) -> Iterator[FolderEntry]:
    """Yield the files below a folder, or the file itself, whose names match."""
    entry = place.workspace.describe_file(place.path)
    if entry is not None and entry.kind == "file":
        yield entry
        return
    for found in place.workspace.iter_files(place.path):
        if matches_name(found.path, names):
            yield found
