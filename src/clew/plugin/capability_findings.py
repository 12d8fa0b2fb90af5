"""Findings about the capabilities that a plugin hands over."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from clew.agent.capability_check import check_capability
from clew.core.doctor_finding import fail, ok, warn
from clew.plugin.declarations import CapabilitySource

if TYPE_CHECKING:
    from clew.agent.capability_check import CapabilityReport
    from clew.core.doctor_finding import DoctorFinding
    from clew.plugin.registry import Features

#: Seconds for one capability.
_CHECK_TIMEOUT = 30.0


async def check_plugin(features: Features, name: str) -> list[DoctorFinding]:
    """Return the findings about each capability of a plugin."""
    declared = [one.value for one in features.get(CapabilitySource) if one.owner == name]
    if not declared:
        return [ok(name, "it hands over no capability or toolset; there is nothing to check")]
    return [finding for one in declared for finding in await _check_one(one)]


async def _check_one(declared: CapabilitySource) -> list[DoctorFinding]:
    try:
        async with asyncio.timeout(_CHECK_TIMEOUT):
            report = await check_capability(declared.make())
    except Exception as error:  # noqa: BLE001  (the code of a plugin may raise anything)
        return [fail(declared.name, f"it cannot be run: {type(error).__name__}: {error}")]
    return [*_describe_report(declared.name, report)]


def _describe_report(name: str, report: CapabilityReport) -> list[DoctorFinding]:
    found: list[DoctorFinding] = []
    if report.added:
        found.append(
            fail(
                name,
                f"it adds messages that are not stored: {'; '.join(report.added)}",
                fix="tell them with add_context_note or add_instructions, which are stored",
            )
        )
    if report.changed:
        found.append(
            fail(
                name,
                f"requests differ from the history: {'; '.join(report.changed)}",
                fix="leave messages as they are; a compactor shortens them",
            )
        )
    if report.state:
        found.append(
            fail(
                name,
                f"it keeps state: {', '.join(report.state)}",
                fix="keep it in tables of the plugin, or in what for_run returns; it is lost"
                " with a crash, an approval or another process",
            )
        )
    if report.undeclared:
        found.append(
            warn(
                name,
                f"tools without an effect: {', '.join(report.undeclared)}",
                fix='set metadata={"effect": "pure"} or "idempotent" where a call may run twice',
            )
        )
    tools = f"tools: {', '.join(report.tools)}" if report.tools else "no tools"
    return found or [ok(name, f"requests are as they are stored; {tools}")]
