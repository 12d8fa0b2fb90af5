"""Conversation titles that people request; stored until they can be set."""

from __future__ import annotations

from typing import TYPE_CHECKING

import structlog

from clew.engine.validation import validate_title
from clew.errors import NotFound, UsageError
from clew.store.transactions import titles

if TYPE_CHECKING:
    from clew.core.ids import ConversationId, IdGenerator, SessionIdFactory
    from clew.core.route import Route
    from clew.store.contract import Store

log = structlog.get_logger(__name__)


class TitleService:
    """The titles that people request."""

    def __init__(
        self,
        store: Store,
        ids: IdGenerator,
        *,
        session_ids: SessionIdFactory,
    ) -> None:
        self._store, self._ids, self._session_ids = store, ids, session_ids

    async def request_title(self, target: Route | ConversationId, title: str) -> ConversationId:
        """
        Set a title that a person requests; return its conversation.

        A conversation that does not exist yet is opened, and gets the title after its first
        message. If the store fails, the title is stored for later.

        :raises UsageError: if the conversation exists and the title is empty or too long
        :raises TitleTaken: if it exists and another of the same scope has the title
        """
        if isinstance(target, str):
            await self._set_title(target, title)
            return target
        new = self._ids.new_conversation_id()
        found = await self._store.write(
            titles.open_with_title,
            target,
            title,
            new_conversation=new,
            session_ids=self._session_ids,
        )
        if found != new:
            await self._set_title(found, title)
        return found

    async def _set_title(self, conversation: ConversationId, title: str) -> None:
        try:
            await self._store.write(titles.set_title, conversation, validate_title(title))
        except (UsageError, NotFound):
            raise
        except Exception as error:  # noqa: BLE001  (whatever it is says nothing against the title)
            log.warning("title_kept", conversation=conversation, error=repr(error))
            await self._store.write(titles.set_pending_title, conversation, title)

    async def apply_pending_title(self, conversation: ConversationId) -> None:
        """Set a title that was stored for later, if there is one."""
        title = await self._store.read(titles.get_pending_title, conversation)
        if title is None:
            return
        try:
            await self._store.write(
                titles.apply_pending_title, conversation, title, as_=validate_title(title)
            )
        except NotFound:
            raise
        except (UsageError, ValueError) as error:
            log.info("title_dropped", conversation=conversation, error=str(error))
            await self._store.write(titles.discard_pending_title, conversation, title)
