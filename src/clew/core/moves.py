"""Life cycles: one table of moves each, and one place that checks them."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from clew.errors import WrongMove

if TYPE_CHECKING:
    import enum
    from collections.abc import Mapping

S = TypeVar("S", bound="enum.Enum")


def check_move(what: str, moves: Mapping[S, frozenset[S]], old: S, new: S) -> None:
    """:raises WrongMove: if the table does not allow going from ``old`` to ``new``"""
    if new not in moves[old]:
        raise WrongMove(what, old=old.value, new=new.value)
