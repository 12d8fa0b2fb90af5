"""Admin: what operators see and do, as operations: deliveries, people, channels, turns, usage."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from clew.plugin import Registry

#: Operations of HTTP and JSON-RPC.
OPERATIONS: Final = (
    "delivery.list", "delivery.retry", "delivery.give_up", "person.list", "person.let_in",
    "person.shut_out", "channel.list", "turn.list", "usage.summary",
)  # fmt: skip


def register(registry: Registry) -> None:
    """Register the feature."""
    for name in OPERATIONS:
        registry.add_operation(name, partial(_make_operation, name))


def _make_operation(name: str) -> object:
    from clew.features.admin import operations  # noqa: PLC0415  (only servers need them)

    return operations.OPERATIONS[name]
