"""State that the parts of the host share: settings, loaded plugins, running application."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop

    from clew.config.settings import Settings
    from clew.features.hermes.loaded import LoadedPlugin
    from clew.features.hermes.process_guard import ProcessGuard
    from clew.features.hermes.settings import HermesSettings
    from clew.plugin import FeatureContext
    from clew.plugin.settings_tables import SettingsSection


@dataclass(slots=True)
class HostState:
    """The host of one process."""

    section: SettingsSection[HermesSettings]
    settings: Settings | None = None
    plugins: list[LoadedPlugin] = field(default_factory=list["LoadedPlugin"])
    #: Of the running application; ``None`` before it runs.
    services: FeatureContext | None = None
    loop: AbstractEventLoop | None = None
    #: What the process was like before the first plugin was loaded.
    guard: ProcessGuard | None = None
    #: What the log says of the plugins is written.
    is_logged: bool = False

    def attach(self, services: FeatureContext) -> None:
        """Take the services of the application that runs in the calling event loop."""
        import asyncio  # noqa: PLC0415  (every command makes a state)

        self.services, self.loop = services, asyncio.get_running_loop()
