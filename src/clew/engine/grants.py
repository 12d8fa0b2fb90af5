"""Grants and reasons, as people see them: what is allowed for longer, and why a call ran."""

from __future__ import annotations

from typing import TYPE_CHECKING

from clew.core.scope import LOCAL, can_see
from clew.errors import NotFound
from clew.store.transactions import grants, journal

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clew.core.grant import Grant
    from clew.core.ids import ConversationId, GrantId
    from clew.core.journal import JournaledCall
    from clew.core.scope import Scope
    from clew.store.contract import Store, Tx


class GrantService:
    """Grants of people, and the reasons stored with calls."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def list_grants(self, *, viewer: Scope) -> Sequence[Grant]:
        """Return the grants in force that a viewer may see, oldest first."""
        return await self._store.read(grants.list_grants, viewer, every=viewer == LOCAL)

    async def get_grant(self, grant: GrantId, *, viewer: Scope) -> Grant:
        """
        Return a grant, in whatever state.

        :raises NotFound: if there is no such grant that the viewer may see
        """
        return await self._store.read(_get_visible, grant, viewer=viewer)

    async def revoke_grant(self, grant: GrantId, *, viewer: Scope) -> Grant:
        """
        Revoke a grant; from then on, its calls are asked about again.

        :raises NotFound: if there is no such grant that the viewer may see
        """
        return await self._store.write(_revoke_visible, grant, viewer=viewer)

    async def list_calls(
        self, conversation: ConversationId, *, limit: int
    ) -> Sequence[JournaledCall]:
        """Return the last tool calls of a conversation, the newest last."""
        return await self._store.read(journal.list_last_calls, conversation, limit=limit)


def _get_visible(t: Tx, grant: GrantId, *, viewer: Scope) -> Grant:
    found = grants.get_grant(t, grant)
    if not can_see(viewer, found.scope):
        raise NotFound("grant", grant)
    return found


def _revoke_visible(t: Tx, grant: GrantId, *, viewer: Scope) -> Grant:
    _get_visible(t, grant, viewer=viewer)
    return grants.revoke_grant(t, grant)
