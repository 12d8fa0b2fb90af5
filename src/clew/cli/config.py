"""``clew config``: the settings that hold, what is wrong with them, where they are."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import click

from clew.cli.common import Globals, WholeSentences, example, json_option, pass_globals, print_json
from clew.cli.settings_check import find_problems
from clew.config import find_home, load_settings
from clew.config.describe import effective_values
from clew.config.model_access import is_offline_only
from clew.config.schema import build_json_schema
from clew.errors import SettingsError

if TYPE_CHECKING:
    from clew.config import Settings
    from clew.config.describe import EffectiveValue

#: Values longer than this push their line's origin to the right.
_WIDEST = 40


@click.group(cls=WholeSentences, epilog=example("clew config show"))
def config() -> None:
    """Show and check the settings."""


@config.command(epilog=example("clew config show", "clew config show --json"))
@json_option
@pass_globals
def show(program: Globals, as_json: bool) -> None:
    """Print every setting, its value and where that comes from; secrets stay hidden."""
    settings = program.settings()
    rows = effective_values(settings)
    if as_json:
        print_json(
            {
                "home": str(settings.home),
                "settings": {row.name: _as_json(row) for row in rows},
                "warnings": settings.warnings,
            }
        )
        return
    click.echo(f"# {settings.home}")
    for line in _table(rows):
        click.echo(line)


def _as_json(row: EffectiveValue) -> dict[str, object]:
    return {"value": row.value, "origin": row.origin.kind, "place": row.origin.place}


def _table(rows: list[EffectiveValue]) -> list[str]:
    values = [_written(row.value) for row in rows]
    name_width = max(len(row.name) for row in rows)
    value_width = max((len(value) for value in values if len(value) <= _WIDEST), default=0)
    return [
        f"{row.name:<{name_width}}  {value:<{value_width}}  {_origin(row)}".rstrip()
        for row, value in zip(rows, values, strict=True)
    ]


def _written(value: object) -> str:
    return "-" if value is None else json.dumps(value, ensure_ascii=False)


def _origin(row: EffectiveValue) -> str:
    if row.origin.kind != "default" or row.origin.place == "default":
        return row.origin.place
    return f"default: {row.origin.place}"


@config.command(epilog=example("clew config check"))
@json_option
@pass_globals
@click.pass_context
def check(ctx: click.Context, program: Globals, as_json: bool) -> None:
    """Check the settings, also that secrets and files are where they say. Exits 2 if not."""
    try:
        settings = load_settings(home=program.home, flags=program.flags, environ=os.environ)
    except SettingsError as error:
        found, warnings = list(error.problems), ()
    else:
        found, warnings = [*find_problems(settings), *_of_models(settings)], settings.warnings
    if as_json:
        print_json({"ok": not found, "problems": found, "warnings": warnings})
        ctx.exit(2 if found else 0)
    for warning in warnings:
        click.echo(f"clew: warning: {warning}", err=True)
    if found:
        raise SettingsError(*found)
    click.echo("the settings are right")


def _of_models(settings: Settings) -> list[str]:
    """Return what is wrong with the models, and nothing for the one that is built in."""
    if is_offline_only(settings):
        return []
    from clew.runtime import find_model_problems  # noqa: PLC0415  (the model library is slow to import)

    return find_model_problems(settings)


@config.command(epilog=example("$EDITOR $(clew config path)"))
@json_option
@pass_globals
def path(program: Globals, as_json: bool) -> None:
    """Print the path of config.toml; it may not exist yet."""
    home = find_home(program.home, os.environ)
    if as_json:
        print_json({"home": str(home), "config": str(home / "config.toml")})
    else:
        click.echo(home / "config.toml")


@config.command(epilog=example("clew config schema > config.schema.json"))
def schema() -> None:
    """Print a JSON schema of config.toml (draft 2020-12), for editors that complete and check."""
    print_json(build_json_schema())
