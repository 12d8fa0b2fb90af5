"""Declaration of settings: a dataclass field with its type, default and doc."""

from __future__ import annotations

from dataclasses import field, fields
from typing import TYPE_CHECKING, Final, TypeVar

from clew.record import Record

if TYPE_CHECKING:
    from collections.abc import Iterator

    from clew.config.setting_type import SettingType

T = TypeVar("T")
ENV_PREFIX: Final = "CLEW_"
#: Separates section and key in an environment variable.
ENV_SEPARATOR: Final = "__"


class SettingField(Record):
    """The declaration of a setting."""

    kind: SettingType[object]
    default: object
    doc: str
    #: Describes a default that depends on the machine.
    default_doc: str | None
    #: It is read at each use, so that a change applies to a running gateway.
    live: bool = False


def setting(
    kind: SettingType[T],
    default: T,
    doc: str,
    *,
    default_doc: str | None = None,
    shown: bool = True,
    live: bool = False,
) -> T:
    """
    Declare a field of a section as a setting.

    One that is not ``shown`` (a URL may hold a password) is left out of ``repr``. One that is
    ``live`` is read with ``SettingsSection.get`` at each use: a change applies at once.
    """
    made = SettingField(kind=kind, default=default, doc=doc, default_doc=default_doc, live=live)
    return field(default=default, repr=shown, metadata={"key": made})


def iter_setting_fields(section: type) -> Iterator[tuple[str, SettingField]]:
    """Yield the name and declaration of each setting of a section."""
    for declared in fields(section):
        if (made := declared.metadata.get("key")) is not None:
            yield declared.name, made


def env_name(path: tuple[str, ...]) -> str:
    """Return the environment variable of a setting."""
    return ENV_PREFIX + ENV_SEPARATOR.join(path).upper()
