"""Check that the user's own code can be imported."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.cli.stdout_guard import reserve_stdout
from clew.core.doctor_finding import fail, ok
from clew.errors import SettingsError
from clew.plugin.enabled import load_enabled_plugins
from clew.runtime import make_agent

if TYPE_CHECKING:
    from clew.config import Settings
    from clew.core.doctor_finding import DoctorFinding


def check_user_code(settings: Settings) -> DoctorFinding:
    """Import the agent, tools and plugins of the settings as a gateway does."""
    try:
        # Their output is not a finding.
        with reserve_stdout():
            make_agent(settings, "")
            load_enabled_plugins(settings)
    except SettingsError as error:
        return fail("own code", str(error))
    return ok("own code", "agent, tools and plugins can be imported")
