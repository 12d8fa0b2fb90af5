"""Records as people read them."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

from clew.cli.logs import logs_to_stderr
from clew.cli.terminal import one_line, table
from clew.config import ensure_home
from clew.core.base import EntryRange
from clew.core.context import SUMMARY
from clew.core.entry import EntryKind, Role
from clew.core.route import LOCAL, Route
from clew.engine.records import ConversationQueries
from clew.errors import NotFound, UsageError
from clew.store.opening import open_store
from clew.wire import shapes

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence
    from datetime import datetime

    from clew.cli.terminal import Output
    from clew.config import Settings
    from clew.core.base import BaseItem
    from clew.core.context import CompactionPreview, ContextView
    from clew.core.entry import Entry
    from clew.core.ids import ConversationId
    from clew.core.session import Session
    from clew.engine.records import ConversationView
    from clew.store.contract import Store
    from clew.store.search import SearchHit
    from clew.store.transactions.usage import TokenUsage

WHO: Final = {Role.USER: "you", Role.ASSISTANT: "agent", Role.TOOL: "tool"}
_SPEAKERS: Final = {role.value: who for role, who in WHO.items()} | {SUMMARY: SUMMARY}
#: What a tool answered may be a whole file.
_TOOL_WIDTH: Final = 300


@asynccontextmanager
async def open_stored(settings: Settings) -> AsyncGenerator[Store]:
    """The settings' store, without an engine that works on it."""
    ensure_home(settings)
    # Nothing but data may stand on standard output.
    with logs_to_stderr(settings):
        async with await open_store(settings.store.url, home=settings.home) as store:
            yield store


@asynccontextmanager
async def open_records(settings: Settings) -> AsyncGenerator[ConversationQueries]:
    """The records of the settings' store."""
    async with open_stored(settings) as store:
        yield ConversationQueries(store, undelete_for=settings.session.undelete)


async def find(records: ConversationQueries, name: str) -> ConversationId:
    """:raises UsageError: if nothing has this name or id, with what to do next"""
    try:
        return await records.resolve_name(name)
    except NotFound as error:
        raise no_such(error) from error


def no_such(error: NotFound) -> UsageError:
    """The same, with what to do next."""
    return UsageError(f"{error}: `clew sessions list` shows what there is")


def shape_of(view: ConversationView) -> dict[str, object]:
    """A conversation as JSON."""
    return shapes.serialize_conversation(
        view.conversation, routes=view.routes, sessions=view.sessions, counts=view.counts
    )


class Reader:
    """Prints records for people."""

    def __init__(self, out: Output, notes: Output) -> None:
        self._out, self._notes = out, notes

    def conversations(self, views: Sequence[ConversationView]) -> None:
        if not views:
            self._notes.dim("no conversations yet: `clew chat` begins one")
            return
        rows = [
            (
                names(view) or "-",
                view.conversation.title or "-",
                str(view.conversation.last_seq),
                when(view.conversation.updated_at),
                view.conversation.id,
            )
            for view in views
        ]
        self._table(("NAME", "TITLE", "ENTRIES", "LAST USED", "ID"), rows)

    def hits(self, hits: Sequence[SearchHit], names_of: dict[ConversationId, str]) -> None:
        rows = [
            (
                when(hit.created_at),
                names_of[hit.conversation_id] or hit.title or hit.conversation_id,
                str(hit.seq),
                WHO[hit.role],
                hit.snippet,
            )
            for hit in hits
        ]
        if rows:
            self._table(("WHEN", "CONVERSATION", "SEQ", "WHO", "TEXT"), rows)
        else:
            self._notes.dim("nothing found")

    def more(self, cursor: str | None) -> None:
        """Say how to get the next page."""
        if cursor is not None:
            self._notes.dim(f"there are more: --cursor {cursor}")

    def conversation(self, view: ConversationView) -> None:
        """The head of what ``show`` prints."""
        found = view.conversation
        title = found.title or names(view) or found.id
        self._out.write(self._out.bold(one_line(title)) + "\n")
        self._field("id", found.id)
        self._field("routes", ", ".join(view.routes) or "none")
        self._field("began", f"{when(found.created_at)}, last used {when(found.updated_at)}")
        if found.origin is not None:
            self._field("from", f"{found.origin}, entry {found.origin_seq}")
        self._field("usage", spent(view.usage))
        for session in view.sessions:
            self._field("session", lineage(session, view.counts.get(session.id, 0)))

    def _field(self, name: str, value: str) -> None:
        self._out.write(f"{self._out.dimmed(f'{name:<8}')} {value}\n")

    def entry(self, entry: Entry) -> None:
        stamp = f"{when(entry.created_at)}  #{entry.seq}"
        if entry.kind is not EntryKind.MESSAGE or entry.role is None:
            self._out.write("\n" + self._out.dimmed(f"{stamp}  {entry.kind.value}: "))
            self._out.write(self._out.dimmed(one_line(entry.text, _TOOL_WIDTH)) + "\n")
            return
        who = WHO[entry.role]
        self._out.write(f"\n{self._out.bold(who)}  {self._out.dimmed(stamp)}\n")
        text = one_line(entry.text, _TOOL_WIDTH) if entry.role is Role.TOOL else entry.text
        if text.strip():
            self._out.write(text.rstrip("\n") + "\n")
        elif entry.role is Role.ASSISTANT and not entry.calls:
            self._out.write(self._out.dimmed("(no answer)") + "\n")
        if entry.calls:
            calls = "a tool" if len(entry.calls) == 1 else f"{len(entry.calls)} tools"
            self._out.write(self._out.dimmed(f"(calls {calls})") + "\n")

    def context(self, view: ContextView) -> None:
        """What the model will be sent, in full."""
        closed = (
            "" if view.session.is_open else ", closed: the next message opens another with this"
        )
        count = f"{len(view.lines)} messages, about {view.tokens:,} tokens"
        self._out.write(self._out.bold(f"context of {view.conversation}") + f"  {count}\n")
        self._field("session", f"{view.session.id}  {view.session.opened_by}{closed}")
        self._field("base", ", ".join(map(_item, view.base)) or "empty")
        self._out.write("\n" + self._out.bold("instructions") + "\n")
        if view.instructions is None:
            remark = "(none yet: they are rendered with the first request)"
            self._out.write(self._out.dimmed(remark) + "\n")
        elif view.instructions.strip():
            self._out.write(view.instructions.rstrip("\n") + "\n")
        for line in view.lines:
            place = "in the base only" if line.seq is None else f"#{line.seq}"
            stamp = self._out.dimmed(f"{place}, about {line.tokens:,} tokens")
            self._out.write(f"\n{self._out.bold(_SPEAKERS[line.role])}  {stamp}\n")
            if line.text.strip():
                self._out.write(line.text.rstrip("\n") + "\n")
            for call in line.calls:
                self._out.write(self._out.dimmed(f"(calls {call})") + "\n")

    def preview(self, value: CompactionPreview) -> None:
        """What a compaction would do."""
        if not value.replaced_lines:
            self._notes.dim(value.note)
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
                _SPEAKERS[line.role],
                f"{line.tokens:,}",
                line.text,
            )
            for n, line in enumerate(value.lines)
        ]
        self._table(("WHAT", "SEQ", "WHO", "TOKENS", "TEXT"), rows)

    def _table(self, heads: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        first, *lines = table(heads, rows)
        self._out.write(self._out.dimmed(first) + "\n")
        for line in lines:
            self._out.write(line + "\n")


def _item(item: BaseItem) -> str:
    if isinstance(item, EntryRange):
        return f"#{item.first}" if item.first == item.last else f"#{item.first} to #{item.last}"
    return "a message of its own"


def names(view: ConversationView) -> str:
    """The NAMEs by which a conversation is reached here; routes of other fronts as they are."""
    return ", ".join(_short(key) for key in view.routes)


def _short(key: str) -> str:
    route = Route.parse(key)
    plain = route.platform == LOCAL and route.agent == "main"
    return route.chat if plain else key


def when(moment: datetime) -> str:
    """A moment in local time."""
    return moment.astimezone().strftime("%Y-%m-%d %H:%M")


def spent(used: TokenUsage) -> str:
    cached = f" ({used.cached_tokens:,} cached)" if used.cached_tokens else ""
    cost = f", {used.cost_micros / 1e6:.4f} USD" if used.cost_micros is not None else ""
    return f"{used.input_tokens:,} tokens in{cached}, {used.output_tokens:,} out{cost}"


def lineage(session: Session, entries: int) -> str:
    """One session: how it began and ended."""
    end = "open"
    if session.ended_at is not None:
        end = f"ended {when(session.ended_at)} by {session.end_reason}"
    after = f" after {session.predecessor}" if session.predecessor else ""
    return f"{session.id}  {session.opened_by}{after}, {entries} entries, {end}"
