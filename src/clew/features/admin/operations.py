"""The operations of operators, by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from clew.features.admin import channels, deliveries, people, turns, usage

if TYPE_CHECKING:
    from collections.abc import Mapping

    from clew.api.operations import AnyOperation

OPERATIONS: Final[Mapping[str, AnyOperation]] = {
    one.name: one
    for one in (
        *deliveries.OPERATIONS,
        *people.OPERATIONS,
        *channels.OPERATIONS,
        *turns.OPERATIONS,
        *usage.OPERATIONS,
    )
}
