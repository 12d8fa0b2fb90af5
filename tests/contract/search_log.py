"""Conversations to write to and to search in."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.clock import SystemClock, to_millis
from clew.core.entry import EntryKind, NewEntry, Role
from clew.core.ids import ConversationId, IdGenerator, OwnerId, SessionId, new_session_id
from clew.core.scope import LOCAL, Scope
from clew.store import maintenance
from clew.store.transactions import entries, leases
from clew.store.transactions.conversations import open_conversation

if TYPE_CHECKING:
    from clew.core.lease import Lease
    from clew.store.contract import Store, Tx
    from clew.store.search import SearchPage

IDS = IdGenerator(lambda: to_millis(SystemClock().now()))
OWNER = OwnerId("own_test")


def draft(text: str, kind: EntryKind = EntryKind.MESSAGE, role: Role = Role.USER) -> NewEntry:
    return NewEntry(
        id=IDS.new_entry_id(), kind=kind, role=role, text=text, format="test/1", message="{}"
    )


class Log:
    """One conversation of one scope, with its lease."""

    def __init__(self, store: Store, lease: Lease, session: SessionId, scope: Scope) -> None:
        self.store, self.lease, self.session, self.scope = store, lease, session, scope

    @classmethod
    async def open(cls, store: Store, scope: Scope = LOCAL) -> Log:
        def job(t: Tx) -> Log:
            conversation = IDS.new_conversation_id()
            session = open_conversation(t, conversation, scope=scope, session_ids=new_session_id)
            lease = leases.acquire_lease(t, conversation, owner=OWNER).lease
            return cls(store, lease, session, scope)

        return await store.write(job)

    @property
    def id(self) -> ConversationId:
        return self.lease.conversation_id

    async def say(
        self, *texts: str, kind: EntryKind = EntryKind.MESSAGE, role: Role = Role.USER
    ) -> None:
        drafts = [draft(text, kind, role) for text in texts]
        await self.store.write(entries.append_entries, self.lease, self.session, drafts)

    async def page(
        self,
        query: str,
        *,
        viewer: Scope | None = None,
        limit: int = 20,
        cursor: str | None = None,
    ) -> SearchPage:
        viewer = self.scope if viewer is None else viewer
        return await maintenance.run_search(
            self.store, query, viewer=viewer, limit=limit, cursor=cursor
        )

    async def find(self, query: str, viewer: Scope | None = None) -> list[int]:
        """The seqs of all hits, in the order of the pages."""
        found: list[int] = []
        cursor = None
        while True:
            page = await self.page(query, viewer=viewer, cursor=cursor)
            found += [hit.seq for hit in page.items]
            cursor = page.next
            if cursor is None:
                return found
