"""What a call reads and writes in the workspace, as its facts tell."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from clew.core.call_policy import UnknownFacts
from clew.core.tool_facts import PathFact, ToolFacts
from clew.record import Record, replace

if TYPE_CHECKING:
    from collections.abc import Sequence

#: Levels of the sandbox at which a command writes nothing.
_READ_ONLY: Final = "read"


class WorkspaceReach(Record):
    """The files of a workspace that a call uses; a command may use all of them."""

    reads: tuple[PathFact, ...] = ()
    #: Absolute paths; empty text for anything in the workspace.
    writes: tuple[str, ...] = ()
    #: Of ``writes``, those that keep a part of what was there.
    keeps: tuple[str, ...] = ()
    #: A command reads at any time while it runs, also what is gone when it ends.
    runs_command: bool = False


class WorkspaceWrite(Record):
    """A write of a call, whose text may be that of strangers; it may still go on."""

    path: str
    #: In milliseconds, by the clock of the machine whose files they are.
    began_at: int
    ended_at: int | None = None


def find_reach(facts: ToolFacts | UnknownFacts | None, workspace: str) -> WorkspaceReach:
    """Return what a call with these facts uses; one without facts tells nothing."""
    everything = PathFact(path=workspace, inside=True, extent="tree")
    if facts is None:
        return WorkspaceReach()
    if isinstance(facts, UnknownFacts):
        return WorkspaceReach(reads=(everything,), writes=("",), runs_command=True)
    if facts.command is not None or facts.sandbox is not None:
        writes = () if facts.sandbox == _READ_ONLY else ("",)
        return WorkspaceReach(reads=(everything,), writes=writes, runs_command=True)
    inside = [one for one in facts.paths if one.inside]
    written = [one for one in inside if one.writes]
    return WorkspaceReach(
        reads=tuple(one for one in inside if not one.writes),
        writes=tuple(one.path for one in written),
        keeps=tuple(one.path for one in written if not one.replaces),
    )


#: Milliseconds by which the time of a file may be behind the clock.
_TOLERANCE: Final = 100


def was_written(changed_at: int, writes: Sequence[WorkspaceWrite]) -> bool:
    """
    Return whether what changed last at a time was changed by one of some writes.

    Its path does not matter: the folder of a file may have been moved since, which leaves the
    times of the file as they are.
    """
    return any(
        one.began_at - _TOLERANCE <= changed_at
        and (one.ended_at is None or changed_at <= one.ended_at)
        for one in writes
    )


def overlaps(writes: Sequence[WorkspaceWrite], since: int) -> bool:
    """Return whether one of some writes went on at a time, or began later."""
    return any(one.ended_at is None or one.ended_at >= since for one in writes)


def can_be_written(changed_at: int, write: WorkspaceWrite) -> bool:
    """Return whether a file that changed last at a time may be one that was written before."""
    return write.began_at - _TOLERANCE <= changed_at


def merge_writes(writes: Sequence[WorkspaceWrite]) -> list[WorkspaceWrite]:
    """Return the times of the same writes in fewer intervals: those that touch are one."""
    merged: list[WorkspaceWrite] = []
    for one in sorted(writes, key=lambda one: one.began_at):
        last = merged[-1] if merged else None
        if last is None or not _touches(last, one):
            merged.append(replace(one, path=""))
        elif last.ended_at is not None:
            end = None if one.ended_at is None else max(last.ended_at, one.ended_at)
            merged[-1] = replace(last, ended_at=end)
    return merged


def _touches(before: WorkspaceWrite, after: WorkspaceWrite) -> bool:
    return before.ended_at is None or after.began_at - _TOLERANCE <= before.ended_at
