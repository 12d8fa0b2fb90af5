"""Maintenance: settings, checks, backups, the log, plugins and tools, for the operator."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from clew.plugin import Registry

#: Operations of HTTP and JSON-RPC, by the module that makes them.
OPERATIONS: Final = {
    "setting_operations": ("setting.list", "setting.set"),
    "check_operations": ("check.run", "check.repair", "doctor.run"),
    "backup_operations": ("backup.list", "backup.create", "backup.verify"),
    "list_operations": ("log.tail", "plugin.list", "tool.list"),
}


def register(registry: Registry) -> None:
    """Register the feature."""
    for module, names in OPERATIONS.items():
        for name in names:
            registry.add_operation(name, partial(_make_operation, module, name))


def _make_operation(module: str, name: str) -> object:
    from importlib import import_module  # noqa: PLC0415  (only servers need it)

    return import_module(f"{__name__}.{module}").OPERATIONS[name]
