"""Checks of features: that they can be loaded, and what they declare themselves."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from clew.core.doctor_finding import fail
from clew.plugin.declarations import DoctorCheck

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from clew.core.doctor_finding import DoctorFinding
    from clew.plugin.registry import Features

#: Seconds for one check.
_CHECK_TIMEOUT = 30.0


async def check_features(features: Features) -> AsyncIterator[DoctorFinding]:
    """Yield the findings of each feature's checks; one that raises is a finding itself."""
    known = set(features.problems)
    await asyncio.to_thread(features.finish)
    for problem in features.problems:
        if problem not in known:
            yield fail("features", problem)
    for check in features.values(DoctorCheck):
        try:
            async with asyncio.timeout(_CHECK_TIMEOUT):
                found = list(await check.run())
        except Exception as error:  # noqa: BLE001  (the code of a feature may raise anything)
            found = [fail(check.name, f"the check failed: {type(error).__name__}: {error}")]
        for finding in found:
            yield finding
