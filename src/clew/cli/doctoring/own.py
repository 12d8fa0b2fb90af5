"""What people wrote themselves: whether it can be imported."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.cli.apart import stdout_apart
from clew.cli.doctoring.findings import fail, ok
from clew.errors import SettingsError
from clew.runtime import load_enabled_plugins, make_agent

if TYPE_CHECKING:
    from clew.cli.doctoring.findings import Finding
    from clew.config import Settings


def own_code(settings: Settings) -> Finding:
    """The agent, tools and plugins of the settings, imported as a gateway does it."""
    try:
        # What they print is no finding.
        with stdout_apart():
            make_agent(settings, "")
            load_enabled_plugins(settings)
    except SettingsError as error:
        return fail("own code", str(error))
    return ok("own code", "agent, tools and plugins can be imported")
