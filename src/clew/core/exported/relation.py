"""How a conversation in an export stands to the one with its id that is stored here."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


class Standing(enum.Enum):
    NEW = "new"  #: it is not here
    SAME = "same"
    BEHIND = "behind"  #: what is here is the beginning of what the export has
    AHEAD = "ahead"  #: what is here has gone on since the export
    APART = "apart"  #: both have gone on, each in its own way
    DELETED = "deleted"  #: it was deleted here


@dataclass(frozen=True, kw_only=True, slots=True)
class Log:
    """What decides whether two conversations are one: each hash stands for all before it."""

    #: The hashes of all entries, in order.
    hashes: Sequence[bytes]
    #: The ids of all sessions, in the order of their chain.
    sessions: Sequence[str]


def compare(ours: Log, theirs: Log) -> Standing:
    """Who of two has gone on; a new session without entries counts too."""
    behind = _begins(theirs.hashes, ours.hashes) and _begins(theirs.sessions, ours.sessions)
    ahead = _begins(ours.hashes, theirs.hashes) and _begins(ours.sessions, theirs.sessions)
    if behind:
        return Standing.SAME if ahead else Standing.BEHIND
    return Standing.AHEAD if ahead else Standing.APART


def _begins(whole: Sequence[object], beginning: Sequence[object]) -> bool:
    return len(whole) >= len(beginning) and whole[: len(beginning)] == beginning


def parting(ours: Log, theirs: Log) -> tuple[int, bytes]:
    """Where two went apart: the last seq that both have, and what theirs goes on with."""
    common = 0
    for one, other in zip(ours.hashes, theirs.hashes, strict=False):
        if one != other:
            break
        common += 1
    if common < len(theirs.hashes):
        return common, theirs.hashes[common]
    # The same entries, but sessions of their own.
    for one, other in zip(ours.sessions, theirs.sessions, strict=False):
        if one != other:
            return common, other.encode()
    return common, theirs.sessions[min(len(ours.sessions), len(theirs.sessions) - 1)].encode()
