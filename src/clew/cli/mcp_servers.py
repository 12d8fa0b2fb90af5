"""``clew mcp add|list|test|remove``: the MCP servers that the agent uses."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from clew.cli import mcp_settings
from clew.cli.common import (
    CliContext,
    format_examples,
    json_option,
    pass_cli_context,
    print_json,
)
from clew.cli.feature_records import print_table, run_with_store
from clew.cli.logs import suppress_logs
from clew.cli.output import get_outputs
from clew.config import ensure_home, find_home
from clew.errors import UsageError
from clew.features.mcp.importing import ServerEntry, read_secret, read_servers
from clew.features.mcp.settings import (
    NAME_PATTERN,
    SERVER_LEVELS,
    TRUST,
    get_servers,
    pick_server,
)
from clew.record import replace

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from clew.config import Settings
    from clew.features.mcp.importing import ReadServers
    from clew.store.contract import Store

_FEATURE: Final = "mcp"
#: Characters of what a server says about itself.
_MAX_INSTRUCTIONS: Final = 2_000


@click.command(
    epilog=format_examples(
        "clew mcp add files --readable ~/notes -- /usr/bin/mcp-files ~/notes",
        "clew mcp add github --url https://example.org/mcp --header 'Authorization=${GITHUB_AUTH}'",
        "clew mcp add --from ~/.cursor/mcp.json",
    )
)
@click.argument("name", required=False)
@click.argument("command", nargs=-1)
@click.option("--url", help="The address of a server that talks over HTTP.")
@click.option(
    "--from",
    "file",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    metavar="FILE",
    help="Read the servers of another program, or the one called NAME.",
)
@click.option(
    "--env",
    "env",
    multiple=True,
    metavar="NAME=VALUE",
    help="A variable of the command; ${OTHER} is read when it starts. May be repeated.",
)
@click.option(
    "--header",
    "headers",
    multiple=True,
    metavar="NAME=VALUE",
    help="A header for the address, as --env. May be repeated.",
)
@click.option("--level", type=click.Choice(SERVER_LEVELS), help="The sandbox level of the command.")
@click.option(
    "--readable",
    multiple=True,
    metavar="PATH",
    help="A file or folder that the command may read. May be repeated.",
)
@click.option("--trust", type=click.Choice(TRUST), help="What its word about its tools counts for.")
@click.option(
    "--tool",
    "tools",
    multiple=True,
    metavar="PATTERN",
    help="Use only tools of this name, such as get_*. May be repeated.",
)
@json_option
@pass_cli_context
def add(
    program: CliContext, *, name: str | None, file: Path | None, as_json: bool, **given: Any
) -> None:
    """
    Add MCP servers to config.toml, and show what they offer.

    Secrets go into files of their own, which only you can read. A server that does not answer is
    added nevertheless.
    """  # fmt: skip
    found = None if file is None else _leave_out_known(_read_file(file, name), program)
    entries = [_make_entry(name, given)] if found is None else found.servers
    more = _make_options(given)
    if not entries:
        raise UsageError("; ".join(found.remarks if found else ()) or "there is no server to add")
    wanted = [replace(one, values={**one.values, **_fit(one, more)}) for one in entries]
    home = program.load_settings()
    ensure_home(home)
    settings = mcp_settings.add_servers(home.home, wanted, program.read_settings)
    tried = _try(program, settings, [one.name for one in wanted])
    _print_tried(tried, found, as_json=as_json)


def _make_entry(name: str | None, given: Mapping[str, Any]) -> ServerEntry:
    if name is None:
        raise UsageError("name the server, or a file with --from")
    if not NAME_PATTERN.fullmatch(name):
        raise UsageError(f"{name!r}: the name of a server has a-z, 0-9, - and _, at most 40")
    if bool(given["command"]) == (given["url"] is not None):
        raise UsageError("name either a command after -- or an address with --url")
    place: dict[str, object] = (
        {"url": given["url"]} if given["url"] else {"command": [*given["command"]]}
    )
    return ServerEntry(
        name=name,
        values=place,
        env=dict(_parse_pair(pair, "--env") for pair in given["env"]),
        headers=dict(_parse_pair(pair, "--header") for pair in given["headers"]),
    )


def _parse_pair(pair: str, option: str) -> tuple[str, Any]:
    name, equals, value = pair.partition("=")
    if not equals or not name.strip():
        raise UsageError(f"{option} has the form NAME=VALUE")
    return name.strip(), read_secret(name.strip(), value, is_header=option == "--header")


def _read_file(file: Path, name: str | None) -> ReadServers:
    found = read_servers(file.expanduser().read_text(encoding="utf-8-sig"))
    if name is None:
        return found
    chosen = [one for one in found.servers if one.name == name.lower()]
    if not chosen:
        known = ", ".join(one.name for one in found.servers) or "none"
        raise UsageError(f"{file} has no server {name!r} that can be taken; it has {known}")
    about = [one for one in found.remarks if one.lower().startswith(name.lower())]
    return replace(found, servers=chosen, remarks=about)


def _leave_out_known(found: ReadServers, program: CliContext) -> ReadServers:
    known = get_servers(program.load_settings())
    left_out = [f"{one.name}: it is there already" for one in found.servers if one.name in known]
    servers = [one for one in found.servers if one.name not in known]
    return replace(found, servers=servers, remarks=[*found.remarks, *left_out])


def _make_options(given: Mapping[str, Any]) -> dict[str, object]:
    options = {
        "level": given["level"],
        "readable": [*given["readable"]],
        "trust": given["trust"],
        "tools": [*given["tools"]],
    }
    return {name: value for name, value in options.items() if value}


def _fit(entry: ServerEntry, options: Mapping[str, object]) -> dict[str, object]:
    """Return the options that a server can have: a level and files are for commands."""
    is_command = "command" in entry.values
    return {
        name: value
        for name, value in options.items()
        if is_command or name not in {"level", "readable"}
    }


def _try(program: CliContext, settings: Settings, names: Sequence[str]) -> list[dict[str, Any]]:
    """Connect to servers, all at once; what they offer, or why they do not answer."""
    from clew.features.mcp import trying  # noqa: PLC0415  (heavy: help needs none of it)

    servers = {name: server for name, server in get_servers(settings).items() if name in names}

    async def try_all(settings: Settings, store: Store | None) -> list[dict[str, Any]]:
        tries = (
            trying.describe_server(name, servers[name], settings, store if has_login else None)
            for name in names
            for has_login in [servers[name].auth == "oauth"]
        )
        return await asyncio.gather(*tries)

    if any(server.auth == "oauth" for server in servers.values()):
        return run_with_store(program, _FEATURE, try_all)
    with suppress_logs(settings):
        return asyncio.run(try_all(settings, None))


def _print_tried(
    tried: Sequence[Mapping[str, Any]], found: ReadServers | None = None, *, as_json: bool
) -> None:
    remarks = [] if found is None else [*found.remarks]
    if as_json:
        print_json({"items": tried, "remarks": remarks})
        return
    out, notes = get_outputs()
    for one in tried:
        _print_server(one)
    for remark in remarks:
        notes.print_dim(remark)
    out.raise_if_closed()


def _print_server(one: Mapping[str, Any]) -> None:
    out, _ = get_outputs()
    if one["why"] is not None:
        out.write(f"{one['name']} does not answer: {one['why']}\n")
        return
    out.write(f"{one['name']} is up: {len(one['tools'])} tools\n")
    for tool in one["tools"]:
        out.write(f"- {tool['name']} ({tool['effect']}): {tool['description'][:120]}\n")
    if one["instructions"]:
        out.write(f"It says about itself:\n{one['instructions'][:_MAX_INSTRUCTIONS]}\n")


@click.command("list", epilog=format_examples("clew mcp list", "clew mcp list --json"))
@json_option
@pass_cli_context
def list_servers(program: CliContext, *, as_json: bool) -> None:
    """List the MCP servers, with their state if the gateway runs."""
    settings = program.load_settings()
    items = asyncio.run(_ask_gateway(settings))
    if items is None:
        items = _list_known(program)
    if as_json:
        print_json({"items": items})
        return
    rows = [
        (one["name"], one["state"], str(one["tools"]), one["place"], one["why"] or "")
        for one in items
    ]
    print_table(("NAME", "STATE", "TOOLS", "PLACE", "WHY"), rows, none="no MCP servers yet")


async def _ask_gateway(settings: Settings) -> list[dict[str, Any]] | None:
    """Return the servers as the running gateway has them; ``None`` if none runs."""
    from clew.cli.gateway_client import GatewayClient, is_server_running  # noqa: PLC0415  (heavy)

    if not await is_server_running(settings):
        return None
    async with GatewayClient.connected(settings) as client:
        return (await client.call("mcp.list", {}))["items"]


def _list_known(program: CliContext) -> list[dict[str, Any]]:
    from clew.features.mcp.definitions import list_tools  # noqa: PLC0415  (as above)

    async def read(settings: Settings, store: Store) -> list[dict[str, Any]]:
        servers = get_servers(settings)
        tools = [one.server for one in await store.read(list_tools, [*servers])]
        return [
            {
                "name": name,
                "place": server.place,
                "state": "off",
                "why": "the gateway does not run",
                "tools": tools.count(name),
            }
            for name, server in servers.items()
        ]

    return run_with_store(program, _FEATURE, read)


@click.command("test", epilog=format_examples("clew mcp test files", "clew mcp test files --json"))
@click.argument("name")
@json_option
@pass_cli_context
@click.pass_context
def test_server(ctx: click.Context, program: CliContext, *, name: str, as_json: bool) -> None:
    """Connect to an MCP server, and list its tools. Ends with 1 if it does not answer."""
    settings = program.load_settings()
    pick_server(get_servers(settings), name)
    (tried,) = _try(program, settings, [name])
    if as_json:
        print_json(tried)
    else:
        _print_server(tried)
    ctx.exit(0 if tried["why"] is None else 1)


@click.command("remove", epilog=format_examples("clew mcp remove files"))
@click.argument("name")
@json_option
@pass_cli_context
def remove_server(program: CliContext, *, name: str, as_json: bool) -> None:
    """Remove an MCP server from config.toml, with its secrets and what is known of its tools."""
    from clew.features.mcp.definitions import replace_tools  # noqa: PLC0415  (as above)

    home = find_home(program.home, os.environ)
    mcp_settings.remove_server(home, name, program.read_settings)

    async def forget_tools(_: Settings, store: Store) -> None:
        await store.write(replace_tools, name, [])

    run_with_store(program, _FEATURE, forget_tools)
    if as_json:
        print_json({"name": name, "state": "removed"})
        return
    get_outputs()[0].write(
        f"{name} is removed; a gateway that runs still has it until it restarts\n"
    )
