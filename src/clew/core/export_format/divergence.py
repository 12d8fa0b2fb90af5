"""Relation of an exported conversation to the stored one with the same id."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING

from clew.record import Record

if TYPE_CHECKING:
    from collections.abc import Sequence


class Relation(enum.Enum):
    NEW = "new"  #: not stored here
    SAME = "same"
    BEHIND = "behind"  #: the stored one is a prefix of the exported one
    AHEAD = "ahead"  #: the stored one has grown since the export
    APART = "apart"  #: both have grown, differently
    DELETED = "deleted"  #: deleted here


class ChainSummary(Record):
    """Hashes and session ids that identify a conversation's history."""

    #: The hashes of all entries, in order.
    hashes: Sequence[bytes]
    #: The ids of all sessions, in the order of their chain.
    sessions: Sequence[str]


def compare_chains(ours: ChainSummary, theirs: ChainSummary) -> Relation:
    """Return the relation of two conversations; a new session without entries counts."""
    behind = _starts_with(theirs.hashes, ours.hashes) and _starts_with(
        theirs.sessions, ours.sessions
    )
    ahead = _starts_with(ours.hashes, theirs.hashes) and _starts_with(
        ours.sessions, theirs.sessions
    )
    if behind:
        return Relation.SAME if ahead else Relation.BEHIND
    return Relation.AHEAD if ahead else Relation.APART


def _starts_with(whole: Sequence[object], beginning: Sequence[object]) -> bool:
    return len(whole) >= len(beginning) and whole[: len(beginning)] == beginning


def find_divergence(ours: ChainSummary, theirs: ChainSummary) -> tuple[int, bytes]:
    """Return where two diverged: the last common seq, and the next item of ``theirs``."""
    common = 0
    for one, other in zip(ours.hashes, theirs.hashes, strict=False):
        if one != other:
            break
        common += 1
    if common < len(theirs.hashes):
        return common, theirs.hashes[common]
    # The same entries, but different sessions.
    for one, other in zip(ours.sessions, theirs.sessions, strict=False):
        if one != other:
            return common, other.encode()
    return common, theirs.sessions[min(len(ours.sessions), len(theirs.sessions) - 1)].encode()
