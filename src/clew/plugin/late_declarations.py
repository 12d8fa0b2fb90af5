"""Declarations that features make only once their settings are read."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from clew.errors import SettingsError

if TYPE_CHECKING:
    from collections.abc import Callable

    _Declare = Callable[[], object]


@dataclass(slots=True)
class LateDeclarations:
    """The functions that make them, each of which is called once."""

    _waiting: list[tuple[str, _Declare]] = field(default_factory=list["tuple[str, _Declare]"])

    def add(self, owner: str, declare: _Declare) -> None:
        """Keep a function of a feature."""
        self._waiting.append((owner, declare))

    def make(self, problems: list[str]) -> None:
        """Call those that wait, and add a sentence for each one that fails to ``problems``."""
        while self._waiting:
            owner, declare = self._waiting.pop(0)
            try:
                declare()
            except SettingsError as error:
                problems += error.problems
            except Exception as error:  # noqa: BLE001  (the code of a feature may raise anything)
                problems.append(
                    f"the feature {owner!r} cannot be loaded: {type(error).__name__}: {error}"
                )
