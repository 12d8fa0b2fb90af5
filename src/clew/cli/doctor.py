"""``clew doctor``: what is wrong here, and what to do about it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import click

from clew.cli.common import Globals, example, json_option, pass_globals, print_json
from clew.cli.doctoring.examination import examine
from clew.cli.doctoring.findings import Level
from clew.cli.progress import Progress
from clew.cli.terminal import outputs

if TYPE_CHECKING:
    from clew.cli.doctoring.findings import Finding
    from clew.cli.terminal import Output

_WIDTH = 12


@click.command(epilog=example("clew doctor", "clew doctor --fix", "clew doctor --offline --json"))
@click.option("--fix", "mend", is_flag=True, help="Repair what needs no decision: file modes.")
@click.option("--offline", is_flag=True, help="Do not ask the model's provider for a word.")
@json_option
@pass_globals
@click.pass_context
def doctor(
    ctx: click.Context, program: Globals, *, mend: bool, offline: bool, as_json: bool
) -> None:
    """
    Look at settings, files, store and model, and say what to do.

    May be used at any time, also while a gateway runs. Exits 1 if something does not work.
    """
    found = asyncio.run(_found(program, mend=mend, offline=offline, as_json=as_json))
    works = all(each.level is not Level.FAIL for each in found)
    if as_json:
        print_json({"ok": works, "findings": [_shape(each) for each in found]})
    ctx.exit(0 if works else 1)


async def _found(program: Globals, *, mend: bool, offline: bool, as_json: bool) -> list[Finding]:
    out, notes = outputs()
    progress = Progress(notes)
    found: list[Finding] = []
    async for finding in examine(
        program, mend=mend, offline=offline, say=lambda what: progress.say(f"looking at {what}")
    ):
        found.append(finding)
        if not as_json:
            progress.clear()
            _tell(finding, out)
    progress.clear()
    if not as_json:
        notes.dim(_summary(found))
    return found


def _tell(finding: Finding, out: Output) -> None:
    level = finding.level.value
    marked = out.dimmed(f"{level:<4}") if finding.level is Level.OK else out.bold(f"{level:<4}")
    indent = " " * (4 + 2 + _WIDTH)
    detail = finding.detail.replace("\n", f"\n{indent}")
    out.write(f"{marked}  {finding.what:<{_WIDTH}}{detail}\n")
    if finding.fix is not None:
        out.write(f"{indent}to do: {finding.fix}\n")


def _summary(found: list[Finding]) -> str:
    failed = sum(each.level is Level.FAIL for each in found)
    warned = sum(each.level is Level.WARN for each in found)
    if not failed:
        return f"everything works; {warned} to look at" if warned else "all is well"
    return f"{failed} to mend" + (f", {warned} to look at" if warned else "")


def _shape(finding: Finding) -> dict[str, object]:
    return {
        "level": finding.level.value,
        "what": finding.what,
        "detail": finding.detail,
        "fix": finding.fix,
    }
