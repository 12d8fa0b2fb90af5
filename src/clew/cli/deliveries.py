"""``clew deliveries``: what did not arrive, and what is on its way."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import click

from clew.cli.common import Globals, WholeSentences, example, json_option, pass_globals, print_json
from clew.cli.logs import logs_to_stderr
from clew.cli.terminal import outputs, table
from clew.clock import from_millis
from clew.config import ensure_home
from clew.core.chat import load_message
from clew.core.delivery import Delivery, DeliveryState
from clew.core.ids import DeliveryId
from clew.engine.deliveries import FAILED_STATES, OPEN_STATES, DeadLetters
from clew.store.opening import open_store

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable


def _run(program: Globals, job: Callable[[DeadLetters], Awaitable[None]]) -> None:
    async def run() -> None:
        settings = program.settings()
        ensure_home(settings)
        with logs_to_stderr(settings):
            async with await open_store(settings.store.url, home=settings.home) as store:
                await job(DeadLetters(store))

    asyncio.run(run())


@click.group(
    cls=WholeSentences, epilog=example("clew deliveries list", "clew deliveries retry dlv_0123")
)
def deliveries() -> None:
    """Look after messages that did not arrive on their channel."""


@deliveries.command("list", epilog=example("clew deliveries list", "clew deliveries list --all"))
@click.option("--all", "every", is_flag=True, help="Also those that are on their way.")
@json_option
@pass_globals
def list_(program: Globals, *, every: bool, as_json: bool) -> None:
    """List what was given up, the newest first, and why."""

    async def job(letters: DeadLetters) -> None:
        found = await letters.list_deliveries(
            (*FAILED_STATES, *OPEN_STATES) if every else FAILED_STATES
        )
        if as_json:
            print_json({"items": [_shape(one, at) for one, at in found], "next": None})
            return
        out, notes = outputs()
        if not found:
            notes.dim("nothing")
            return
        rows = [
            (
                one.id,
                one.state.value,
                f"{from_millis(at).astimezone():%Y-%m-%d %H:%M}",
                one.route,
                load_message(one.body).text,
                one.error or "-",
            )
            for one, at in found
        ]
        for line in table(("ID", "STATE", "SINCE", "ROUTE", "TEXT", "WHY"), rows):
            out.write(line + "\n")

    _run(program, job)


_IDS = click.argument("ids", metavar="ID...", nargs=-1, required=True)


@deliveries.command(epilog=example("clew deliveries retry dlv_0123"))
@_IDS
@json_option
@pass_globals
def retry(program: Globals, *, ids: tuple[str, ...], as_json: bool) -> None:
    """Send once more what was given up."""
    _change(program, ids, lambda letters, one: letters.retry_delivery(one), as_json=as_json)


@deliveries.command(epilog=example("clew deliveries drop dlv_0123"))
@_IDS
@json_option
@pass_globals
def drop(program: Globals, *, ids: tuple[str, ...], as_json: bool) -> None:
    """Give up what is on its way."""
    _change(
        program,
        ids,
        lambda letters, one: letters.drop_delivery(one, why="dropped by the operator"),
        as_json=as_json,
    )


def _change(
    program: Globals,
    ids: tuple[str, ...],
    change: Callable[[DeadLetters, DeliveryId], Awaitable[Delivery]],
    *,
    as_json: bool,
) -> None:
    async def job(letters: DeadLetters) -> None:
        changed = [await change(letters, DeliveryId(each)) for each in ids]
        if as_json:
            print_json({"items": [_state(one) for one in changed], "next": None})
            return
        for one in changed:
            click.echo(f"{one.id}  {one.state.value}")

    _run(program, job)


def _state(one: Delivery) -> dict[str, object]:
    return {"id": one.id, "state": one.state.value, "route": one.route}


def _shape(one: Delivery, at: int) -> dict[str, object]:
    return {
        **_state(one),
        "conversation": one.conversation_id,
        "kind": one.kind.value,
        "text": load_message(one.body).text,
        "attempts": one.attempts,
        "error": one.error,
        "changed_at": from_millis(at).isoformat(),
        "open": one.state is not DeliveryState.FAILED,
    }
