"""Titles: a person's are given or kept until they can be; else a conversation names itself."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

import structlog

from clew.agent.titler import make_fallback_title, parse_title, request_title
from clew.core.conversation import TitledBy
from clew.engine.checks import checked_title
from clew.errors import NotFound, TitleTaken, UsageError
from clew.store.transactions import conversations, titles
from clew.store.transactions.usage import TokenUsage, UsageRecord, record_usage

if TYPE_CHECKING:
    from clew.agent.models import Model
    from clew.core.ids import ConversationId, IdGenerator, SessionIdFactory
    from clew.core.route import Route
    from clew.store.contract import Store, Tx

log = structlog.get_logger(__name__)

#: Numbers that are tried where an automatic title is taken: "Trip (2)" …
_MOST_NUMBERS = 100


class Titles:
    """
    Gives titles after turns, off their path, one at a time.

    ``model`` writes the automatic ones; without it, and where it fails, they are the beginning of
    what the person said first.
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
        self._line: asyncio.Queue[ConversationId] = asyncio.Queue()

    async def ask(self, target: Route | ConversationId, title: str) -> ConversationId:
        """
        A person asks for a title; the conversation that it is for.

        One that is not there yet is opened, and gets the title once something was said in it. Where
        the store fails, the title is kept for later.

        :raises UsageError: if the conversation is there and the title is empty or too long
        :raises TitleTaken: if it is there and another of the same scope has the title
        """
        if isinstance(target, str):
            await self._give(target, title)
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
            await self._give(found, title)
        return found

    async def _give(self, conversation: ConversationId, title: str) -> None:
        try:
            await self._store.write(titles.set_title, conversation, checked_title(title))
        except (UsageError, NotFound):
            raise
        except Exception as error:  # noqa: BLE001  (whatever it is says nothing against the title)
            log.warning("title_kept", conversation=conversation, error=repr(error))
            await self._store.write(titles.set_pending_title, conversation, title)

    def after_turn(self, conversation: ConversationId) -> None:
        """A turn was answered: whatever title the conversation lacks is given soon."""
        self._line.put_nowait(conversation)

    async def run(self) -> None:
        """Work the line off, for ever."""
        while True:
            conversation = await self._line.get()
            try:
                await self._title(conversation)
            except NotFound:
                pass  # it was deleted meanwhile
            except Exception as error:  # noqa: BLE001  (as above: a later turn tries again)
                log.warning("title_not_given", conversation=conversation, error=repr(error))
            finally:
                self._line.task_done()

    async def idle(self) -> None:
        """Wait until nothing is left to be given now."""
        await self._line.join()

    async def _title(self, conversation: ConversationId) -> None:
        pending = await self._store.read(titles.get_pending_title, conversation)
        if pending is not None and await self._give_pending(conversation, pending):
            return
        if await self._store.read(titles.needs_title, conversation):
            await self._name(conversation)

    async def _give_pending(self, conversation: ConversationId, title: str) -> bool:
        """
        Give a title that waits; ``False`` if it cannot be given, and is forgotten.

        Whatever else it raises, it is kept, to be given after a later turn.
        """
        try:
            await self._store.write(
                titles.apply_pending_title, conversation, title, as_=checked_title(title)
            )
        except NotFound:
            raise
        except (UsageError, ValueError) as error:
            log.info("title_dropped", conversation=conversation, error=str(error))
            await self._store.write(titles.discard_pending_title, conversation, title)
            return False
        return True

    async def _name(self, conversation: ConversationId) -> None:
        exchange = await self._store.read(titles.read_first_exchange, conversation)
        if exchange is None:
            return
        said, answer = exchange
        title = await self._suggested(conversation, said, answer) or make_fallback_title(said)
        if title is not None:
            with suppress(TitleTaken):  # by another process since we looked: after the next turn
                await self._store.write(_name_freely, conversation, title)

    async def _suggested(self, conversation: ConversationId, said: str, answer: str) -> str | None:
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


def _name_freely(t: Tx, conversation: ConversationId, title: str) -> None:
    """Give an automatic title, with a number where it is taken."""
    if not titles.needs_title(t, conversation):
        return
    scope = conversations.get_conversation(t, conversation).scope
    for number in range(1, _MOST_NUMBERS):
        name = title if number == 1 else f"{title} ({number})"
        if not conversations.is_title_taken(t, scope, name):
            conversations.rename_conversation(t, conversation, name, titled_by=TitledBy.MODEL)
            return
