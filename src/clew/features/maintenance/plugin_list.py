"""Features and plugins with their state, as the operator sees them."""

from __future__ import annotations

import sys
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any, Final

from clew.core.tool_declaration import ToolDeclaration
from clew.plugin.declarations import (
    ChannelKind,
    CliEntry,
    Command,
    OperationSource,
    PeriodicWork,
    Service,
)
from clew.plugin.loading import BUILT_IN, get_features

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from clew.config.settings import Settings
    from clew.plugin.registry import Features

#: What features declare, by the name of the field that counts it.
_KINDS: Final[dict[str, type]] = {
    "tools": ToolDeclaration,
    "chat_commands": Command,
    "commands": CliEntry,
    "channels": ChannelKind,
    "operations": OperationSource,
    "services": Service,
    "periodic": PeriodicWork,
}
_ENTRY_POINTS: Final = "clew.plugins"


def list_plugins(settings: Settings) -> list[dict[str, Any]]:
    """Return the built-in features, the enabled plugins, and those that could be enabled."""
    features = get_features(settings)
    features.finish()
    disabled, enabled = settings.features.disabled, settings.plugins.enabled
    found = [
        _describe(features, name, kind="feature", is_on=name not in disabled) for name in BUILT_IN
    ]
    found += [
        _describe(features, name, kind="plugin", is_on=name not in disabled) for name in enabled
    ]
    others = sorted({*_find_installed(settings.home / "plugins")} - set(enabled))
    return [*found, *(_describe(features, name, kind="plugin", is_on=False) for name in others)]


def _find_installed(folder: Path) -> Iterator[str]:
    """Yield the names of plugins that can be enabled; their code is not imported."""
    for point in entry_points(group=_ENTRY_POINTS):
        yield point.name
    for path in sorted(folder.glob("*.py")):
        yield path.stem
    for path in sorted(folder.glob("*/__init__.py")):
        yield path.parent.name


def _describe(features: Features, name: str, *, kind: str, is_on: bool) -> dict[str, Any]:
    # A plugin without ``register`` is only known by its hooks.
    is_loaded = name in features.names or name in features.plugins
    return {
        "name": name,
        "kind": kind,
        "state": "off" if not is_on else "on" if is_loaded else "failed",
        "about": _find_summary(features, name, kind=kind) if is_on else "",
        "settings": next(
            (table for table in features.sections if table in (name, f"plugins.{name}")), None
        ),
        **{field: _list_names(features, name, of) for field, of in _KINDS.items()},
    }


def _list_names(features: Features, owner: str, kind: type[Any]) -> Sequence[str]:
    return [one.value.name for one in features.get(kind) if one.owner == owner]


def _find_summary(features: Features, name: str, *, kind: str) -> str:
    """Return the first line of its documentation."""
    if kind == "feature":
        text = sys.modules[f"clew.features.{name}"].__doc__
    else:
        text = getattr(features.plugins.get(name), "__doc__", None)
    return (text or "").strip().partition("\n")[0] if isinstance(text, str) else ""
