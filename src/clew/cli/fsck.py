"""``clew fsck``: check the consistency of the store, and repair it."""

from __future__ import annotations

import asyncio
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from clew.cli.common import CliContext, format_examples, json_option, pass_cli_context, print_json
from clew.cli.logs import logs_to_stderr
from clew.cli.output import get_outputs, pluralize
from clew.cli.progress import StatusLine
from clew.config import ensure_home
from clew.engine.fsck import FsckReport, StoreChecker
from clew.errors import StoreUnusable
from clew.plugin.loading import get_features
from clew.store.feature_migrations import find_pending_feature_migrations
from clew.store.migrate import find_pending_migrations
from clew.store.opening import open_store, sqlite_path

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clew.cli.output import Output
    from clew.config import Settings
    from clew.engine.fsck import FsckFinding
    from clew.store.contract import Tx
    from clew.store.feature_schema import FeatureSchema

_INDENT = 18


@click.command(epilog=format_examples("clew fsck", "clew fsck --repair", "clew fsck --json"))
@click.option("--repair", "mend", is_flag=True, help="Repair what can be repaired safely.")
@json_option
@pass_cli_context
@click.pass_context
def fsck(ctx: click.Context, program: CliContext, *, mend: bool, as_json: bool) -> None:
    """
    Check every conversation: numbers, hashes, sessions, turns, inputs, deliveries, search.

    Without --repair nothing is changed, and each finding says what a repair would do. May be used
    while gateways run. Exits 1 if something is wrong that was not repaired.
    """
    settings = program.load_settings()
    out, notes = get_outputs()
    report = asyncio.run(_run_checks(settings, notes, mend=mend))
    if as_json:
        print_json(report_json(report))
    else:
        _print_report(report, out, notes)
    ctx.exit(0 if report.is_clean else 1)


async def _run_checks(settings: Settings, notes: Output, *, mend: bool) -> FsckReport:
    ensure_home(settings)
    progress = StatusLine(notes)
    url, home = settings.store.url, settings.home
    with logs_to_stderr(settings):
        file = sqlite_path(url, home=home)
        if file is not None and not file.exists():
            return FsckReport(checked={"checks": 0}, findings=())
        # The store is examined as it is, without an upgrade.
        features = get_features(settings).schemas
        async with await open_store(url, home=home, upgrade=False) as store:
            if due := await store.read(_find_pending, features):
                raise StoreUnusable(
                    f"the store's schema lacks {', '.join(due)}: run any other command first, "
                    "which upgrades it"
                )
            check = StoreChecker(
                store, url=url, home=home, say=progress.show_activity, features=features
            )
            report = await (check.repair_problems() if mend else check.find_problems())
    progress.clear_line()
    return report


def _find_pending(t: Tx, features: Sequence[FeatureSchema]) -> list[str]:
    return find_pending_migrations(t) or find_pending_feature_migrations(t, features)


def report_json(report: FsckReport) -> dict[str, object]:
    """Return the report as JSON data."""
    told: dict[str, object] = {
        "clean": report.is_clean,
        "checked": report.checked,
        "findings": [asdict(finding) for finding in report.findings],
        "unchecked": list(report.unchecked),
    }
    if report.left_alone:
        told["left_alone"] = dict(report.left_alone)
    return told


def _print_report(report: FsckReport, out: Output, notes: Output) -> None:
    for finding in report.findings:
        _print_finding(finding, out)
    if report.unchecked:
        out.write(f"could not be checked: {', '.join(report.unchecked)}\n")
    for table, feature in report.left_alone:
        out.write(f"skipped: the table {table} of the feature {feature}, which is not loaded\n")
    out.raise_if_closed()
    notes.print_dim(_format_summary(report))


def _print_finding(finding: FsckFinding, out: Output) -> None:
    indent = " " * _INDENT
    place = finding.conversation or "the store"
    if finding.seq is not None:
        place += f", entry {finding.seq}"
    name = f"{finding.check:<{_INDENT - 1}}"
    out.write(f"{out.style_dim(name) if finding.repaired else out.style_bold(name)} {place}\n")
    out.write(f"{indent}{finding.detail}\n")
    if finding.repaired:
        out.write(f"{indent}repaired: {finding.repair}\n")
    elif finding.repair is not None:
        out.write(f"{indent}to repair: {finding.repair}\n")
    else:
        out.write(f"{indent}to decide: {finding.decide}\n")


def _format_summary(report: FsckReport) -> str:
    rows = report.checked
    if not rows["checks"]:
        return "nothing is stored yet"
    looked = (
        f"{pluralize(rows.get('entry', 0), 'entry', 'entries')} in "
        f"{pluralize(rows.get('conversation', 0), 'conversation')}, "
        f"{rows['checks']} checks"
    )
    repaired = sum(finding.repaired for finding in report.findings)
    left = len(report.findings) - repaired
    said = f"{looked}: {repaired} repaired" if repaired else looked
    if report.is_clean:
        return f"{said}, no problems found" if repaired else f"{said}: no problems found"
    sure = sum(f.repair is not None and not f.repaired for f in report.findings)
    hint = f"; clew fsck --repair repairs {sure} of them" if sure else ""
    return f"{said}, {left} need a decision" if repaired else f"{said}: {left} found{hint}"
