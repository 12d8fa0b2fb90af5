"""Conversation titles: requested ones, stored until they can be set, and automatic ones."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

import structlog

from clew.agent.title_generation import make_fallback_title, parse_title, request_title
from clew.core.conversation import TitledBy
from clew.engine.validation import validate_title
from clew.errors import NotFound, TitleTaken, UsageError
from clew.store.transactions import conversations, titles
from clew.store.transactions.usage import TokenUsage, UsageRecord, record_usage

if TYPE_CHECKING:
    from clew.agent.models import Model
    from clew.core.ids import ConversationId, IdGenerator, SessionIdFactory
    from clew.core.route import Route
    from clew.store.contract import Store, Tx

log = structlog.get_logger(__name__)

#: Limit of the numbers tried when an automatic title is taken: "Trip (2)" …
_MAX_NUMBER = 100


class TitleService:
    """
    The title queue, processed after turns, one title at a time.

    ``model`` writes the automatic ones; without it, and if it fails, the title is the
    beginning of the person's first message.
    """

    def __init__(
        self,
        store: Store,
        ids: IdGenerator,
        *,
        session_ids: SessionIdFactory,
        model: Model | None = None,
    ) -> None:
        self._store, self._ids, self._session_ids = store, ids, session_ids
        self._model = model
        self._queue: asyncio.Queue[ConversationId] = asyncio.Queue()

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
        except Exception as error:  # noqa: BLE001  (the title is kept, to be set later)
            log.warning("title_kept", conversation=conversation, error=repr(error))
            await self._store.write(titles.set_pending_title, conversation, title)

    def schedule_title(self, conversation: ConversationId) -> None:
        """Queue an answered conversation, which soon gets the title that it lacks."""
        self._queue.put_nowait(conversation)

    async def run(self) -> None:
        """Process the queue, without end."""
        while True:
            conversation = await self._queue.get()
            try:
                await self._title_conversation(conversation)
            except NotFound:
                pass  # deleted meanwhile
            except Exception as error:  # noqa: BLE001  (a later turn tries again)
                log.warning("title_not_given", conversation=conversation, error=repr(error))
            finally:
                self._queue.task_done()

    async def wait_until_idle(self) -> None:
        """Wait until the queue is processed."""
        await self._queue.join()

    async def _title_conversation(self, conversation: ConversationId) -> None:
        pending = await self._store.read(titles.get_pending_title, conversation)
        if pending is not None and await self._set_pending_title(conversation, pending):
            return
        if await self._store.read(titles.needs_title, conversation):
            await self._generate_title(conversation)

    async def _set_pending_title(self, conversation: ConversationId, title: str) -> bool:
        """
        Set a stored title; return ``False`` if it cannot be used and was dropped.

        After any other error it stays stored, to be set after a later turn.
        """
        try:
            await self._store.write(
                titles.apply_pending_title, conversation, title, as_=validate_title(title)
            )
        except NotFound:
            raise
        except (UsageError, ValueError) as error:
            log.info("title_dropped", conversation=conversation, error=str(error))
            await self._store.write(titles.discard_pending_title, conversation, title)
            return False
        return True

    async def _generate_title(self, conversation: ConversationId) -> None:
        exchange = await self._store.read(titles.read_first_exchange, conversation)
        if exchange is None:
            return
        said, answer = exchange
        title = await self._suggest_title(conversation, said, answer) or make_fallback_title(said)
        if title is not None:
            with suppress(TitleTaken):  # by another process since we looked: after the next turn
                await self._store.write(_set_unique_title, conversation, title)

    async def _suggest_title(
        self, conversation: ConversationId, said: str, answer: str
    ) -> str | None:
        if self._model is None:
            return None
        try:
            response = await request_title(self._model, said=said, answer=answer)
        except Exception as error:  # noqa: BLE001  (whatever a provider raises; there is a fallback)
            log.warning("title_not_suggested", conversation=conversation, error=str(error))
            return None
        usage = response.usage
        request = UsageRecord(
            id=self._ids.new_usage_id(),
            used=TokenUsage(
                input_tokens=usage.input_tokens,
                cached_tokens=usage.cache_read_tokens,
                output_tokens=usage.output_tokens,
            ),
            model=response.model_name or "unknown",
            purpose="title",
        )
        await self._store.write(record_usage, conversation, request)
        return parse_title(response)


def _set_unique_title(t: Tx, conversation: ConversationId, title: str) -> None:
    """Set an automatic title, with a number if it is taken."""
    if not titles.needs_title(t, conversation):
        return
    scope = conversations.get_conversation(t, conversation).scope
    for number in range(1, _MAX_NUMBER):
        name = title if number == 1 else f"{title} ({number})"
        if not conversations.is_title_taken(t, scope, name):
            conversations.rename_conversation(t, conversation, name, titled_by=TitledBy.MODEL)
            return
