"""Work after turns: one conversation at a time, beside the turns."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import structlog

from clew.errors import NotFound

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from clew.core.ids import ConversationId

log = structlog.get_logger(__name__)

#: Seconds that one piece of work may take for a conversation.
WORK_TIMEOUT = 60.0

#: A piece of work and its name, for the log.
NamedWork = tuple[str, "Callable[[ConversationId], Awaitable[None]]"]


class AfterTurnQueue:
    """
    The queue of conversations whose turn ended, for the work that features do with each.

    A piece that fails or takes too long ends only itself: a later turn tries again.
    """

    def __init__(
        self, work: Sequence[NamedWork] = (), *, at_every_end: Sequence[NamedWork] = ()
    ) -> None:
        self._work, self._at_every_end = work, at_every_end
        self._queue: asyncio.Queue[tuple[ConversationId, bool]] = asyncio.Queue()

    def schedule(self, conversation: ConversationId, *, answered: bool = True) -> None:
        """Queue a conversation whose turn was answered, or in which something else was done."""
        self._queue.put_nowait((conversation, answered))

    async def run(self) -> None:
        """Process the queue, without end."""
        while True:
            conversation, answered = await self._queue.get()
            try:
                for name, work in (*(self._work if answered else ()), *self._at_every_end):
                    await _run_work(name, work, conversation)
            finally:
                self._queue.task_done()

    async def wait_until_idle(self) -> None:
        """Wait until the queue is processed."""
        await self._queue.join()


async def _run_work(
    name: str, work: Callable[[ConversationId], Awaitable[None]], conversation: ConversationId
) -> None:
    try:
        async with asyncio.timeout(WORK_TIMEOUT):
            await work(conversation)
    except NotFound:
        pass  # deleted meanwhile
    except Exception as error:  # noqa: BLE001  (the code of a feature may raise anything)
        log.warning("after_turn_failed", work=name, conversation=conversation, error=repr(error))
