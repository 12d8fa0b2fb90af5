"""``clew config``: show and check the settings, and print where they are."""

from __future__ import annotations

import json
import os
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
from clew.cli.settings_check import find_settings_problems
from clew.config import find_home
from clew.config.introspection import effective_values
from clew.config.model_access import is_offline_only
from clew.config.schema import build_json_schema
from clew.config.validation import find_unmasked_secrets
from clew.errors import SettingsError

if TYPE_CHECKING:
    from clew.config import Settings
    from clew.config.introspection import EffectiveValue

#: Longer values shift the origin in their line to the right.
_MAX_VALUE_WIDTH = 40


@click.group(cls=FullHelpGroup, epilog=format_examples("clew config show"))
def config() -> None:
    """Show and check the settings."""


@config.command(epilog=format_examples("clew config show", "clew config show --json"))
@json_option
@pass_cli_context
def show(program: CliContext, as_json: bool) -> None:
    """Print every setting, its value and where that comes from; secrets stay hidden."""
    settings = program.load_settings()
    rows = effective_values(settings)
    if as_json:
        print_json(
            {
                "home": str(settings.home),
                "settings": {row.name: _row_json(row) for row in rows},
                "warnings": settings.warnings,
            }
        )
        return
    click.echo(f"# {settings.home}")
    for line in _format_rows(rows):
        click.echo(line)


def _row_json(row: EffectiveValue) -> dict[str, object]:
    return {"value": row.value, "origin": row.origin.kind, "place": row.origin.place}


def _format_rows(rows: list[EffectiveValue]) -> list[str]:
    values = [_format_value(row.value) for row in rows]
    name_width = max(len(row.name) for row in rows)
    value_width = max((len(value) for value in values if len(value) <= _MAX_VALUE_WIDTH), default=0)
    return [
        f"{row.name:<{name_width}}  {value:<{value_width}}  {_format_origin(row)}".rstrip()
        for row, value in zip(rows, values, strict=True)
    ]


def _format_value(value: object) -> str:
    return "-" if value is None else json.dumps(value, ensure_ascii=False)


def _format_origin(row: EffectiveValue) -> str:
    if row.origin.kind != "default" or row.origin.place == "default":
        return row.origin.place
    return f"default: {row.origin.place}"


@config.command(epilog=format_examples("clew config check"))
@json_option
@pass_cli_context
@click.pass_context
def check(ctx: click.Context, program: CliContext, as_json: bool) -> None:
    """Check the settings, also that secrets and files are where they say. Exits 2 if not."""
    try:
        settings = program.read_settings()
    except SettingsError as error:
        found, warnings = list(error.problems), ()
    else:
        found, warnings = (
            [*find_settings_problems(settings), *_find_model_problems(settings)],
            (*settings.warnings, *find_unmasked_secrets(settings)),
        )
    if as_json:
        print_json({"ok": not found, "problems": found, "warnings": warnings})
        ctx.exit(2 if found else 0)
    for warning in warnings:
        click.echo(f"clew: warning: {warning}", err=True)
    if found:
        raise SettingsError(*found)
    click.echo("Configuration OK")


def _find_model_problems(settings: Settings) -> list[str]:
    """Return the problems of the models; none for the built-in one."""
    if is_offline_only(settings):
        return []
    from clew.runtime import find_model_problems  # noqa: PLC0415  (the model library is slow to import)

    return find_model_problems(settings)


@config.command(epilog=format_examples("$EDITOR $(clew config path)"))
@json_option
@pass_cli_context
def path(program: CliContext, as_json: bool) -> None:
    """Print the path of config.toml; it may not exist yet."""
    home = find_home(program.home, os.environ)
    if as_json:
        print_json({"home": str(home), "config": str(home / "config.toml")})
    else:
        click.echo(home / "config.toml")


@config.command(epilog=format_examples("clew config schema > config.schema.json"))
@pass_cli_context
def schema(program: CliContext) -> None:
    """Print a JSON schema of config.toml (draft 2020-12), for editors that complete and check."""
    print_json(build_json_schema(program.load_features().catalog))


@config.command(
    "set",
    epilog=format_examples(
        "clew config set session.reset daily", """clew config set model.fallback '["offline"]'"""
    ),
)
@click.argument("name")
@click.argument("value")
@json_option
@pass_cli_context
def set_command(program: CliContext, name: str, value: str, as_json: bool) -> None:
    """Write one setting to config.toml; VALUE is written as after --set."""
    settings = program.load_settings()
    _write_setting(settings, name, _parse_value(settings, name, value), as_json=as_json)


@config.command("unset", epilog=format_examples("clew config unset session.reset"))
@click.argument("name")
@json_option
@pass_cli_context
def unset_command(program: CliContext, name: str, as_json: bool) -> None:
    """Remove one setting from config.toml, so that its default holds."""
    _write_setting(program.load_settings(), name, None, as_json=as_json)


def _parse_value(settings: Settings, name: str, text: str) -> object:
    from clew.config.parsers import toml_or_text  # noqa: PLC0415  (help needs none)
    from clew.plugin.loading import get_features  # noqa: PLC0415  (as above)

    field = get_features(settings).catalog.find_field(tuple(name.split(".")))
    if field is None or field.kind.secret:
        return toml_or_text(text) if field is None or text.lstrip().startswith("{") else text
    return field.kind.from_text(text)


def _write_setting(settings: Settings, name: str, value: object, *, as_json: bool) -> None:
    from clew.config import ensure_home  # noqa: PLC0415  (help needs none)
    from clew.plugin.setting_change import change_setting  # noqa: PLC0415  (as above)

    ensure_home(settings)
    done = change_setting(settings, name, value)
    if as_json:
        print_json({"name": name, "file": str(done.file), "note": done.describe()})
    else:
        click.echo(done.describe())
