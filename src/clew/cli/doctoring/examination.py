"""All checks, in an order in which the first failure explains the others."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING

from clew.cli.doctoring import machine
from clew.cli.doctoring.channels import channels
from clew.cli.doctoring.findings import fail, ok, warn
from clew.cli.doctoring.storing import store
from clew.cli.logs import Redaction, logs_left_out
from clew.cli.settings_check import find_problems
from clew.config import find_home, load_settings
from clew.config.model_access import is_offline_only
from clew.config.settings import OFFLINE
from clew.errors import SettingsError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator

    from clew.cli.common import Globals
    from clew.cli.doctoring.findings import Finding
    from clew.config import Settings


async def examine(
    program: Globals, *, mend: bool, offline: bool, say: Callable[[str], None]
) -> AsyncIterator[Finding]:
    """
    Look at everything.

    ``say`` is told what is being looked at. ``mend`` repairs what can be repaired without a
    decision; ``offline`` asks no provider.
    """
    say("the settings")
    home = find_home(program.home, os.environ)
    yield machine.home(home, mend=mend)
    try:
        settings = load_settings(home=program.home, flags=program.flags, environ=os.environ)
    except SettingsError as error:
        for problem in error.problems:
            yield fail("settings", problem)
        return
    for finding in _settings(settings):
        yield finding
    for finding in _code(settings):
        yield finding
    say("the disk and the port")
    yield machine.disk(home)
    yield machine.port(settings.api, home)
    say("the store")
    # A finding tells what the log would, once.
    with logs_left_out(settings):
        async for finding in store(settings):
            yield finding
    say("the model")
    if settings.model.name == OFFLINE:
        yield _scripted(settings)
        if is_offline_only(settings):
            return
    # The model library takes half a second to import.
    from clew.cli.doctoring.model import models  # noqa: PLC0415

    hide = Redaction(settings)
    async for finding in models(settings, offline=offline):
        # A provider may tell the key that it refuses.
        yield replace(finding, **hide(None, "", {"detail": finding.detail}))


def _settings(settings: Settings) -> Iterator[Finding]:
    wrong = find_problems(settings)
    for problem in wrong:
        yield fail("settings", problem)
    for warning in settings.warnings:
        yield warn("settings", warning, fix="clew config check")
    if not wrong and not settings.warnings:
        file = settings.config_file
        yield ok("settings", f"{file if file.exists() else 'defaults'}, without a mistake")


def _code(settings: Settings) -> Iterator[Finding]:
    """Load what the settings name and nobody of us may have written."""
    if settings.agent.object or settings.tools.modules or settings.plugins.enabled:
        from clew.cli.doctoring.own import own_code  # noqa: PLC0415  (as the model library above)

        yield own_code(settings)
    yield from channels(settings)


def _scripted(settings: Settings) -> Finding:
    found = f"offline answers, by a fixed script ({settings.model.chosen_by})"
    if "model.name" in settings.origins:
        return ok("model", found)
    return warn("model", found, fix="clew setup")
