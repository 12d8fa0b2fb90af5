"""Loading of features: the built-in ones, then the enabled plugins."""

from __future__ import annotations

import sys
from contextlib import redirect_stdout
from importlib import import_module
from typing import TYPE_CHECKING, Final, cast

from clew.config import find_home, load_settings, read_plugin_names
from clew.errors import SettingsError
from clew.plugin.registry import Features
from clew.record import replace

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from pathlib import Path

    from clew.config.settings import Settings
    from clew.plugin.registry import Register

#: The features that come with Clew: modules of ``clew.features`` with a function ``register``.
BUILT_IN: Final = (
    "files", "titles", "webhooks", "whatsapp", "shell", "web", "schedule", "delegation", "goals",
    "memory", "skills", "mcp", "telemetry", "voice", "dashboard", "admin", "hermes",
    "maintenance",
)  # fmt: skip
#: Marks the ``register`` of a plugin, as every hook: ``hookimpl`` sets it.
_MARK: Final = "clew_impl"


def load_features(
    *, folder: Path, enabled: Sequence[str] = (), disabled: Collection[str] = ()
) -> Features:
    """
    Load the built-in features and the enabled plugins, and let each declare what it adds.

    What cannot be loaded is left out, and ends the start (``Features.raise_problems``).
    """
    features = Features()
    if unknown := sorted(set(disabled) - {*BUILT_IN, *enabled}):
        features.problems.append(
            f"features.disabled: there is no feature {unknown[0]!r}; there are "
            f"{', '.join([*BUILT_IN, *enabled])}"
        )
    for name in BUILT_IN:
        if name not in disabled:
            module = import_module(f"clew.features.{name}")
            features.register(name, cast("Register", module.register))
    for name in enabled:
        if name not in disabled:
            try:
                _load_plugin(features, folder, name)
            except SettingsError as error:
                features.problems += error.problems
    return features


def _load_plugin(features: Features, folder: Path, name: str) -> None:
    from clew.hooks.discovery import load_plugin_object  # noqa: PLC0415  (slow; only where there are plugins)

    try:
        # Standard output belongs to the command.
        with redirect_stdout(sys.stderr):
            plugin = load_plugin_object(folder, name)
    except SettingsError:
        raise
    except Exception as error:
        raise SettingsError(
            f"plugins.enabled: {name!r} cannot be loaded: {type(error).__name__}: {error}"
        ) from error
    features.plugins[name] = plugin
    register = getattr(plugin, "register", None)
    if callable(register) and hasattr(register, _MARK):
        features.register(name, cast("Register", register), is_plugin=True)


def load_named_features(
    *, home: Path | None, flags: Mapping[str, object], environ: Mapping[str, str]
) -> Features:
    """Load the features that the settings name, before these are checked."""
    enabled, disabled = read_plugin_names(home=home, flags=flags, environ=environ)
    folder = find_home(home, environ) / "plugins"
    return load_features(folder=folder, enabled=enabled, disabled=disabled)


def load_settings_with_features(
    *, home: Path | None, flags: Mapping[str, object], environ: Mapping[str, str]
) -> Settings:
    """
    Load the features that the settings name, then all settings, theirs too.

    :raises SettingsError: naming every problem of the settings with its place
    """
    features = load_named_features(home=home, flags=flags, environ=environ)
    settings = load_settings(home=home, flags=flags, environ=environ, catalog=features.catalog)
    features.bind_settings(settings)
    if problems := features.find_settings_problems(settings):
        raise SettingsError(*problems)
    return replace(settings, loaded_features=features)


def get_features(settings: Settings) -> Features:
    """Return the features for which the settings were loaded; else load those they name."""
    if isinstance(settings.loaded_features, Features):
        return settings.loaded_features
    features = load_features(
        folder=settings.home / "plugins",
        enabled=settings.plugins.enabled,
        disabled=settings.features.disabled,
    )
    features.bind_settings(settings)
    return features
