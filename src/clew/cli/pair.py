"""``clew pair``: access of people on channels."""

from __future__ import annotations

import asyncio
import getpass
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import click

from clew.cli.common import (
    CliContext,
    FullHelpGroup,
    format_examples,
    json_option,
    pass_cli_context,
    print_json,
)
from clew.cli.output import format_table, get_outputs
from clew.cli.record_printer import open_configured_store
from clew.clock import now_millis
from clew.core.access import AccessStatus
from clew.core.ids import IdGenerator, new_session_id
from clew.engine.pairing import PairingService
from clew.features.admin.accounts import find_accounts
from clew.features.admin.records import describe_person

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable

    from clew.config import Settings


@asynccontextmanager
async def open_pairing(settings: Settings) -> AsyncGenerator[PairingService]:
    """Open the pairing service on the configured store, without an engine."""
    async with open_configured_store(settings) as store:
        yield PairingService(store, IdGenerator(now_millis), new_session_id)


def _run_job(
    program: CliContext, job: Callable[[Settings, PairingService], Awaitable[None]]
) -> None:
    async def open_and_run() -> None:
        settings = program.load_settings()
        async with open_pairing(settings) as people:
            await job(settings, people)

    asyncio.run(open_and_run())


@click.group(
    cls=FullHelpGroup, epilog=format_examples("clew pair list", "clew pair approve ABCD-EFGH")
)
def pair() -> None:
    """Let people talk to the agent on channels, and shut them out."""


@pair.command("list", epilog=format_examples("clew pair list", "clew pair list --json"))
@json_option
@pass_cli_context
def list_people(program: CliContext, *, as_json: bool) -> None:
    """List everyone who asked, is in or is out; who is in `allow` alone is not here."""

    async def print_people(_: Settings, people: PairingService) -> None:
        found = await people.list_people()
        if as_json:
            print_json({"items": [describe_person(person) for person in found], "next": None})
            return
        out, notes = get_outputs()
        if not found:
            notes.print_dim("no requests yet")
            return
        rows = [
            (
                person.account.channel,
                person.user,
                person.name or "-",
                person.standing.value,
                f"{person.changed_at.astimezone():%Y-%m-%d %H:%M}",
            )
            for person in found
        ]
        for line in format_table(("CHANNEL", "ID", "NAME", "STANDING", "SINCE"), rows):
            out.write(line + "\n")

    _run_job(program, print_people)


@pair.command(epilog=format_examples("clew pair approve ABCD-EFGH"))
@click.argument("code")
@json_option
@pass_cli_context
def approve(program: CliContext, *, code: str, as_json: bool) -> None:
    """Grant access to the person who was shown CODE, and notify them."""

    async def approve_code(_: Settings, people: PairingService) -> None:
        person = await people.approve_code(code, by=_operator_name())
        if as_json:
            print_json(describe_person(person))
        else:
            click.echo(
                f"{person.user}  {person.name or '-'} now has access to {person.account.channel}"
            )

    _run_job(program, approve_code)


_USER_ARGUMENT = click.argument("user", metavar="ID")
_CHANNEL_OPTION = click.option(
    "--channel", metavar="NAME", help="The channel, for a person who is only in its `allow` list."
)


@pair.command(
    epilog=format_examples("clew pair remove 42", "clew pair remove 42 --channel telegram")
)
@_USER_ARGUMENT
@_CHANNEL_OPTION
@json_option
@pass_cli_context
def remove(program: CliContext, *, user: str, channel: str | None, as_json: bool) -> None:
    """Revoke a person's access and end their open work; they may ask again."""
    _revoke_access(program, user, channel, to=AccessStatus.REMOVED, as_json=as_json)


@pair.command(epilog=format_examples("clew pair block 42"))
@_USER_ARGUMENT
@_CHANNEL_OPTION
@json_option
@pass_cli_context
def block(program: CliContext, *, user: str, channel: str | None, as_json: bool) -> None:
    """As remove, and answer them nothing any more."""
    _revoke_access(program, user, channel, to=AccessStatus.BLOCKED, as_json=as_json)


def _revoke_access(
    program: CliContext, user: str, channel: str | None, *, to: AccessStatus, as_json: bool
) -> None:
    async def revoke_and_print(settings: Settings, people: PairingService) -> None:
        known = await people.list_people()
        for account in find_accounts(settings, known, user, channel=channel):
            await people.revoke_access(account, user, to=to, by=_operator_name())
        if as_json:
            print_json({"user": user, "standing": to.value})
        else:
            click.echo(f"{user}  {to.value}")

    _run_job(program, revoke_and_print)


def _operator_name() -> str:
    try:
        return f"local:{getpass.getuser()}"
    except (OSError, KeyError):
        return "local"
