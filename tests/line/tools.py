"""Tools whose beginning and end are points."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import TYPE_CHECKING, Any

from pydantic_ai import ApprovalRequired, RunContext, Tool

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.line.points import Points


class Tools:
    """
    ``look`` runs in the loop, ``read`` in a thread; ``pay`` needs a person's word, ``dare`` asks
    for it itself.
    """

    def __init__(self, points: Points) -> None:
        self._points = points
        #: Calls that ran to their end, by tool and argument.
        self.ran: Counter[str] = Counter()

    def make(self) -> list[Tool[Any]]:
        return [
            Tool(self._in_loop("look"), name="look", metadata={"effect": "pure"}),
            Tool(self._in_thread("read"), name="read", metadata={"effect": "pure"}),
            Tool(self._in_loop("send"), name="send", metadata={"effect": "once"}),
            Tool(self._in_loop("pay"), name="pay", requires_approval=True),
            Tool(self._asking("dare"), name="dare"),
        ]

    def _in_loop(self, name: str) -> Callable[..., object]:
        async def act(what: str) -> str:
            """Act in the loop."""
            await self._points.reach(f"{name} begins")
            self.ran[f"{name} {what}"] += 1
            await self._points.reach(f"{name} ends")
            return f"{name} {what} done"

        return act

    def _in_thread(self, name: str) -> Callable[..., object]:
        loop = asyncio.get_running_loop()

        def reach(point: str) -> None:
            coming = self._points.reach(point)
            try:
                asyncio.run_coroutine_threadsafe(coming, loop).result()
            except RuntimeError:  # the world is over
                coming.close()
                raise

        def act(what: str) -> str:
            """Act in a thread."""
            ran = self.ran  # a later run does not count what a stopped one does
            reach(f"{name} begins")
            ran[f"{name} {what}"] += 1
            reach(f"{name} ends")
            return f"{name} {what} done"

        return act

    def _asking(self, name: str) -> Callable[..., object]:
        async def act(ctx: RunContext[Any], what: str) -> str:
            """Act, once a person agrees."""
            if not ctx.tool_call_approved:
                raise ApprovalRequired
            self.ran[f"{name} {what}"] += 1
            return f"{name} {what} done"

        return act
