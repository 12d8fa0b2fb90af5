"""``clew doctor``: find problems and print how to fix them."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import click

from clew.cli.common import CliContext, format_examples, json_option, pass_cli_context, print_json
from clew.cli.doctor_checks.runner import run_checks
from clew.cli.output import get_outputs
from clew.cli.progress import StatusLine
from clew.core.doctor_finding import FindingLevel

if TYPE_CHECKING:
    from clew.cli.output import Output
    from clew.core.doctor_finding import DoctorFinding

_LABEL_WIDTH = 12


@click.command(
    epilog=format_examples("clew doctor", "clew doctor --fix", "clew doctor --offline --json")
)
@click.option("--fix", "mend", is_flag=True, help="Repair what needs no decision: file modes.")
@click.option("--offline", is_flag=True, help="Do not send a test request to the model's provider.")
@json_option
@pass_cli_context
@click.pass_context
def doctor(
    ctx: click.Context, program: CliContext, *, mend: bool, offline: bool, as_json: bool
) -> None:
    """
    Look at settings, files, store and model, and say what to do.

    May be used at any time, also while a gateway runs. Exits 1 if something does not work.
    """
    found = asyncio.run(_collect_findings(program, mend=mend, offline=offline, as_json=as_json))
    works = all(each.level is not FindingLevel.FAIL for each in found)
    if as_json:
        print_json({"ok": works, "findings": [_finding_json(each) for each in found]})
    ctx.exit(0 if works else 1)


async def _collect_findings(
    program: CliContext, *, mend: bool, offline: bool, as_json: bool
) -> list[DoctorFinding]:
    out, notes = get_outputs()
    progress = StatusLine(notes)
    found: list[DoctorFinding] = []
    async for finding in run_checks(
        program,
        mend=mend,
        offline=offline,
        say=lambda what: progress.show_activity(f"looking at {what}"),
    ):
        found.append(finding)
        if not as_json:
            progress.clear_line()
            _print_finding(finding, out)
    progress.clear_line()
    if not as_json:
        notes.print_dim(_format_summary(found))
    return found


def _print_finding(finding: DoctorFinding, out: Output) -> None:
    level = finding.level.value
    marked = (
        out.style_dim(f"{level:<4}")
        if finding.level is FindingLevel.OK
        else out.style_bold(f"{level:<4}")
    )
    indent = " " * (4 + 2 + _LABEL_WIDTH)
    detail = finding.detail.replace("\n", f"\n{indent}")
    out.write(f"{marked}  {finding.what:<{_LABEL_WIDTH}}{detail}\n")
    if finding.fix is not None:
        out.write(f"{indent}to do: {finding.fix}\n")


def _format_summary(found: list[DoctorFinding]) -> str:
    failed = sum(each.level is FindingLevel.FAIL for each in found)
    warned = sum(each.level is FindingLevel.WARN for each in found)
    if not failed:
        return f"everything works; {warned} to check" if warned else "no problems found"
    return f"{failed} to fix" + (f", {warned} to check" if warned else "")


def _finding_json(finding: DoctorFinding) -> dict[str, object]:
    return {
        "level": finding.level.value,
        "what": finding.what,
        "detail": finding.detail,
        "fix": finding.fix,
    }
