"""``clew dashboard``: open the dashboard in a browser, and manage its logins."""

from __future__ import annotations

import webbrowser
from typing import TYPE_CHECKING, Final

import click

from clew.api.discovery import discover_server
from clew.cli.common import (
    CliContext,
    FullHelpGroup,
    format_examples,
    json_option,
    pass_cli_context,
    print_json,
)
from clew.cli.feature_records import load_section, print_table, run_in_store
from clew.errors import UsageError
from clew.features.dashboard import logins, operations
from clew.features.dashboard.settings import DashboardSettings

if TYPE_CHECKING:
    from clew.config import Settings
    from clew.store.contract import Tx

_FEATURE: Final = "dashboard"


@click.group(
    cls=FullHelpGroup,
    invoke_without_command=True,
    epilog=format_examples(
        "clew dashboard",
        "clew dashboard --print",
        "clew dashboard --print --url https://clew.example",
        "clew dashboard logins",
    ),
)
@click.option("--url", help="Its address, if browsers reach it at another one than this machine.")
@click.option("--print", "is_printed", is_flag=True, help="Print the link instead of opening it.")
@click.pass_context
def dashboard(context: click.Context, *, url: str | None, is_printed: bool) -> None:
    """
    Open the dashboard of the running gateway in a browser, logged in.

    The link has a code that works once and for five minutes; it never has the token.
    """
    if context.invoked_subcommand is not None:
        return
    program = context.ensure_object(CliContext)
    link = _make_link(program, url)
    if is_printed or not webbrowser.open(link):
        click.echo(link)


def _make_link(program: CliContext, url: str | None) -> str:
    settings = program.load_settings()
    if not load_section(settings, _FEATURE, DashboardSettings).enabled:
        raise UsageError("the dashboard is off: set dashboard.enabled to true")
    base = (url or _find_url(settings)).rstrip("/")
    if settings.api.token is None:
        return f"{base}/"
    code = logins.make_secret()
    run_in_store(program, _FEATURE, lambda t, _: logins.add_code(t, code))
    # Behind the mark no browser sends it to a server, and none logs it.
    return f"{base}/#login={code}"


def _find_url(settings: Settings) -> str:
    found = discover_server(settings.home)
    if found is None or not found.is_running:
        raise UsageError("no gateway runs: start one with clew serve, or name its address by --url")
    # A gateway that listens everywhere is also at this machine's own address.
    return found.url.replace("//0.0.0.0:", "//127.0.0.1:").replace("//[::]:", "//[::1]:")


@dashboard.command("logins", epilog=format_examples("clew dashboard logins"))
@json_option
@pass_cli_context
def list_logins(program: CliContext, *, as_json: bool) -> None:
    """List the browsers that have logged in."""
    found = run_in_store(program, _FEATURE, lambda t, _: operations.describe_all(t))
    if as_json:
        print_json({"items": found})
        return
    rows = [(one["id"], one["used_at"], one["expires_at"], one["label"]) for one in found]
    print_table(("ID", "USED", "EXPIRES", "BROWSER"), rows, none="no browser has logged in")


@dashboard.command("revoke", epilog=format_examples("clew dashboard revoke lgn_0123456789abcdef"))
@click.argument("login")
@pass_cli_context
def revoke_login(program: CliContext, login: str) -> None:
    """Log a browser out."""

    def revoke(t: Tx, _: Settings) -> str:
        return logins.revoke_login(t, login).label

    click.echo(f"logged out: {run_in_store(program, _FEATURE, revoke)}")
