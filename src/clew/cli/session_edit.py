"""``clew sessions branch|rewind|compact``: change the context of a conversation."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final

import click

from clew.cli.common import CliContext, format_examples, json_option, pass_cli_context, print_json
from clew.cli.output import get_outputs
from clew.cli.record_printer import RecordPrinter, conversation_json, resolve_conversation
from clew.errors import ClewError, UsageError
from clew.wire import serializers

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Coroutine

    from clew.config import Settings
    from clew.core.ids import ConversationId
    from clew.core.inbox import AcceptResult
    from clew.core.route import Route
    from clew.engine.engine import Engine

NAME_ARGUMENT: Final = click.argument("name", metavar="NAME|ID")


@asynccontextmanager
async def open_engine(settings: Settings) -> AsyncGenerator[Engine]:
    """Open an engine that runs only the work that this command submits."""
    # Only these commands need an engine, which takes a second to import.
    from clew.runtime import open_application  # noqa: PLC0415

    async with open_application(settings, role="sessions", own_only=True) as product:
        yield product.engine


def run_job(settings: Settings, job: Coroutine[Any, Any, None]) -> None:
    """Run a job that needs an engine to its end."""
    from clew.cli.logs import logs_to_file  # noqa: PLC0415  (as above)

    with logs_to_file(settings):
        asyncio.run(job)


@click.command(
    epilog=format_examples(
        "clew sessions branch main --as other-way", "clew sessions branch main --at 12"
    )
)
@NAME_ARGUMENT
@click.option("--at", type=click.IntRange(min=0), help="Copy only up to this entry.", metavar="SEQ")
@click.option("--title", metavar="TEXT", help="The copy's title.")
@click.option("--as", "new_name", metavar="NAME", help="A name for the copy.")
@json_option
@pass_cli_context
def branch(
    program: CliContext,
    *,
    name: str,
    at: int | None,
    title: str | None,
    new_name: str | None,
    as_json: bool,
) -> None:
    """Copy a conversation's context into a new one, which goes its own way."""
    settings = program.load_settings()

    async def create_branch() -> None:
        async with open_engine(settings) as engine:
            route = None if new_name is None else _parse_route(engine, new_name)
            source = await resolve_conversation(engine, name)
            copy = await engine.sessions.branch_conversation(
                source, at=at, title=title, route=route
            )
            led = "" if new_name is None else f", which the name {new_name} leads to now"
            told = f"The copy is {copy}{led}."
            await _print_conversation(engine, copy, told, as_json=as_json)

    run_job(settings, create_branch())


def _parse_route(engine: Engine, name: str) -> Route:
    route = engine.parse_target(name)
    if isinstance(route, str):
        raise UsageError(f"{name!r} is an id: give a NAME for the copy")
    return route


async def _print_conversation(
    engine: Engine, conversation: ConversationId, told: str, *, as_json: bool
) -> None:
    view = await engine.get_view(conversation)
    if as_json:
        print_json(conversation_json(view))
    else:
        click.echo(told)


@click.command(epilog=format_examples("clew sessions rewind main 12"))
@NAME_ARGUMENT
@click.argument("seq", type=click.IntRange(min=0))
@json_option
@pass_cli_context
def rewind(program: CliContext, name: str, seq: int, as_json: bool) -> None:
    """
    Go back to right after entry SEQ, or to the beginning with 0.

    The log keeps what came after it; the model does not see it any more.
    """
    settings = program.load_settings()

    async def rewind_conversation() -> None:
        async with open_engine(settings) as engine:
            conversation = await resolve_conversation(engine, name)
            await _wait_executed(engine, await engine.sessions.queue_rewind(conversation, to=seq))
            where = f"right after entry {seq}" if seq else "the beginning"
            told = f"{conversation} is back at {where}; the log keeps what came after it."
            await _print_conversation(engine, conversation, told, as_json=as_json)

    run_job(settings, rewind_conversation())


async def _wait_executed(engine: Engine, filed: AcceptResult) -> str:
    """
    Wait until the queued command was executed, and return its note.

    :raises UsageError: if it could not be executed
    """
    from clew.commands.registry import get_execution_note  # noqa: PLC0415  (as above)

    if await engine.get_unfinished_turn(filed.conversation_id) is not None:
        get_outputs()[1].print_dim(
            "waiting for the running turn; Ctrl-C does not cancel the command"
        )
    return get_execution_note(await engine.wait_for_input(filed))


@click.command(
    epilog=format_examples(
        "clew sessions compact main --dry-run",
        'clew sessions compact main --focus "the travel dates"',
        "clew sessions compact main --undo",
    )
)
@NAME_ARGUMENT
@click.option("--focus", metavar="TEXT", help="The subject on which the summary should focus.")
@click.option(
    "--dry-run", is_flag=True, help="Only show what would be summarised and what would stay."
)
@click.option("--undo", is_flag=True, help="Undo the last compaction.")
@json_option
@pass_cli_context
def compact(
    program: CliContext, *, name: str, focus: str | None, dry_run: bool, undo: bool, as_json: bool
) -> None:
    """
    Have a summary take the place of what is old, to make room.

    The log keeps everything; only what the model is sent becomes shorter.
    """
    if undo and (dry_run or focus is not None):
        raise UsageError("--undo goes with neither --dry-run nor --focus")
    settings = program.load_settings()

    async def run_compaction() -> None:
        async with open_engine(settings) as engine:
            conversation = await resolve_conversation(engine, name)
            if undo:
                await _wait_executed(engine, await engine.sessions.queue_restore(conversation))
                told = f"The last compaction of {conversation} is undone."
                await _print_conversation(engine, conversation, told, as_json=as_json)
            elif dry_run:
                await _print_preview(engine, conversation, as_json=as_json)
            else:
                await _compact_and_print(engine, conversation, focus, as_json=as_json)

    run_job(settings, run_compaction())


async def _print_preview(engine: Engine, conversation: ConversationId, *, as_json: bool) -> None:
    preview = await engine.sessions.preview_compaction(conversation)
    if as_json:
        print_json(serializers.serialize_preview(preview))
    else:
        RecordPrinter(*get_outputs()).print_preview(preview)


async def _compact_and_print(
    engine: Engine, conversation: ConversationId, focus: str | None, *, as_json: bool
) -> None:
    from clew.engine.queued_commands import parse_compaction_note  # noqa: PLC0415  (as above)

    done = parse_compaction_note(
        await _wait_executed(
            engine, await engine.sessions.queue_compaction(conversation, focus=focus)
        )
    )
    if done.busy or done.failed:
        raise ClewError(done.note)
    if as_json:
        print_json(
            serializers.serialize_compaction(done, session=done.session_id, moved=done.moved)
        )
    else:
        click.echo(done.outcome_text)
