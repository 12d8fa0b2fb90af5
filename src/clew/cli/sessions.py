"""``clew sessions``: list, search, rename and delete conversations."""

from __future__ import annotations

import asyncio
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from clew.cli.common import (
    CliContext,
    FullHelpGroup,
    cursor_option,
    format_examples,
    json_option,
    limit_option,
    pass_cli_context,
    print_json,
)
from clew.cli.output import get_outputs, to_single_line
from clew.cli.progress import StatusLine
from clew.cli.record_printer import (
    RecordPrinter,
    conversation_json,
    format_names,
    format_time,
    open_queries,
    resolve_conversation,
)
from clew.cli.session_edit import NAME_ARGUMENT, branch, compact, rewind
from clew.cli.session_export import export
from clew.cli.session_file import file
from clew.cli.session_import import import_sessions
from clew.cli.session_replay import replay
from clew.cli.session_verify import verify
from clew.core.ids import ConversationId
from clew.errors import NotFound, SearchNotReady, UsageError
from clew.record import Record
from clew.wire import serializers

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from clew.core.entry import Entry
    from clew.core.ids import TurnId
    from clew.engine.queries import ConversationQueries, ConversationView
    from clew.store.search import SearchHit, SearchPage
    from clew.store.transactions.undelete import DeletedConversation


def _run_job(program: CliContext, job: Callable[[ConversationQueries], Awaitable[None]]) -> None:
    async def open_and_run() -> None:
        async with open_queries(program.load_settings()) as records:
            await job(records)

    asyncio.run(open_and_run())


@click.group(
    cls=FullHelpGroup, epilog=format_examples("clew sessions list", "clew sessions show main")
)
def sessions() -> None:
    """List, search and change conversations."""


@sessions.command(
    "list", epilog=format_examples("clew sessions list", "clew sessions list --title trip")
)
@click.option(
    "--title", default="", metavar="TEXT", help="Only conversations with this text in their title."
)
@click.option("--all", "adhoc", is_flag=True, help="Include the ad hoc conversations of clients.")
@limit_option(50)
@cursor_option
@json_option
@pass_cli_context
def list_conversations(
    program: CliContext, *, title: str, adhoc: bool, limit: int, cursor: str | None, as_json: bool
) -> None:
    """List conversations, the last used first."""

    async def print_list(records: ConversationQueries) -> None:
        page = await records.list_views(title=title, cursor=cursor, limit=limit, adhoc=adhoc)
        if as_json:
            print_json(
                serializers.serialize_page(
                    [conversation_json(view) for view in page.items], page.next
                )
            )
            return
        reader = RecordPrinter(*get_outputs())
        reader.print_conversations(page.items)
        reader.print_cursor(page.next)

    _run_job(program, print_list)


@sessions.command(
    epilog=format_examples(
        "clew sessions show main",
        "clew sessions show main --cursor 0 --json",
        "clew sessions show main --context",
    )
)
@NAME_ARGUMENT
@limit_option(50)
@click.option("--cursor", type=click.IntRange(min=0), help="Start after this entry.")
@click.option(
    "--context", is_flag=True, help="Show the next request to the model instead, in full."
)
@json_option
@pass_cli_context
def show(
    program: CliContext, *, name: str, limit: int, cursor: int | None, context: bool, as_json: bool
) -> None:
    """
    Print a conversation: its sessions, what it used, and its newest entries.

    With --cursor 0 it begins with the first entry.
    """

    async def print_entries(records: ConversationQueries) -> None:
        if context:
            await _print_context(records, name, as_json=as_json)
            return
        view = await records.get_view(await resolve_conversation(records, name))
        last = view.conversation.last_seq
        after = max(0, last - limit) if cursor is None else cursor
        entries = await records.read_entries(view.conversation.id, after=after, limit=limit)
        more = str(entries[-1].seq) if entries and entries[-1].seq < last else None
        traces = await records.read_traces(view.conversation.id, first=after + 1, last=last)
        if as_json:
            page = serializers.serialize_page(
                [serializers.serialize_entry(entry) for entry in entries], more
            )
            print_json(
                {
                    "conversation": conversation_json(view),
                    **page,
                    "usage": asdict(view.usage),
                    **({"traces": traces} if traces else {}),
                }
            )
            return
        before = after if cursor is None else 0
        _print_conversation(view, entries, traces, before=before, more=more)

    _run_job(program, print_entries)


async def _print_context(records: ConversationQueries, name: str, *, as_json: bool) -> None:
    view = await records.inspect_context(await resolve_conversation(records, name))
    if as_json:
        print_json(serializers.serialize_context(view))
    else:
        RecordPrinter(*get_outputs()).print_context(view)


def _print_conversation(
    view: ConversationView,
    entries: Sequence[Entry],
    traces: Mapping[TurnId, str],
    *,
    before: int,
    more: str | None,
) -> None:
    out, notes = get_outputs()
    reader = RecordPrinter(out, notes)
    reader.print_conversation(view)
    if before:
        notes.print_dim(f"\n{before} entries before these: --cursor 0 begins with the first")
    shown: TurnId | None = None
    for entry in entries:
        is_first, shown = entry.turn_id != shown, entry.turn_id
        trace = traces.get(entry.turn_id) if is_first and entry.turn_id is not None else None
        reader.print_entry(entry, trace=trace)
    reader.print_cursor(more)


@sessions.command(
    epilog=format_examples("clew sessions search invoice", 'clew sessions search "to do"')
)
@click.argument("query", nargs=-1, required=True)
@limit_option(20)
@cursor_option
@json_option
@pass_cli_context
def search(
    program: CliContext, query: Sequence[str], limit: int, cursor: str | None, as_json: bool
) -> None:
    """Find messages with all words of QUERY, newest first; quotes keep words side by side."""

    async def print_hits(records: ConversationQueries) -> None:
        found = await _search_messages(records, _join_query(query), cursor=cursor, limit=limit)
        if as_json:
            print_json(
                serializers.serialize_page([_hit_json(hit) for hit in found.items], found.next)
            )
            return
        named: dict[ConversationId, str] = {}
        for hit in found.items:
            if hit.conversation_id not in named:
                named[hit.conversation_id] = await _find_names(records, hit.conversation_id)
        reader = RecordPrinter(*get_outputs())
        reader.print_hits(found.items, named)
        reader.print_cursor(found.next)

    _run_job(program, print_hits)


async def _search_messages(
    records: ConversationQueries, query: str, *, cursor: str | None, limit: int
) -> SearchPage:
    try:
        return await records.search_messages(query, cursor=cursor, limit=limit)
    except SearchNotReady:
        # If only commands open the store, no other process updates the index.
        progress = StatusLine(get_outputs()[1])
        progress.show_activity("updating the search index")
        await records.update_search_index()
        progress.clear_line()
        return await records.search_messages(query, cursor=cursor, limit=limit)


def _join_query(words: Sequence[str]) -> str:
    """Join the words to one query; words quoted in the shell stay a phrase."""
    return " ".join(f'"{word}"' if " " in word and '"' not in word else word for word in words)


async def _find_names(records: ConversationQueries, conversation: ConversationId) -> str:
    try:
        return format_names(await records.get_view(conversation))
    except NotFound:  # it was deleted since
        return ""


def _hit_json(hit: SearchHit) -> dict[str, object]:
    return {
        "conversation": hit.conversation_id,
        "seq": hit.seq,
        "role": hit.role.value,
        "title": hit.title,
        "snippet": hit.snippet,
        "created_at": serializers.format_timestamp(hit.created_at),
    }


@sessions.command(
    epilog=format_examples("clew sessions new", 'clew sessions new work --title "Plans"')
)
@click.argument("name", default="main")
@click.option("--title", metavar="TEXT", help="The new conversation's title.")
@json_option
@pass_cli_context
def new(program: CliContext, name: str, title: str | None, as_json: bool) -> None:
    """
    Begin a new conversation under NAME (default: main).

    The one that NAME meant until now stays, and is reached by its id.
    """
    from clew.cli.new_conversation import start_new_conversation  # noqa: PLC0415  (needs an engine; the other commands do not)

    view = start_new_conversation(program.load_settings(), name, title)
    if as_json:
        print_json(conversation_json(view))
    else:
        click.echo(view.conversation.id)


@sessions.command(epilog=format_examples('clew sessions rename main "Holiday plans"'))
@NAME_ARGUMENT
@click.argument("title")
@json_option
@pass_cli_context
def rename(program: CliContext, name: str, title: str, as_json: bool) -> None:
    """Give a conversation a TITLE; an empty one takes it away."""

    async def rename_conversation(records: ConversationQueries) -> None:
        conversation = await resolve_conversation(records, name)
        await records.rename_conversation(conversation, title or None)
        view = await records.get_view(conversation)
        if as_json:
            print_json(conversation_json(view))
        else:
            click.echo(
                f"{view.conversation.id}  {to_single_line(view.conversation.title or '-', 200)}"
            )

    _run_job(program, rename_conversation)


@sessions.command(
    epilog=format_examples("clew sessions delete work", "clew sessions delete work --yes")
)
@NAME_ARGUMENT
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@click.option("--now", "at_once", is_flag=True, help="Remove it at once: it cannot be undeleted.")
@json_option
@pass_cli_context
def delete(program: CliContext, *, name: str, yes: bool, at_once: bool, as_json: bool) -> None:
    """Delete a conversation; `clew sessions undelete` brings it back for 10 minutes."""

    async def confirm_and_delete(records: ConversationQueries) -> None:
        found = await _find_deletion_target(records, name, at_once=at_once)
        if not yes:
            _confirm_deletion(found, at_once=at_once)
        until = await records.delete_conversation(found.id, at_once=at_once)
        if as_json:
            print_json(
                {"deleted": found.id, "undo_until": until and serializers.format_timestamp(until)}
            )
        elif until is None:
            click.echo(f"deleted {found.id}")
        else:
            click.echo(f"deleted {found.id}")
            note = f"to restore it until {format_time(until)}: clew sessions undelete {found.id}"
            click.echo(note, err=True)

    _run_job(program, confirm_and_delete)


class _DeletionTarget(Record, dict=True):
    """The conversation to delete."""

    id: ConversationId
    name: str
    entries: int


async def _find_deletion_target(
    records: ConversationQueries, name: str, *, at_once: bool
) -> _DeletionTarget:
    """Find a conversation by name; for a permanent delete, also one deleted before."""
    gone = [each for each in await records.list_deleted() if at_once and each.id == name]
    if gone:
        return _DeletionTarget(id=gone[0].id, name=gone[0].title or name, entries=gone[0].entries)
    view = await records.get_view(await resolve_conversation(records, name))
    found = view.conversation
    title = found.title or format_names(view) or found.id
    return _DeletionTarget(id=found.id, name=title, entries=found.last_seq)


def _confirm_deletion(found: _DeletionTarget, *, at_once: bool) -> None:
    """
    Ask for confirmation.

    :raises click.Abort: if the user declines
    """
    if not sys.stdin.isatty():
        raise UsageError(
            "deleting needs a confirmation, and there is no terminal to ask on: add --yes"
        )
    how = ", for good" if at_once else ""
    question = f"Delete {to_single_line(found.name)!r} with its {found.entries} entries{how}?"
    click.confirm(question, abort=True, err=True)


@sessions.command(epilog=format_examples("clew sessions undelete", "clew sessions undelete cnv_…"))
@click.argument("conversation", required=False, metavar="[ID]")
@json_option
@pass_cli_context
def undelete(program: CliContext, conversation: str | None, as_json: bool) -> None:
    """Bring a deleted conversation back; without an ID, list those that can be."""

    async def restore_or_list(records: ConversationQueries) -> None:
        if conversation is not None:
            await _undelete_conversation(records, ConversationId(conversation), as_json=as_json)
            return
        found = await records.list_deleted()
        if as_json:
            items = [_deleted_json(each) for each in found]
            print_json({"items": items, "next": None})
            return
        if not found:
            click.echo("No deleted conversation can be restored.", err=True)
        for each in found:
            title = to_single_line(each.title or "-", 60)
            click.echo(
                f"{each.id}  {title}  ({each.entries} entries, until "
                f"{format_time(each.undo_until)})"
            )

    _run_job(program, restore_or_list)


async def _undelete_conversation(
    records: ConversationQueries, conversation: ConversationId, *, as_json: bool
) -> None:
    try:
        await records.undelete_conversation(conversation)
    except NotFound as error:
        raise UsageError(f"{error}: `clew sessions undelete` lists those that can be") from error
    view = await records.get_view(conversation)
    if as_json:
        print_json(conversation_json(view))
    else:
        click.echo(f"{conversation}  {to_single_line(view.conversation.title or '-', 200)}")


def _deleted_json(found: DeletedConversation) -> dict[str, object]:
    return {
        "id": found.id,
        "title": found.title,
        "entries": found.entries,
        "deleted_at": serializers.format_timestamp(found.deleted_at),
        "undo_until": serializers.format_timestamp(found.undo_until),
    }


for _command in (branch, rewind, compact, export, file, import_sessions, verify, replay):
    sessions.add_command(_command)
