"""Settings of a feature, which it can read once they are loaded."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

if TYPE_CHECKING:
    from collections.abc import Mapping

    from clew.config.settings import Settings

T = TypeVar("T")


class SettingsSection(Generic[T]):
    """The settings of a feature, which can be read once they are loaded."""

    def __init__(self, table: str, kind: type[T]) -> None:
        self.table, self.kind = table, kind
        self._value: T | None = None

    def bind(self, settings: Settings) -> None:
        """Take the values from the settings; defaults where they were loaded without it."""
        found = settings.sections.get(self.table)
        self._value = found if isinstance(found, self.kind) else self.kind()

    def take_over(self, settings: Settings, name: str) -> None:
        """Take one value from newer settings; the code of the feature reads it at each use."""
        newer = settings.sections.get(self.table)
        if isinstance(newer, self.kind) and self._value is not None:
            changed = {name: getattr(newer, name)}
            self._value = cast("T", replace(cast("Any", self._value), **changed))

    def get(self) -> T:
        """
        Return the values.

        :raises RuntimeError: before the start, that is in ``register``
        """
        if self._value is None:
            raise RuntimeError(f"the settings [{self.table}] are not loaded yet")
        return self._value


class NamedTables(Generic[T]):
    """Tables of a feature that the user names, which can be read once they are loaded."""

    def __init__(self, section: str, kind: type[T]) -> None:
        self.section, self.kind = section, kind
        self._values: Mapping[str, T] | None = None

    def bind(self, settings: Settings) -> None:
        """Take the tables from the settings; none where they were loaded without it."""
        self._values = cast("Mapping[str, T]", settings.tables.get(self.section, {}))

    def get(self) -> Mapping[str, T]:
        """
        Return the tables, by name.

        :raises RuntimeError: before the start, that is in ``register``
        """
        if self._values is None:
            raise RuntimeError(f"the settings [{self.section}.NAME] are not loaded yet")
        return self._values
