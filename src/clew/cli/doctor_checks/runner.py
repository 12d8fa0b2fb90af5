"""Run all checks, ordered so that the first failure explains the later ones."""

from __future__ import annotations

import os
from itertools import chain
from typing import TYPE_CHECKING

from clew.cli.doctor_checks import host
from clew.cli.doctor_checks.channels import check_channels
from clew.cli.doctor_checks.features import check_features
from clew.cli.doctor_checks.sandbox import check_sandbox
from clew.cli.doctor_checks.store import check_store
from clew.cli.logs import RedactionProcessor, suppress_logs
from clew.cli.settings_check import find_settings_problems
from clew.config import find_home
from clew.config.model_access import is_offline_only
from clew.config.settings import OFFLINE
from clew.config.validation import find_unmasked_secrets
from clew.core.doctor_finding import fail, ok, warn
from clew.errors import SettingsError
from clew.plugin.loading import get_features
from clew.record import replace

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator
    from pathlib import Path

    from clew.cli.common import CliContext
    from clew.config import Settings
    from clew.core.doctor_finding import DoctorFinding


async def run_checks(
    program: CliContext, *, mend: bool, offline: bool, say: Callable[[str], None]
) -> AsyncIterator[DoctorFinding]:
    """
    Run every check and yield its findings.

    ``say`` receives the name of each check before it runs. ``mend`` repairs what needs no
    decision; ``offline`` sends no request to a provider.
    """
    say("the settings")
    home = find_home(program.home, os.environ)
    yield host.check_home(home, mend=mend)
    try:
        settings = program.read_settings()
    except SettingsError as error:
        for problem in error.problems:
            yield fail("settings", problem)
        return
    for finding in chain(_check_settings(settings), _check_code(settings)):
        yield finding
    async for finding in check_features(get_features(settings)):
        yield finding
    async for finding in _check_machine(settings, home, say):
        yield finding
    say("the store")
    # The findings report what the log would.
    with suppress_logs(settings):
        async for finding in check_store(settings):
            yield finding
    say("the model")
    if settings.model.name == OFFLINE:
        yield _offline_finding(settings)
        if is_offline_only(settings):
            return
    # The model library takes half a second to import.
    from clew.cli.doctor_checks.model import check_models  # noqa: PLC0415

    hide = RedactionProcessor(settings)
    async for finding in check_models(settings, offline=offline):
        # A provider may quote the key that it rejects.
        yield replace(finding, **hide(None, "", {"detail": finding.detail}))


async def _check_machine(
    settings: Settings, home: Path, say: Callable[[str], None]
) -> AsyncIterator[DoctorFinding]:
    say("the disk and the port")
    yield host.check_disk(home)
    yield host.check_port(settings.api, home)
    say("the sandbox")
    for finding in await check_sandbox(settings):
        yield finding


def _check_settings(settings: Settings) -> Iterator[DoctorFinding]:
    wrong = find_settings_problems(settings)
    for problem in wrong:
        yield fail("settings", problem)
    warnings = (*settings.warnings, *find_unmasked_secrets(settings))
    for warning in warnings:
        yield warn("settings", warning, fix="clew config check")
    if not wrong and not warnings:
        file = settings.config_file
        yield ok("settings", f"{file if file.exists() else 'defaults'}: valid")


def _check_code(settings: Settings) -> Iterator[DoctorFinding]:
    """Load the code that the settings name and that is not Clew's own."""
    if settings.agent.object or settings.tools.modules or settings.plugins.enabled:
        from clew.cli.doctor_checks.user_code import check_user_code  # noqa: PLC0415  (as the model library above)

        yield check_user_code(settings)
    yield from check_channels(settings)


def _offline_finding(settings: Settings) -> DoctorFinding:
    found = f"the offline model answers from a fixed script ({settings.model.chosen_by})"
    if "model.name" in settings.origins:
        return ok("model", found)
    return warn("model", found, fix="clew setup")
