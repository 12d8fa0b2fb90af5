"""One safeguard, and what takes it out."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class Mutation:
    name: str
    #: The property that it protects, in words.
    mechanism: str
    file: str
    #: The text of the safeguard, which stands in the file once, and what it becomes.
    old: str
    new: str
    test: str
