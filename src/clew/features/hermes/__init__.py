"""Host of plugins for Hermes Agent: they run as they are, if the settings name them."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from clew.features.hermes.settings import HermesSettings
from clew.features.hermes.state import HostState

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clew.config.settings import Settings
    from clew.plugin import DoctorFinding, FeatureContext, Registry


def register(registry: Registry) -> HostState:
    """Register the feature; return its state. Without a plugin in the settings it imports none."""
    state = HostState(section=registry.add_settings(HermesSettings))
    registry.add_settings_check("hermes", partial(_take_settings, state))
    registry.declare_late(partial(_declare_plugins, registry, state))
    registry.add_service("hermes plugins", partial(_run_host, state))
    registry.add_doctor_check("hermes plugins", partial(_check_plugins, state))
    return state


def _take_settings(state: HostState, settings: Settings) -> Sequence[str]:
    """Remember the settings as they were checked last; they have no problem of their own."""
    state.settings = settings
    return ()


def _declare_plugins(registry: Registry, state: HostState) -> None:
    if not state.section.get().enabled_plugins:
        return
    from clew.features.hermes.host import declare_plugins  # noqa: PLC0415  (only where there are plugins)

    declare_plugins(registry, state)


async def _run_host(state: HostState, context: FeatureContext) -> None:
    """Give the plugins the services of the running application, until it ends."""
    import asyncio  # noqa: PLC0415  (declared by every command, run by few)

    state.attach(context)
    if state.plugins:
        from clew.features.hermes.findings import log_findings  # noqa: PLC0415  (as above)

        log_findings(state)
    try:
        await asyncio.Event().wait()
    finally:
        for plugin in state.plugins:
            plugin.watch.deaths.close()
        if any(plugin.memory_provider is not None for plugin in state.plugins):
            from clew.features.hermes.memory import close_providers  # noqa: PLC0415  (as above)

            await asyncio.to_thread(close_providers, state.plugins)


async def _check_plugins(state: HostState) -> Sequence[DoctorFinding]:
    """Return what each plugin offers, and what of it is not used."""
    if not state.section.get().enabled_plugins:
        return ()
    from clew.features.hermes.findings import list_findings  # noqa: PLC0415  (as above)

    return list_findings(state)
