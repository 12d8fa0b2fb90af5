"""Kinds of values: how each is written, read, checked and shown."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True, kw_only=True, slots=True)
class Where:
    """What a value is read for, and what it may refer to."""

    #: The setting, as ``section.key``.
    key: str
    home: Path
    environ: Mapping[str, str]


class Unfit(ValueError):
    """A value is not of its kind; the text, if any, says more than the kind's ``expects``."""


def _plain(value: Any) -> object:
    return value


@dataclass(frozen=True, kw_only=True, slots=True)
class Kind(Generic[T_co]):
    """How the values of some settings are written."""

    name: str
    #: Completes the sentence "the setting must be …".
    expects: str
    #: Reads a TOML value; raises ``Unfit``.
    read: Callable[[object, Where], T_co]
    #: A JSON schema of the TOML value.
    schema: Mapping[str, object]
    #: Makes a TOML value of the text of an environment variable or a flag.
    from_text: Callable[[str], object] = field(default=_plain)
    #: Makes a plain value of what was read, fit to be shown.
    show: Callable[[Any], object] = field(default=_plain)
    #: Whether a refused value must not be quoted.
    secret: bool = False
