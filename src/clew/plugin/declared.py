"""Declared: what a feature has declared, and which one."""

from __future__ import annotations

from typing import Generic, TypeVar

from clew.record import Record

T = TypeVar("T")


class Declared(Record, Generic[T], kw_only=False):
    """A declaration and the feature that made it."""

    owner: str
    value: T
