"""Check of state transitions against their table."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from clew.errors import InvalidTransition

if TYPE_CHECKING:
    import enum
    from collections.abc import Mapping

S = TypeVar("S", bound="enum.Enum")


def check_transition(what: str, moves: Mapping[S, frozenset[S]], old: S, new: S) -> None:
    """Raise ``InvalidTransition`` unless the table allows ``old`` to ``new``."""
    if new not in moves[old]:
        raise InvalidTransition(what, old=old.value, new=new.value)
