"""Declaring settings: a field of a section, with its kind, default and doc in one place."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Final, TypeVar

if TYPE_CHECKING:
    from collections.abc import Iterator

    from clew.config.kinds import Kind

T = TypeVar("T")
PREFIX: Final = "CLEW_"
#: Separates section and key in an environment variable.
NEST: Final = "__"


@dataclass(frozen=True, kw_only=True, slots=True)
class Key:
    """What a setting is."""

    kind: Kind[object]
    default: object
    doc: str
    #: Says the default where it depends on the machine.
    default_doc: str | None


def key(
    kind: Kind[T], default: T, doc: str, *, default_doc: str | None = None, shown: bool = True
) -> T:
    """
    Declare a field of a section as a setting.

    One that is not ``shown`` (a URL may hold a password) is left out of ``repr``.
    """
    made = Key(kind=kind, default=default, doc=doc, default_doc=default_doc)
    return field(default=default, repr=shown, metadata={"key": made})


def keys_of(section: type) -> Iterator[tuple[str, Key]]:
    """Name and key of each setting that a section declares."""
    for declared in fields(section):
        if (made := declared.metadata.get("key")) is not None:
            yield declared.name, made


def env_name(path: tuple[str, ...]) -> str:
    """The environment variable of a setting."""
    return PREFIX + NEST.join(path).upper()
