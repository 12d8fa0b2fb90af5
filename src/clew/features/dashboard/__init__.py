"""Dashboard: the agent in a browser."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Final

from clew.features.dashboard.settings import DashboardSettings

if TYPE_CHECKING:
    from clew.plugin import FeatureContext, Registry

#: Operations of HTTP and JSON-RPC.
OPERATIONS: Final = ("login.list", "login.revoke", "login.code")


def register(registry: Registry) -> None:
    """Register the feature."""
    settings = registry.add_settings(DashboardSettings)
    registry.add_migrations(f"{__name__}.migrations", of_scope={"dashboard_login": "scope"})

    def make_website() -> object:
        from clew.features.dashboard.site import DashboardSite  # noqa: PLC0415  (only servers need it)

        return DashboardSite(settings.get())

    async def prune(context: FeatureContext) -> None:
        """Remove logins and codes that have expired."""
        from clew.features.dashboard.logins import remove_expired  # noqa: PLC0415  (needed by gateways only)

        await context.store.write(remove_expired)

    registry.add_website("dashboard", make_website)
    registry.add_periodic(prune, every=timedelta(hours=1), name="expired logins")
    for name in OPERATIONS:
        registry.add_operation(name, partial(_make_operation, name))


def _make_operation(name: str) -> object:
    from clew.features.dashboard import operations  # noqa: PLC0415  (only servers need them)

    return operations.OPERATIONS[name]
