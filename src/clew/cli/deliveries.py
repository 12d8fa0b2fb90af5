"""``clew deliveries``: failed and pending outbound messages."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import click

from clew import wording
from clew.cli.common import (
    CliContext,
    FullHelpGroup,
    cursor_option,
    format_examples,
    json_option,
    limit_option,
    pass_cli_context,
    print_json,
)
from clew.cli.output import format_table, get_outputs
from clew.cli.record_printer import open_configured_store
from clew.clock import from_millis
from clew.core.channel_events import load_message
from clew.core.ids import DeliveryId
from clew.engine.deliveries import DROPPED_BY_OPERATOR, FAILED_STATES, OPEN_STATES, DeadLetters
from clew.features.admin.records import describe_change, describe_delivery

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from clew.core.delivery import Delivery


def _run_job(program: CliContext, job: Callable[[DeadLetters], Awaitable[None]]) -> None:
    async def open_and_run() -> None:
        settings = program.load_settings()
        async with open_configured_store(settings) as store:
            await job(DeadLetters(store))

    asyncio.run(open_and_run())


@click.group(
    cls=FullHelpGroup,
    epilog=format_examples("clew deliveries list", "clew deliveries retry dlv_0123"),
)
def deliveries() -> None:
    """Look after messages that did not arrive on their channel."""


@deliveries.command(
    "list", epilog=format_examples("clew deliveries list", "clew deliveries list --all")
)
@click.option("--all", "every", is_flag=True, help="Include deliveries in progress.")
@click.option("--channel", metavar="NAME", help="Only those to this channel.")
@limit_option(200)
@cursor_option
@json_option
@pass_cli_context
def list_deliveries(
    program: CliContext,
    *,
    every: bool,
    channel: str | None,
    limit: int,
    cursor: str | None,
    as_json: bool,
) -> None:
    """List what was given up, the newest first, and why."""

    async def print_deliveries(letters: DeadLetters) -> None:
        found = await letters.list_deliveries(
            (*FAILED_STATES, *OPEN_STATES) if every else FAILED_STATES,
            limit=limit + 1,
            before=None if cursor is None else DeliveryId(cursor),
            channel=channel,
        )
        more, found = len(found) > limit, found[:limit]
        following = found[-1][0].id if more else None
        if as_json:
            print_json(
                {"items": [describe_delivery(one, at) for one, at in found], "next": following}
            )
            return
        out, notes = get_outputs()
        if not found:
            notes.print_dim("nothing")
            return
        rows = [
            (
                one.id,
                one.state.value,
                f"{from_millis(at).astimezone():%Y-%m-%d %H:%M}",
                one.route,
                wording.word_message(load_message(one.body)).text,
                wording.describe_note(one.error) or "-",
            )
            for one, at in found
        ]
        for line in format_table(("ID", "STATE", "SINCE", "ROUTE", "TEXT", "WHY"), rows):
            out.write(line + "\n")
        if following is not None:
            notes.print_dim(f"there are more: --cursor {following}")

    _run_job(program, print_deliveries)


_IDS = click.argument("ids", metavar="ID...", nargs=-1, required=True)


@deliveries.command(epilog=format_examples("clew deliveries retry dlv_0123"))
@_IDS
@json_option
@pass_cli_context
def retry(program: CliContext, *, ids: tuple[str, ...], as_json: bool) -> None:
    """Send once more what was given up."""
    _change_deliveries(
        program, ids, lambda letters, one: letters.retry_delivery(one), as_json=as_json
    )


@deliveries.command(epilog=format_examples("clew deliveries drop dlv_0123"))
@_IDS
@json_option
@pass_cli_context
def drop(program: CliContext, *, ids: tuple[str, ...], as_json: bool) -> None:
    """Give up what is on its way."""
    _change_deliveries(
        program,
        ids,
        lambda letters, one: letters.drop_delivery(one, why=DROPPED_BY_OPERATOR),
        as_json=as_json,
    )


def _change_deliveries(
    program: CliContext,
    ids: tuple[str, ...],
    change: Callable[[DeadLetters, DeliveryId], Awaitable[Delivery]],
    *,
    as_json: bool,
) -> None:
    async def change_and_print(letters: DeadLetters) -> None:
        changed = [await change(letters, DeliveryId(each)) for each in ids]
        if as_json:
            print_json({"items": [describe_change(one) for one in changed], "next": None})
            return
        for one in changed:
            click.echo(f"{one.id}  {one.state.value}")

    _run_job(program, change_and_print)
