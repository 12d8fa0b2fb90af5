"""``clew sessions file``: save a file of a conversation."""

from __future__ import annotations

import asyncio
from pathlib import Path

import click

from clew.cli.common import CliContext, format_examples, pass_cli_context
from clew.cli.record_printer import open_queries, resolve_conversation
from clew.cli.session_edit import NAME_ARGUMENT
from clew.core.byte_size import format_size
from clew.errors import NotFound, UsageError


@click.command(
    epilog=format_examples(
        "clew sessions file main att_01a2302c7bd489c5e4c339b674",
        "clew sessions file main att_01a2302c7bd489c5e4c339b674 --to chart.png",
    )
)
@NAME_ARGUMENT
@click.argument("file")
@click.option(
    "--to", type=click.Path(path_type=Path), help="Where to save it: by default under its own name."
)
@pass_cli_context
def file(program: CliContext, *, name: str, file: str, to: Path | None) -> None:
    """
    Save a file that a conversation sent or got.

    FILE is its id, as the chat and the entries show it. A file that exists is not overwritten.
    """
    asyncio.run(_save(program, name, file, to))


async def _save(program: CliContext, name: str, id: str, to: Path | None) -> None:
    async with open_queries(program.load_settings()) as records:
        found = await records.find_file(await resolve_conversation(records, name), id)
    if found is None:
        raise NotFound("file", id)
    path = Path(Path(found.name).name) if to is None else to
    try:
        with path.open("xb") as out:
            out.write(found.content)
    except FileExistsError:
        raise UsageError(f"{path} exists: name another place with --to") from None
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror}") from None
    click.echo(f"{path} ({format_size(len(found.content))})")
