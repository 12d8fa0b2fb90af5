"""Dashboard: the agent in a browser."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Final

from clew.core.scope import LOCAL
from clew.features.dashboard.settings import DashboardSettings

if TYPE_CHECKING:
    from clew.core.ids import ConversationId
    from clew.features.dashboard.push_sender import PushSender
    from clew.plugin import FeatureContext, Registry

#: Operations of HTTP and JSON-RPC.
OPERATIONS: Final = ("login.list", "login.revoke", "login.code")


def register(registry: Registry) -> None:
    """Register the feature."""
    settings = registry.add_settings(DashboardSettings)
    registry.add_migrations(
        f"{__name__}.migrations", of_scope={"dashboard_login": "scope", "dashboard_push": "scope"}
    )

    def make_website() -> object:
        from clew.features.dashboard.site import DashboardSite  # noqa: PLC0415  (only servers need it)

        return DashboardSite(settings.get())

    async def prune(context: FeatureContext) -> None:
        """Remove logins, codes and notices that are past."""
        from clew.features.dashboard.logins import remove_expired  # noqa: PLC0415  (needed by gateways only)
        from clew.features.dashboard.push_subscriptions import remove_old  # noqa: PLC0415  (as above)

        await context.store.write(remove_expired)
        await context.store.write(remove_old)

    async def tell_turn(context: FeatureContext, conversation: ConversationId) -> None:
        """Tell browsers what a turn ended with, if any wants to know."""
        from clew.features.dashboard.push_subscriptions import list_subscriptions  # noqa: PLC0415  (as below)

        if await context.store.read(list_subscriptions, LOCAL):
            await _make_sender(context, settings.get()).tell_turn(conversation)

    async def tell_questions(context: FeatureContext) -> None:
        """Tell browsers of questions."""
        from clew.features.dashboard.push_watch import watch_questions  # noqa: PLC0415  (needed by gateways only)

        await watch_questions(context.store, partial(_make_sender, context, settings.get()))

    registry.add_website("dashboard", make_website)
    registry.add_after_turn("notices", tell_turn, every_end=True)
    registry.add_service("notices", tell_questions, where="leader")
    registry.add_periodic(prune, every=timedelta(hours=1), name="expired logins")
    for name in OPERATIONS:
        registry.add_operation(name, partial(_make_operation, name))


def _make_sender(context: FeatureContext, settings: DashboardSettings) -> PushSender:
    from clew.features.dashboard.push_sender import PushSender  # noqa: PLC0415  (needed where browsers want notices)

    origins = [one for one in settings.origins if one.startswith("https:")]
    return PushSender(context, contact=next(iter(origins), "mailto:clew@localhost"))


def _make_operation(name: str) -> object:
    from clew.features.dashboard import operations  # noqa: PLC0415  (only servers need them)

    return operations.OPERATIONS[name]
