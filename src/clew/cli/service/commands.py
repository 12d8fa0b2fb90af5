"""``clew service``: run the gateway around the clock."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Any

import click

from clew.cli.common import (
    CliContext,
    FullHelpGroup,
    format_examples,
    json_option,
    pass_cli_context,
    print_json,
)
from clew.cli.output import get_outputs
from clew.cli.service.definition import DEFAULT_NAME, format_words
from clew.cli.service.environment import find_missing_variables
from clew.cli.service.installing import (
    define_service,
    find_manager,
    install_service,
    require_manager,
    uninstall_service,
)
from clew.cli.service.status import read_service_status
from clew.cli.settings_check import find_settings_problems
from clew.config import find_home
from clew.errors import SettingsError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from clew.cli.service.definition import ServiceDefinition
    from clew.cli.service.installing import InstallResult
    from clew.cli.service.manager import ServiceManager
    from clew.cli.service.status import GatewayState, ServiceStatus


def _check_name(_ctx: click.Context, _: click.Parameter, name: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}", name):
        raise click.BadParameter("use letters, digits, '-', '_' and '.'")
    return name


def _service_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that say which service is meant."""
    named = click.option(
        "--name",
        default=DEFAULT_NAME,
        show_default=True,
        callback=_check_name,
        help="The name of the service, for a second home.",
    )
    system = click.option(
        "--system", is_flag=True, help="A service of the whole machine, which needs its rights."
    )
    return named(system(command))


@click.group(
    cls=FullHelpGroup, epilog=format_examples("clew service install", "clew service status")
)
def service() -> None:
    """Run the gateway around the clock, under systemd or launchd."""


@service.command(
    epilog=format_examples(
        "clew service install",
        "clew service install --dry-run",
        "sudo clew --home /var/lib/clew service install --system --user clew",
    )
)
@_service_options
@click.option("--user", help="The user of a service of the machine, by default the home's owner.")
@click.option("--no-start", is_flag=True, help="Do not start it now.")
@click.option("--dry-run", is_flag=True, help="Print the file of the service, and do nothing.")
@json_option
@pass_cli_context
def install(
    program: CliContext,
    *,
    name: str,
    system: bool,
    user: str | None,
    no_start: bool,
    dry_run: bool,
    as_json: bool,
) -> None:
    """
    Install and start the service, or update it.

    Repeated, it changes nothing. Options before the command (--home, --set) are those of the
    service.
    """
    home = find_home(program.home, os.environ)
    made = define_service(name=name, home=home, flags=program.flags, system=system, user=user)
    if dry_run:
        _print_file(find_manager(system=system), made, as_json=as_json)
        return
    manager = require_manager(system=system)
    _check_settings(program, made)
    result = install_service(manager, made, start=not no_start)
    if as_json:
        print_json({"file": str(result.file), "changed": result.changed, "linger": result.lingers})
        return
    _print_result(result, manager, name, started=not no_start)


def _print_file(manager: ServiceManager, made: ServiceDefinition, *, as_json: bool) -> None:
    file, text = manager.locate_file(made.name), manager.render_file(made)
    if as_json:
        print_json({"file": str(file), "content": text})
        return
    out, notes = get_outputs()
    notes.print_dim(f"would be written to {file}:")
    out.write(text)


def _check_settings(program: CliContext, made: ServiceDefinition) -> None:
    """
    Check that the gateway can start with the settings, and warn of variables that it will lack.

    :raises SettingsError: if it cannot
    """
    settings = program.load_settings()
    if problems := find_settings_problems(settings):
        raise SettingsError(*problems)
    if missing := find_missing_variables(settings, made.environment_file):
        click.echo(
            f"clew: warning: the service does not have {', '.join(missing)} of this environment: "
            f"set what it needs in {settings.home / 'config.toml'}, or, with systemd, in "
            f"{made.environment_file} (NAME=VALUE lines, mode 0600)",
            err=True,
        )


def _print_result(
    result: InstallResult, manager: ServiceManager, name: str, *, started: bool
) -> None:
    out, notes = get_outputs()
    out.write(f"{'written' if result.changed else 'unchanged'}: {result.file}\n")
    out.write(f"{name}: {'running' if started else 'starts with the machine'}\n")
    if not result.lingers:
        notes.print_dim(
            "it ends when you log out, until an administrator allows it to stay: "
            f"sudo loginctl enable-linger {os.getuid()}"
        )
    notes.print_dim(f"log: {format_words(*manager.follow_log_command(name))}")


@service.command(epilog=format_examples("clew service status", "clew service status --json"))
@_service_options
@json_option
@pass_cli_context
@click.pass_context
def status(
    ctx: click.Context, program: CliContext, *, name: str, system: bool, as_json: bool
) -> None:
    """
    Show whether the gateway runs and answers, and what its process manager says.

    Exits 1 if it does not. Works for a gateway that was started in another way, too.
    """
    home = find_home(program.home, os.environ)
    manager = find_manager(system=system)
    found = read_service_status(manager, name, home)
    if as_json:
        print_json(_status_json(found, manager))
    else:
        out, _ = get_outputs()
        out.write(f"gateway  {_describe_gateway(found.gateway)}\n")
        out.write(f"service  {_describe_service(found, manager)}\n")
    ctx.exit(0 if found.gateway.ready else 1)


def _describe_gateway(state: GatewayState) -> str:
    if state.address is None:
        return "does not run"
    since = f" since {state.address.started_at}" if state.address.started_at else ""
    answers = "ready" if state.ready else "not ready"
    return f"{answers} at {state.address.url}, process {state.address.pid}{since}"


def _describe_service(found: ServiceStatus, manager: ServiceManager) -> str:
    if found.file is None:
        return "not installed (clew service install)"
    if found.foreign:
        return f"{found.file} is not of this home"
    if found.managed is None:
        return f"{found.file}, but {manager.kind} does not run here"
    state = found.managed
    starts = "starts with the machine" if state.enabled else "does not start by itself"
    restarts = f", {state.restarts} restarts" if state.restarts else ""
    ends = ", ends when you log out" if state.lingers is False else ""
    return f"{manager.kind}: {state.state} ({state.detail}), {starts}{restarts}{ends}"


def _status_json(found: ServiceStatus, manager: ServiceManager) -> dict[str, object]:
    address, managed = found.gateway.address, found.managed
    return {
        "gateway": {
            "running": found.gateway.running,
            "ready": found.gateway.ready,
            "url": None if address is None else address.url,
            "pid": None if address is None else address.pid,
            "since": None if address is None else address.started_at,
            "version": None if address is None else address.version,
        },
        "service": {
            "manager": manager.kind,
            "installed": found.file is not None and not found.foreign,
            "file": None if found.file is None else str(found.file),
            "state": None if managed is None else managed.state,
            "detail": None if managed is None else managed.detail,
            "enabled": None if managed is None else managed.enabled,
            "pid": None if managed is None else managed.pid,
            "restarts": None if managed is None else managed.restarts,
            "linger": None if managed is None else managed.lingers,
        },
    }


@service.command(
    epilog=format_examples("clew service uninstall", "clew service uninstall --dry-run")
)
@_service_options
@click.option("--dry-run", is_flag=True, help="Print what would be removed, and do nothing.")
@json_option
@pass_cli_context
def uninstall(
    program: CliContext, *, name: str, system: bool, dry_run: bool, as_json: bool
) -> None:
    """Stop the service and remove its file; settings and conversations stay."""
    home = find_home(program.home, os.environ)
    if dry_run:
        file = read_service_status(find_manager(system=system), name, home).file
    else:
        file = uninstall_service(require_manager(system=system), name, home)
    if as_json:
        print_json({"file": None if file is None else str(file), "home": str(home)})
        return
    _print_removal(file, home, would=dry_run)


def _print_removal(file: Path | None, home: Path, *, would: bool) -> None:
    out, _ = get_outputs()
    if file is None:
        out.write("not installed\n")
    else:
        out.write(f"{'would remove' if would else 'removed'}: {file}\n")
    out.write(f"kept: {home}\n")
