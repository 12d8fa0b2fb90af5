"""Check the settings for every problem that can be found without using them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.config.validation import find_problems
from clew.gateway.channel_settings import find_channel_problems

if TYPE_CHECKING:
    from clew.config import Settings


def find_settings_problems(settings: Settings) -> list[str]:
    """Return a sentence for each problem: values, secrets, and unknown names in tables."""
    return [
        *find_problems(settings),
        *find_channel_problems(settings),
        *_find_plugin_problems(settings),
    ]


def _find_plugin_problems(settings: Settings) -> list[str]:
    if not settings.plugins.options:
        return []
    from clew.hooks.manager import find_plugin_problems  # noqa: PLC0415  (only where there are any)

    folder = settings.home / "plugins"
    return find_plugin_problems(folder, settings.plugins.enabled, settings.plugins.options)
