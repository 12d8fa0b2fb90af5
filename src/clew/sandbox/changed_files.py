"""Files and folders of a workspace that may hold text of strangers."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from clew.clock import now_millis
from clew.core.call_reach import WorkspaceWrite, merge_writes, was_written

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from clew.core.tool_facts import PathFact

#: The folder of a workspace with the files that strangers have sent.
DOWNLOADS: Final = "downloads"
#: Files that are looked at in a tree, and seconds: a larger one counts as changed.
_MAX_FILES: Final = 20_000
_SECONDS: Final = 1.0
#: Intervals that the times of received files are told in.
_MAX_INTERVALS: Final = 200


def read_file_clock() -> int:
    """Return the time in milliseconds by the clock that files get their times from."""
    return now_millis()


def holds_foreign_file(
    places: Sequence[PathFact], writes: Sequence[WorkspaceWrite], *, workspace: str
) -> bool:
    """Return whether there is a file of strangers: one that they have sent, or of the writes."""
    return holds_received_file(places, workspace) or holds_changed_file(places, writes)


def holds_changed_file(places: Iterable[PathFact], writes: Sequence[WorkspaceWrite]) -> bool:
    """
    Return whether one of the writes made a file or a folder at one of the places.

    The time of the last change cannot be set by programs: moving, linking or copying a file is
    a change. A folder counts by its name, and what is in a moved one keeps its times.
    """
    merged = merge_writes(writes)
    return bool(merged) and any(_holds_changed(one, merged) for one in places)


def holds_received_file(places: Iterable[PathFact], workspace: str) -> bool:
    """Return whether a file that strangers have sent may be at, or is below, one of the places."""
    received = _find_downloads(workspace)
    for place in places:
        used = Path(os.path.realpath(place.path))
        if used.is_relative_to(received):
            return True
        below = place.extent == "tree" and received.is_relative_to(used)
        if below and next(_iter_below(str(received)), None) is not None:
            return True
    return False


def _find_downloads(workspace: str) -> Path:
    return Path(os.path.realpath(Path(workspace) / DOWNLOADS))


def list_received(workspace: str) -> list[WorkspaceWrite]:
    """Return the times at which the files were changed last that strangers have sent."""
    changes = list_changes(str(_find_downloads(workspace)))
    if changes is None:
        return [WorkspaceWrite(path="", began_at=0, ended_at=read_file_clock())]
    times = sorted(changes.values())
    found = merge_writes([WorkspaceWrite(path="", began_at=at, ended_at=at) for at in times])
    if len(found) <= _MAX_INTERVALS:
        return found
    return [WorkspaceWrite(path="", began_at=times[0], ended_at=times[-1])]


def list_changes(folder: str) -> dict[str, int] | None:
    """Return when all below a folder was changed last; ``None`` if it is too much."""
    until = time.monotonic() + _SECONDS
    found: dict[str, int] = {}
    for count, path in enumerate(_iter_below(folder)):
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
        if (changed := _find_time(path)) is not None and was_written(changed, writes):
            return True
    return False


def _iter_paths(place: PathFact) -> Iterator[str]:
    """Yield what a call can read at a place; not the folder itself, whose name it knew."""
    if os.path.islink(place.path) or not os.path.isdir(place.path):  # noqa: PTH112, PTH114  (many)
        yield place.path
    elif place.extent != "file":
        yield from _iter_below(place.path, deep=place.extent == "tree")


def _iter_below(root: str, *, deep: bool = True) -> Iterator[str]:
    for folder, folders, names in os.walk(root):
        yield from (os.path.join(folder, name) for name in (*folders, *names))  # noqa: PTH118  (many)
        if not deep:
            return


def _find_time(path: str) -> int | None:
    """Return when a file, folder or link was changed last; ``None`` if it is gone."""
    try:
        return os.lstat(path).st_ctime_ns // 1_000_000
    except (OSError, ValueError):
        return None
