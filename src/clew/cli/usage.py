"""``clew usage``: tokens and cost of a period."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click

from clew.cli.common import CliContext, format_examples, json_option, pass_cli_context, print_json
from clew.cli.feature_records import print_table, run_with_store
from clew.cli.output import get_outputs
from clew.features.admin.usage import DIMENSIONS, UsageParams, read_summary

if TYPE_CHECKING:
    from clew.config import Settings
    from clew.features.admin.usage import UsageSum, UsageSummary
    from clew.store.contract import Store

_FEATURE: Final = "admin"


@click.command(
    epilog=format_examples(
        "clew usage", "clew usage --by model --since 2026-01-01", "clew usage --json"
    )
)
@click.option(
    "--by",
    type=click.Choice(DIMENSIONS),
    default="day",
    show_default=True,
    help="What to sum up by.",
)
@click.option("--since", metavar="TIME", help="A date or time; 30 days before the end if missing.")
@click.option("--until", metavar="TIME", help="A date or time; now if missing.")
@json_option
@pass_cli_context
def usage(
    program: CliContext, *, by: str, since: str | None, until: str | None, as_json: bool
) -> None:
    """Sum up tokens and cost; times and days are in UTC if they have no zone."""
    given = UsageParams.model_validate({"by": by, "since": since, "until": until})

    async def read(settings: Settings, store: Store) -> UsageSummary:
        return await read_summary(store, given)

    found = run_with_store(program, _FEATURE, read)
    if as_json:
        print_json(found.model_dump())
        return
    rows = [_format_row(one.title or one.key, one) for one in found.items]
    if rows:
        rows.append(_format_row("total", found.total))
    heads = (by.upper(), "TURNS", "REQUESTS", "IN", "CACHED", "OUT", "COST")
    print_table(heads, rows, none="nothing was used in this time")
    if found.total.unpriced:
        _, notes = get_outputs()
        notes.print_dim(f"the price of {found.total.unpriced} requests is not known")


def _format_row(name: str, one: UsageSum) -> tuple[str, ...]:
    counts = (one.turns, one.requests, one.input_tokens, one.cached_tokens, one.output_tokens)
    cost = "-" if one.cost is None else f"${one.cost:.4f}"
    return (name, *(f"{count:,}" for count in counts), cost)
