"""Declared: what a feature has declared, and the function with which it does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from clew.record import Record

if TYPE_CHECKING:
    from clew.plugin.registry import Registry

T = TypeVar("T")


class Register(Protocol):
    """The function with which a feature declares what it adds; does no I/O."""

    def __call__(self, registry: Registry, /) -> object: ...


class Declared(Record, Generic[T], kw_only=False):
    """A declaration and the feature that made it."""

    owner: str
    value: T
