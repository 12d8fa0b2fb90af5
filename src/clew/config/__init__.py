"""Settings: loaded once at start into a frozen object."""

from __future__ import annotations

from clew.config.load import ensure_home, find_home, load_settings, read_plugin_names
from clew.config.secret import Secret
from clew.config.settings import (
    AgentSettings,
    ApiSettings,
    ChannelSettings,
    CompactionSettings,
    FeaturesSettings,
    LeaseSettings,
    ModelSettings,
    Origin,
    PluginsSettings,
    ProviderSettings,
    SessionSettings,
    Settings,
    StoreSettings,
    ToolsSettings,
)

__all__ = [
    "AgentSettings",
    "ApiSettings",
    "ChannelSettings",
    "CompactionSettings",
    "FeaturesSettings",
    "LeaseSettings",
    "ModelSettings",
    "Origin",
    "PluginsSettings",
    "ProviderSettings",
    "Secret",
    "SessionSettings",
    "Settings",
    "StoreSettings",
    "ToolsSettings",
    "ensure_home",
    "find_home",
    "load_settings",
    "read_plugin_names",
]
