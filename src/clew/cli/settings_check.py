"""Everything that is wrong with the settings and can be known before they are used."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.config.check import find_problems
from clew.gateway.options import find_channel_problems

if TYPE_CHECKING:
    from clew.config import Settings


def find_problems(settings: Settings) -> list[str]:
    """Return a sentence for each mistake: values, secrets, and names in every table."""
    return [*find_problems(settings), *find_channel_problems(settings), *_of_plugins(settings)]


def _of_plugins(settings: Settings) -> list[str]:
    if not settings.plugins.options:
        return []
    from clew.hooks.manager import find_plugin_problems  # noqa: PLC0415  (only where there are any)

    folder = settings.home / "plugins"
    return find_plugin_problems(folder, settings.plugins.enabled, settings.plugins.options)
