"""
Queries on conversations, and their renaming and deletion.

Needs no agent and no owner, and imports neither, so that a lookup is quick.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from clew.core import scope as scopes
from clew.core.conversation import ALL_CONVERSATIONS, UNDELETE_FOR
from clew.engine.validation import validate_title
from clew.store import maintenance
from clew.store.transactions import (
    attachments,
    conversation_state,
    conversations,
    deletion,
    entries,
    journal,
    listing,
    turn_queries,
    undelete,
    views,
)
from clew.wording import DELETED_NOTICE, RESTORED_NOTICE

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import datetime

    from clew.core.context_view import ContextView
    from clew.core.conversation import Conversation, ConversationFilter
    from clew.core.conversation_state import ConversationState
    from clew.core.entry import Entry
    from clew.core.ids import ConversationId, SessionId, TurnId
    from clew.core.journal import CallFacts
    from clew.core.scope import Scope
    from clew.engine.exports import ConversationExporter
    from clew.engine.lineage import SessionSummary
    from clew.store.contract import Store
    from clew.store.search import SearchPage
    from clew.store.transactions.attachments import StoredFile
    from clew.store.transactions.lineage import Lineage
    from clew.store.transactions.listing import ConversationPage, ScopeCount
    from clew.store.transactions.undelete import DeletedConversation
    from clew.store.transactions.views import (
        ConversationView as ConversationView,  # noqa: PLC0414  (fronts name it)
    )
    from clew.store.transactions.views import ConversationViewPage


class ConversationQueries:
    """The operations that need no running engine."""

    def __init__(self, store: Store, *, undelete_for: timedelta = UNDELETE_FOR) -> None:
        self._store = store
        self._undelete_for = undelete_for

    async def resolve_name(self, name: str, *, viewer: Scope = scopes.LOCAL) -> ConversationId:
        """
        Return the conversation of a name: an id, any of its session ids, a route or a NAME.

        :raises NotFound: if it means nothing that ``viewer`` may see
        """
        conversation = await self._store.read(conversations.resolve_conversation, name)
        await self._require_visible(conversation, name, viewer)
        return conversation

    async def _require_visible(
        self, conversation: ConversationId, name: str, viewer: Scope
    ) -> Conversation:
        return await self._store.read(
            conversations.get_visible_conversation, conversation, viewer=viewer, name=name
        )

    async def find_file(self, conversation: ConversationId, file: str) -> StoredFile | None:
        """Return a file of a conversation; ``None`` if it has none with this id."""
        return await self._store.read(attachments.find_file, conversation, file)

    async def get_view(
        self, conversation: ConversationId, *, viewer: Scope = scopes.LOCAL
    ) -> ConversationView:
        """
        Return a conversation with its sessions and usage.

        :raises NotFound: if there is no such conversation that ``viewer`` may see
        """
        return await self._store.read(views.get_view, conversation, viewer=viewer)

    async def list_conversations(
        self,
        *,
        viewer: Scope = scopes.LOCAL,
        title: str = "",
        cursor: str | None = None,
        limit: int = 50,
        adhoc: bool = False,
    ) -> ConversationPage:
        """Return the conversations that ``viewer`` may see, the last used first."""
        return await self._store.read(
            listing.list_conversations,
            viewer=viewer,
            title=title,
            cursor=cursor,
            limit=limit,
            adhoc=adhoc,
        )

    async def list_views(
        self,
        *,
        viewer: Scope = scopes.LOCAL,
        title: str = "",
        cursor: str | None = None,
        limit: int = 50,
        adhoc: bool = False,
        wanted: ConversationFilter = ALL_CONVERSATIONS,
    ) -> ConversationViewPage:
        """Return conversations as ``list_conversations`` does, each with its details."""
        return await self._store.read(
            views.list_views,
            viewer=viewer,
            title=title,
            cursor=cursor,
            limit=limit,
            adhoc=adhoc,
            wanted=wanted,
        )

    async def get_call_facts(
        self, conversation: ConversationId, turn: TurnId, call_id: str
    ) -> CallFacts:
        """
        Return the effect, the times and the reason of a tool call.

        :raises NotFound: if there is no such call in the turn
        """
        return await self._store.read(journal.get_call_facts, conversation, turn, call_id)

    def make_exporter(self, *, secrets: Iterable[str]) -> ConversationExporter:
        """Return a reader of exports, in which none of the ``secrets`` is."""
        from clew.engine.exports import ConversationExporter  # noqa: PLC0415  (needed by exports only)

        return ConversationExporter(self._store, secrets=secrets)

    async def list_scopes(self, *, viewer: Scope = scopes.LOCAL) -> Sequence[ScopeCount]:
        """Return the people and chats with conversations that ``viewer`` may see."""
        return await self._store.read(listing.list_scopes, viewer=viewer)

    async def read_entries(
        self,
        conversation: ConversationId,
        *,
        viewer: Scope = scopes.LOCAL,
        after: int = 0,
        limit: int = 200,
    ) -> Sequence[Entry]:
        """
        Return at most ``limit`` entries above ``after``, in order.

        :raises NotFound: if there is no such conversation that ``viewer`` may see
        """
        await self._require_visible(conversation, conversation, viewer)
        return await self._store.read(
            entries.read_entries_after, conversation, after=after, limit=limit
        )

    async def read_last_entries(
        self,
        conversation: ConversationId,
        *,
        viewer: Scope = scopes.LOCAL,
        before: int,
        limit: int = 200,
    ) -> Sequence[Entry]:
        """
        Return the last ``limit`` entries below ``before``, in order.

        :raises NotFound: if there is no such conversation that ``viewer`` may see
        """
        await self._require_visible(conversation, conversation, viewer)
        return await self._store.read(
            entries.read_entries_before, conversation, before=before, limit=limit
        )

    async def find_trace(self, conversation: ConversationId) -> str | None:
        """Return the trace of the newest turn, if it is traced."""
        return await self._store.read(turn_queries.find_newest_trace, conversation)

    async def read_traces(
        self, conversation: ConversationId, *, first: int, last: int
    ) -> Mapping[TurnId, str]:
        """Return the traces of the turns that have entries in a span."""
        return await self._store.read(
            turn_queries.read_traces, conversation, first=first, last=last
        )

    async def get_head(self, conversation: ConversationId) -> SessionId:
        """
        Return the head session of a conversation.

        :raises NotFound: if there is no such conversation
        """
        return (await self._store.read(conversations.get_conversation, conversation)).head

    async def get_state(
        self, conversation: ConversationId, *, viewer: Scope = scopes.LOCAL
    ) -> ConversationState:
        """
        Return the activity of the conversation and its queued inputs.

        :raises NotFound: if there is no such conversation that ``viewer`` may see
        """
        await self._require_visible(conversation, conversation, viewer)
        return await self._store.read(conversation_state.get_conversation_state, conversation)

    async def read_lineage(
        self, conversation: ConversationId, *, viewer: Scope = scopes.LOCAL
    ) -> tuple[Lineage, dict[str, SessionSummary]]:
        """
        Return where a conversation comes from, its sessions with their summaries, its branches.

        :raises NotFound: if there is no such conversation that ``viewer`` may see
        """
        from clew.engine.lineage import read_lineage  # noqa: PLC0415  (the model library: a second)

        return await read_lineage(self._store, conversation, viewer=viewer)

    async def inspect_context(
        self, conversation: ConversationId, *, viewer: Scope = scopes.LOCAL
    ) -> ContextView:
        """
        Return the context that the model receives before the next message.

        :raises NotFound: if there is no such conversation that ``viewer`` may see
        """
        from clew.engine.context_inspection import inspect_context  # noqa: PLC0415  (the model library: a second)

        await self._require_visible(conversation, conversation, viewer)
        return await inspect_context(self._store, conversation)

    async def search_messages(
        self,
        query: str,
        *,
        viewer: Scope = scopes.LOCAL,
        cursor: str | None = None,
        limit: int = 20,
    ) -> SearchPage:
        """Return messages with the words of ``query`` that ``viewer`` may see, newest first."""
        return await maintenance.run_search(
            self._store, query, viewer=viewer, cursor=cursor, limit=limit
        )

    async def update_search_index(self) -> None:
        """Index the messages that are not indexed yet; rebuild a damaged index."""
        await maintenance.update_index(self._store)

    async def rename_conversation(
        self,
        conversation: ConversationId,
        title: str | None,
        *,
        viewer: Scope = scopes.LOCAL,
    ) -> Conversation:
        """
        Set or remove the title of a conversation.

        :raises UsageError: if the title is empty or too long
        :raises TitleTaken: if another conversation of the same scope has it
        """
        await self._require_visible(conversation, conversation, viewer)
        cleaned = None if title is None else validate_title(title)
        await self._store.write(conversations.rename_conversation, conversation, cleaned)
        return await self._store.read(conversations.get_conversation, conversation)

    async def delete_conversation(
        self, conversation: ConversationId, *, viewer: Scope = scopes.LOCAL, at_once: bool = False
    ) -> datetime | None:
        """
        Delete a conversation: nobody can read or write it from now on.

        It can be restored for the time of ``session.undelete``; then its rows are removed.
        ``at_once`` removes them now, also those of an already deleted conversation.

        :return: the time until which it can be restored
        :raises NotFound: if there is no such conversation that ``viewer`` may see
        """
        now = at_once or not self._undelete_for
        if not now or await self._find_deleted(conversation, viewer) is None:
            await self._require_visible(conversation, conversation, viewer)
            undo_for = timedelta(0) if now else self._undelete_for
            await self._store.write(
                deletion.mark_deleted, conversation, undo_for=undo_for, notice=DELETED_NOTICE
            )
        if not now:
            found = await self._find_deleted(conversation, viewer)
            return None if found is None else found.undo_until
        # It may have been restored in between.
        if await self._store.write(undelete.end_grace_period, conversation, at_once=True):
            await maintenance.erase_conversation(self._store, conversation)
            await self._store.write(deletion.delete_orphan_blobs)
        return None

    async def _find_deleted(
        self, conversation: ConversationId, viewer: Scope
    ) -> DeletedConversation | None:
        found = await self.list_deleted(viewer=viewer)
        return next((each for each in found if each.id == conversation), None)

    async def list_deleted(self, *, viewer: Scope = scopes.LOCAL) -> Sequence[DeletedConversation]:
        """Return the deleted conversations that can be restored, the last deleted first."""
        return await self._store.read(undelete.list_deleted_conversations, viewer=viewer)

    async def undelete_conversation(
        self, conversation: ConversationId, *, viewer: Scope = scopes.LOCAL
    ) -> Conversation:
        """
        Restore a deleted conversation; its cancelled work stays cancelled.

        :raises NotFound: if it was not deleted, its rows are gone, or ``viewer`` may not
            see it
        """
        return await self._store.write(
            undelete.undelete_conversation, conversation, viewer=viewer, notice=RESTORED_NOTICE
        )

    async def check_store(self) -> None:
        """
        Check that the store works.

        :raises StoreError: if it cannot be read and written now
        """
        await self._store.check_available()
