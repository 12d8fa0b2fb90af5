"""Calls that a tool makes inside its own call."""

from __future__ import annotations

import asyncio
import json
from contextlib import contextmanager
from typing import TYPE_CHECKING

from clew.agent.protocols import CallSuspended

if TYPE_CHECKING:
    from collections.abc import Generator

    from clew.agent.protocols import ToolRequest
    from clew.core.approval import Approval
    from clew.core.journal import JournaledCall


class NestedCalls:
    """
    Calls inside one outer call, which ends as soon as one of them waits for approval.

    Those that run then are not interrupted: the outer call ends after them, and no further
    one begins.
    """

    def __init__(self) -> None:
        self._running = 0
        self._idle = asyncio.Event()
        #: One of them waits for approval, and none runs any more.
        self.is_suspended = False

    @contextmanager
    def count_running(self) -> Generator[None]:
        """
        Count a call as running in the block.

        :raises CallSuspended: if the outer call is to end
        """
        if self.is_suspended:
            raise CallSuspended
        self._running += 1
        try:
            yield
        finally:
            self._running -= 1
            if not self._running:
                self._idle.set()

    async def suspend(self) -> None:
        """
        Wait until no call runs, and end the outer one.

        :raises CallSuspended: always
        """
        while self._running:
            self._idle.clear()
            await self._idle.wait()
        self.is_suspended = True
        raise CallSuspended


def is_same_call(stored: JournaledCall | Approval, request: ToolRequest) -> bool:
    """Return whether a stored call and a request have the same tool and arguments."""
    asked = stored.args if stored.requested is None else stored.requested
    return stored.tool == request.tool and json.loads(asked) == json.loads(request.args)
