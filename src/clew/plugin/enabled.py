"""The enabled plugins, loaded and configured."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.hooks.manager import PluginManager, load_plugins
from clew.plugin.loading import get_features

if TYPE_CHECKING:
    from clew.config.settings import Settings
    from clew.plugin.registry import Features


def load_enabled_plugins(settings: Settings, features: Features | None = None) -> PluginManager:
    """
    Return the enabled plugins, and the hooks of features.

    :raises SettingsError: naming what cannot be loaded
    """
    features = features or get_features(settings)
    features.finish()
    features.raise_problems()
    plugins = PluginManager()
    load_plugins(
        plugins,
        settings.home / "plugins",
        [name for name in settings.plugins.enabled if name not in settings.features.disabled],
        settings.plugins.options,
        loaded=features.plugins,
    )
    for name, hooks in features.make_hook_plugins():
        timeout = features.hook_timeouts.get(name)
        plugins.register_plugin(hooks, f"feature:{name}", timeout=timeout)
    return plugins
