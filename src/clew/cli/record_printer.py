"""Output of stored records for people, and access to the configured store."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

from clew.cli.logs import logs_to_stderr
from clew.cli.output import format_table, to_single_line
from clew.config import ensure_home
from clew.core.context_view import SUMMARY
from clew.core.entry import EntryKind, Role
from clew.core.route import LOCAL, Route
from clew.core.session_base import EntryRange
from clew.engine.queries import ConversationQueries
from clew.errors import NotFound, UsageError
from clew.plugin.loading import get_features
from clew.store.opening import open_store
from clew.wire import serializers

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence
    from datetime import datetime

    from clew.cli.output import Output
    from clew.config import Settings
    from clew.core.context_view import CompactionPreview, ContextView
    from clew.core.entry import Entry
    from clew.core.ids import ConversationId
    from clew.core.session import Session
    from clew.core.session_base import BaseItem
    from clew.engine.queries import ConversationView
    from clew.store.contract import Store
    from clew.store.search import SearchHit
    from clew.store.transactions.usage import TokenUsage

ROLE_LABELS: Final = {Role.USER: "you", Role.ASSISTANT: "agent", Role.TOOL: "tool"}
_ROLE_LABELS_BY_NAME: Final = {role.value: who for role, who in ROLE_LABELS.items()} | {
    SUMMARY: SUMMARY
}
#: Characters; a tool result may be a whole file.
_TOOL_RESULT_WIDTH: Final = 300


@asynccontextmanager
async def open_configured_store(settings: Settings) -> AsyncGenerator[Store]:
    """Open the configured store, without an engine."""
    ensure_home(settings)
    # Standard output carries data only.
    features = get_features(settings).schemas
    with logs_to_stderr(settings):
        async with await open_store(
            settings.store.url, home=settings.home, features=features
        ) as store:
            yield store


@asynccontextmanager
async def open_queries(settings: Settings) -> AsyncGenerator[ConversationQueries]:
    """Open the queries on the configured store."""
    async with open_configured_store(settings) as store:
        yield ConversationQueries(store, undelete_for=settings.session.undelete)


async def resolve_conversation(records: ConversationQueries, name: str) -> ConversationId:
    """
    Return the conversation of a name or id.

    :raises UsageError: if there is none, with a hint
    """
    try:
        return await records.resolve_name(name)
    except NotFound as error:
        raise add_list_hint(error) from error


def add_list_hint(error: NotFound) -> UsageError:
    """Return the error with a hint to list the conversations."""
    return UsageError(f"{error}: `clew sessions list` shows what there is")


def conversation_json(view: ConversationView) -> dict[str, object]:
    """Return a conversation as JSON data."""
    return serializers.serialize_conversation(
        view.conversation,
        routes=view.routes,
        sessions=view.sessions,
        counts=view.counts,
        imported_from=view.imported_from,
    )


class RecordPrinter:
    """Printer of records for people."""

    def __init__(self, out: Output, notes: Output) -> None:
        self._out, self._notes = out, notes

    def print_conversations(self, views: Sequence[ConversationView]) -> None:
        if not views:
            self._notes.print_dim("no conversations yet: `clew chat` starts one")
            return
        rows = [
            (
                format_names(view) or "-",
                view.conversation.title or "-",
                str(view.conversation.last_seq),
                format_time(view.conversation.updated_at),
                view.conversation.id,
            )
            for view in views
        ]
        self._print_table(("NAME", "TITLE", "ENTRIES", "LAST USED", "ID"), rows)

    def print_hits(self, hits: Sequence[SearchHit], names_of: dict[ConversationId, str]) -> None:
        rows = [
            (
                format_time(hit.created_at),
                names_of[hit.conversation_id] or hit.title or hit.conversation_id,
                str(hit.seq),
                ROLE_LABELS[hit.role],
                hit.snippet,
            )
            for hit in hits
        ]
        if rows:
            self._print_table(("WHEN", "CONVERSATION", "SEQ", "WHO", "TEXT"), rows)
        else:
            self._notes.print_dim("nothing found")

    def print_cursor(self, cursor: str | None) -> None:
        """Print how to get the next page."""
        if cursor is not None:
            self._notes.print_dim(f"there are more: --cursor {cursor}")

    def print_conversation(self, view: ConversationView) -> None:
        """Print the header of a conversation."""
        found = view.conversation
        title = found.title or format_names(view) or found.id
        self._out.write(self._out.style_bold(to_single_line(title)) + "\n")
        self._print_field("id", found.id)
        self._print_field("routes", ", ".join(view.routes) or "none")
        self._print_field(
            "began", f"{format_time(found.created_at)}, last used {format_time(found.updated_at)}"
        )
        if found.origin is not None:
            self._print_field("from", f"{found.origin}, entry {found.origin_seq}")
        if view.imported_from is not None:
            self._print_field("imported", f"from {to_single_line(view.imported_from)}")
        self._print_field("usage", format_usage(view.usage))
        for session in view.sessions:
            self._print_field("session", format_session(session, view.counts.get(session.id, 0)))

    def _print_field(self, name: str, value: str) -> None:
        self._out.write(f"{self._out.style_dim(f'{name:<8}')} {value}\n")

    def print_entry(self, entry: Entry, *, trace: str | None = None) -> None:
        stamp = f"{format_time(entry.created_at)}  #{entry.seq}"
        stamp += "" if trace is None else f"  trace {trace}"
        if entry.kind is not EntryKind.MESSAGE or entry.role is None:
            self._out.write("\n" + self._out.style_dim(f"{stamp}  {entry.kind.value}: "))
            self._out.write(
                self._out.style_dim(to_single_line(entry.text, _TOOL_RESULT_WIDTH)) + "\n"
            )
            return
        who = "report" if entry.is_caused else ROLE_LABELS[entry.role]
        self._out.write(f"\n{self._out.style_bold(who)}  {self._out.style_dim(stamp)}\n")
        text = (
            to_single_line(entry.text, _TOOL_RESULT_WIDTH)
            if entry.role is Role.TOOL
            else entry.text
        )
        if text.strip():
            self._out.write(text.rstrip("\n") + "\n")
        elif entry.role is Role.ASSISTANT and not entry.calls:
            self._out.write(self._out.style_dim("(no answer)") + "\n")
        if entry.calls:
            calls = "a tool" if len(entry.calls) == 1 else f"{len(entry.calls)} tools"
            self._out.write(self._out.style_dim(f"(calls {calls})") + "\n")

    def print_context(self, view: ContextView) -> None:
        """Print the context that the model will receive, in full."""
        closed = (
            ""
            if view.session.is_open
            else ", closed: the next message opens a new session with this context"
        )
        count = f"{len(view.lines)} messages, about {view.tokens:,} tokens"
        self._out.write(self._out.style_bold(f"context of {view.conversation}") + f"  {count}\n")
        self._print_field("session", f"{view.session.id}  {view.session.opened_by}{closed}")
        self._print_field("base", ", ".join(map(_format_base_item, view.base)) or "empty")
        self._out.write("\n" + self._out.style_bold("instructions") + "\n")
        if view.instructions is None:
            remark = "(none yet: they are rendered with the first request)"
            self._out.write(self._out.style_dim(remark) + "\n")
        elif view.instructions.strip():
            self._out.write(view.instructions.rstrip("\n") + "\n")
        for line in view.lines:
            place = "in the base only" if line.seq is None else f"#{line.seq}"
            stamp = self._out.style_dim(f"{place}, about {line.tokens:,} tokens")
            self._out.write(f"\n{self._out.style_bold(_ROLE_LABELS_BY_NAME[line.role])}  {stamp}\n")
            if line.text.strip():
                self._out.write(line.text.rstrip("\n") + "\n")
            for call in line.calls:
                self._out.write(self._out.style_dim(f"(calls {call})") + "\n")

    def print_preview(self, value: CompactionPreview) -> None:
        """Print what a compaction would do."""
        if not value.replaced_lines:
            self._notes.print_dim(value.note)
            return
        gone = value.tokens_before - value.tokens_after
        self._out.write(
            f"{len(value.replaced_lines)} messages of about {gone:,} tokens would be summarised; "
            f"{len(value.kept_lines)} stay, about {value.tokens_after:,} tokens and the summary\n\n"
        )
        rows = [
            (
                "stays" if n in value.kept else "goes",
                str(line.seq or "-"),
                _ROLE_LABELS_BY_NAME[line.role],
                f"{line.tokens:,}",
                line.text,
            )
            for n, line in enumerate(value.lines)
        ]
        self._print_table(("WHAT", "SEQ", "WHO", "TOKENS", "TEXT"), rows)

    def _print_table(self, heads: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        first, *lines = format_table(heads, rows)
        self._out.write(self._out.style_dim(first) + "\n")
        for line in lines:
            self._out.write(line + "\n")


def _format_base_item(item: BaseItem) -> str:
    if isinstance(item, EntryRange):
        return f"#{item.first}" if item.first == item.last else f"#{item.first} to #{item.last}"
    return "an inline message"


def format_names(view: ConversationView) -> str:
    """Return the names of a conversation; routes of other fronts as they are."""
    return ", ".join(_short_name(key) for key in view.routes)


def _short_name(key: str) -> str:
    route = Route.parse(key)
    plain = route.platform == LOCAL and route.agent == "main"
    return route.chat if plain else key


def format_time(moment: datetime) -> str:
    """Format a time in local time."""
    return moment.astimezone().strftime("%Y-%m-%d %H:%M")


def format_usage(used: TokenUsage) -> str:
    cached = f" ({used.cached_tokens:,} cached)" if used.cached_tokens else ""
    cost = f", {used.cost_micros / 1e6:.4f} USD" if used.cost_micros is not None else ""
    return f"{used.input_tokens:,} tokens in{cached}, {used.output_tokens:,} out{cost}"


def format_session(session: Session, entries: int) -> str:
    """Format a session: how it was opened and ended."""
    end = "open"
    if session.ended_at is not None:
        end = f"ended {format_time(session.ended_at)} by {session.end_reason}"
    after = f" after {session.predecessor}" if session.predecessor else ""
    return f"{session.id}  {session.opened_by}{after}, {entries} entries, {end}"
