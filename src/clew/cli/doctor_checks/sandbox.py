"""Check of the sandbox: which one is in force, and whether known ways out of it are closed."""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from clew.config.workspaces import make_sandbox_policy
from clew.core.doctor_finding import fail, ok, warn
from clew.errors import SettingsError
from clew.sandbox.errors import SandboxError
from clew.sandbox.escape_check import try_escapes
from clew.sandbox.selection import choose_sandbox

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from clew.config import Settings
    from clew.core.doctor_finding import DoctorFinding
    from clew.sandbox.escape_check import EscapeResult
    from clew.sandbox.request import SandboxPolicy
    from clew.sandbox.selection import SandboxChoice

_WHAT: Final = "sandbox"
_SQLITE: Final = "sqlite:///"


async def check_sandbox(settings: Settings) -> Sequence[DoctorFinding]:
    """Try the sandbox of the settings for real, with every attempt to get out on a line."""
    try:
        policy = make_sandbox_policy(settings)
    except SettingsError:
        return ()  # reported with the settings
    with ExitStack() as stack:
        if not settings.home.exists():
            policy = replace(policy, folder=_make_temporary_folder(stack))
        return [await _examine(policy, _find_database(settings))]


def _make_temporary_folder(stack: ExitStack) -> Path:
    """Return a folder for the time of the check, which must not make a data folder."""
    folder = stack.enter_context(tempfile.TemporaryDirectory(prefix="clew-doctor-"))
    return Path(folder).resolve()


def _find_database(settings: Settings) -> Path | None:
    url = settings.store.url
    return settings.home / url.removeprefix(_SQLITE) if url.startswith(_SQLITE) else None


async def _examine(policy: SandboxPolicy, database: Path | None) -> DoctorFinding:
    chosen = await choose_sandbox(policy)
    if chosen.sandbox is None:
        return warn(_WHAT, f"no command can run: {chosen.reason}", fix="; or ".join(chosen.fixes))
    if chosen.warning is not None:
        return warn(_WHAT, chosen.warning, fix='set sandbox.level to "work"')
    python = "python3" if policy.level == "box" else None
    try:
        found = await try_escapes(
            chosen.sandbox,
            policy.folder,
            database=database,
            python=python,
            proxy=policy.proxy if policy.level == "net" else None,
        )
    except SandboxError as error:
        return fail(_WHAT, f"{chosen.sandbox.name}: {error}")
    return _judge(chosen, found)


def _judge(chosen: SandboxChoice, found: Sequence[EscapeResult]) -> DoctorFinding:
    stopped = sum(each.stopped for each in found)
    lines = "\n".join([_summarise(chosen, stopped, len(found)), *_iter_lines(chosen, found)])
    if stopped == len(found):
        return ok(_WHAT, lines)
    return fail(_WHAT, lines, fix="; or ".join([*chosen.fixes, 'set sandbox.level to "box"']))


def _summarise(chosen: SandboxChoice, stopped: int, tried: int) -> str:
    name = chosen.require_sandbox().name
    return f"{name} at level {chosen.level}: {stopped} of {tried} ways out are closed"


def _iter_lines(chosen: SandboxChoice, found: Sequence[EscapeResult]) -> Iterator[str]:
    for name, report in chosen.failures:
        yield f"not {name}: {report.detail}"
    for gap in chosen.require_sandbox().gaps:
        yield f"not kept apart: {gap}"
    for each in found:
        yield f"{'closed' if each.stopped else 'OPEN  '}  {each.title} ({each.detail})"
