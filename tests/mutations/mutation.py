"""A safeguard, and the change that removes it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class Mutation:
    name: str
    #: The property that it protects, in words.
    mechanism: str
    file: str
    #: The text of the safeguard, which is in the file once, and its replacement.
    old: str
    new: str
    test: str
