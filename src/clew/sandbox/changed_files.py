"""Files of a workspace that were changed by given writes, by the time of their last change."""

from __future__ import annotations

import os
import stat
import time
from typing import TYPE_CHECKING, Final

from clew.clock import now_millis
from clew.core.call_reach import merge_writes, was_written
from clew.core.tool_facts import PathFact

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from clew.core.call_reach import WorkspaceWrite

#: Files that are looked at in a tree, and seconds: a larger one counts as changed.
_MAX_FILES: Final = 20_000
_SECONDS: Final = 1.0


def read_file_clock() -> int:
    """Return the time in milliseconds by the clock that files get their times from."""
    return now_millis()


def holds_changed_file(places: Iterable[PathFact], writes: Sequence[WorkspaceWrite]) -> bool:
    """
    Return whether one of the writes made a file at one of the places.

    The time of the last change of a file cannot be set by programs: moving, linking or copying
    it is a change.
    """
    merged = merge_writes(writes)
    return any(_holds_changed(one, merged) for one in places)


def list_changes(folder: str) -> dict[str, int] | None:
    """Return when each file below a folder was changed last; ``None`` if they are too many."""
    until = time.monotonic() + _SECONDS
    found: dict[str, int] = {}
    for count, path in enumerate(_iter_paths(PathFact(path=folder, inside=True, extent="tree"))):
        if count > _MAX_FILES or time.monotonic() > until:
            return None
        if (changed := _find_time(path)) is not None:
            found[path] = changed
    return found


def exists(path: str) -> bool:
    """Return whether there is something at a path."""
    return os.path.lexists(path)


def _holds_changed(place: PathFact, writes: Sequence[WorkspaceWrite]) -> bool:
    until = time.monotonic() + _SECONDS
    for count, path in enumerate(_iter_paths(place)):
        if count > _MAX_FILES or time.monotonic() > until:
            return True
        if (changed := _find_time(path)) is not None and was_written(path, changed, writes):
            return True
    return False


def _iter_paths(place: PathFact) -> Iterator[str]:
    yield place.path
    if place.extent == "file":
        return
    for folder, _, names in os.walk(place.path):
        yield from (os.path.join(folder, name) for name in names)  # noqa: PTH118  (many)
        if place.extent == "folder":
            return


def _find_time(path: str) -> int | None:
    """Return when a file or link was changed last; ``None`` for a folder, or if it is gone."""
    try:
        state = os.lstat(path)
    except (OSError, ValueError):
        return None
    return None if stat.S_ISDIR(state.st_mode) else state.st_ctime_ns // 1_000_000
