"""Dashboard: the agent in a browser."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.features.dashboard.settings import DashboardSettings

if TYPE_CHECKING:
    from clew.plugin import Registry


def register(registry: Registry) -> None:
    """Register the feature."""
    settings = registry.add_settings(DashboardSettings)

    def make_website() -> object:
        from clew.features.dashboard.site import DashboardSite  # noqa: PLC0415  (only servers need it)

        return DashboardSite(settings.get())

    registry.add_website("dashboard", make_website)
