"""Types of settings: how each is written, parsed, checked and shown."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from clew.record import Record

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

T_co = TypeVar("T_co", covariant=True)


class ReadContext(Record):
    """The setting being parsed, and what its value may refer to."""

    #: The setting, as ``section.key``.
    key: str
    home: Path
    environ: Mapping[str, str]


class InvalidValue(ValueError):
    """A value does not fit its type; the text, if any, adds to the type's ``expects``."""


def _return_unchanged(value: Any) -> object:
    return value


class SettingType(Record, Generic[T_co]):
    """The type of a setting's values."""

    name: str
    #: Completes the sentence "the setting must be …".
    expects: str
    #: Parses a TOML value; raises ``InvalidValue``.
    read: Callable[[object, ReadContext], T_co]
    #: A JSON schema of the TOML value.
    schema: Mapping[str, object]
    #: Converts the text of an environment variable or a flag to a TOML value.
    from_text: Callable[[str], object] = field(default=_return_unchanged)
    #: Converts a parsed value to a plain one that may be shown.
    show: Callable[[Any], object] = field(default=_return_unchanged)
    #: True if a rejected value must not be quoted.
    secret: bool = False
