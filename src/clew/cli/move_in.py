"""``clew import``: take over what another system holds."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from clew.cli.common import CliContext, format_examples, json_option, pass_cli_context, print_json
from clew.cli.output import get_outputs
from clew.clock import to_millis
from clew.core.scope import Scope
from clew.errors import UsageError
from clew.foreign.registry import SYSTEMS, load_reader

if TYPE_CHECKING:
    from datetime import datetime

    from clew.cli.move_in_run import MoveInOptions
    from clew.foreign.homes import ForeignHome

_KINDS: Final = ("conversations", "memory", "skills", "jobs", "people", "settings")


@click.command(
    "import",
    epilog=format_examples(
        "clew import hermes --dry-run",
        "clew import hermes ~/.hermes --people",
        "clew import chatgpt export.zip --since 2026-01-01",
    ),
)
@click.argument("system", type=click.Choice(tuple(SYSTEMS)))
@click.argument("path", required=False, type=click.Path(exists=True, path_type=Path))
@click.option("--dry-run", is_flag=True, help="Only show what there is.")
@click.option(
    "--since",
    type=click.DateTime(("%Y-%m-%d", "%Y-%m-%dT%H:%M", "%Y-%m-%dT%H:%M:%S")),
    help="Only conversations used at or after this local time.",
)
@click.option(
    "--into",
    metavar="SCOPE",
    help="Whose it becomes: local, person:telegram:42 … Without it: of the chat, else local.",
)
@click.option(
    "--only",
    multiple=True,
    type=click.Choice(_KINDS),
    help="Take over this only; may be given several times.",
)
@click.option("--people", is_flag=True, help="Grant access to the people who had it there.")
@click.option("--settings", "adopt", is_flag=True, help="Adopt settings that are not set here.")
@click.option("--no-routes", is_flag=True, help="Let no chat go on in its conversation here.")
@json_option
@pass_cli_context
@click.pass_context
def import_system(
    ctx: click.Context,
    program: CliContext,
    *,
    system: str,
    path: Path | None,
    as_json: bool,
    dry_run: bool,
    **given: Any,
) -> None:
    """
    Take over conversations, memory, skills and jobs of SYSTEM; nothing there is changed.

    PATH is its folder or file; without it, the usual place. What there is is shown first. May be
    stopped at any time and repeated, also while the other system runs: only what is new is added.
    """
    from clew.cli.move_in_run import MoveIn  # noqa: PLC0415  (help needs no store)

    _, notes = get_outputs()
    options = _make_options(system, **given)
    home = _open_home(system, path)
    run = MoveIn(program, home, options, notes)
    found = run.scan()
    if not as_json:
        found.print_found()
    if not dry_run:
        asyncio.run(run.take_over())
    if as_json:
        print_json({**found.as_dict(), "taken": None if dry_run else run.taken.as_dict()})
    elif not dry_run:
        run.taken.print_summary()
    ctx.exit(1 if run.taken.has_failures else 0)


def _make_options(
    system: str,
    *,
    since: datetime | None,
    into: str | None,
    only: tuple[str, ...],
    people: bool,
    adopt: bool,
    no_routes: bool,
) -> MoveInOptions:
    from clew.cli.move_in_run import MoveInOptions  # noqa: PLC0415  (help needs no store)

    return MoveInOptions(
        system=system,
        since=0 if since is None else to_millis(since.astimezone()),
        into=None if into is None else _parse_scope(into),
        only=frozenset(only or _KINDS),
        people=people or "people" in only,
        settings=adopt or "settings" in only,
        routes=not no_routes,
    )


def _open_home(system: str, path: Path | None) -> ForeignHome:
    reader = load_reader(system)
    place = path or reader.find_home(Path.home())
    if place is None:
        raise UsageError(
            f"nothing of {system} is at its usual place: name its folder or file, "
            f"as in `clew import {system} PATH`"
        )
    return reader.open_home(place)


def _parse_scope(text: str) -> Scope:
    kind, _, rest = text.partition(":")
    if text == "local" or (kind in ("person", "chat") and rest.count(":") >= 1):
        return Scope(text)
    raise UsageError(f"{text!r} is not a scope: examples are local and person:telegram:42")
