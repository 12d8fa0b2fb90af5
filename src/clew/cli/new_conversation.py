"""``clew sessions new``: start a new conversation under a name."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from clew.cli.logs import logs_to_file
from clew.errors import NotFound, UsageError
from clew.runtime import open_application

if TYPE_CHECKING:
    from clew.config import Settings
    from clew.core.ids import ConversationId
    from clew.core.route import Route
    from clew.engine.engine import Engine
    from clew.engine.queries import ConversationView


def start_new_conversation(settings: Settings, name: str, title: str | None) -> ConversationView:
    """
    Point ``name`` at a new conversation and end the previous one.

    :raises UsageError: if ``name`` is an id, or the title cannot be used
    """
    with logs_to_file(settings):
        return asyncio.run(_start_async(settings, name, title))


async def _start_async(settings: Settings, name: str, title: str | None) -> ConversationView:
    async with open_application(settings, role="sessions", own_only=True) as product:
        engine = product.engine
        route = engine.parse_target(name)
        if isinstance(route, str):
            raise UsageError(f"{name!r} is an id: give a NAME for the new conversation")
        before = await _resolve_route(engine, route)
        conversation = await engine.start_new_conversation(route)
        if title is not None:
            await engine.rename_conversation(conversation, title)
        if before is not None:
            await _wait_for_end(engine, before)
        return await engine.get_view(conversation)


async def _resolve_route(engine: Engine, route: Route) -> ConversationId | None:
    try:
        return await engine.resolve_name(route.key)
    except NotFound:
        return None


async def _wait_for_end(engine: Engine, conversation: ConversationId) -> None:
    """Wait briefly for the queued end; if it takes longer, the next process carries it out."""
    for _ in range(100):
        if not (await engine.get_view(conversation)).sessions[-1].is_open:
            return
        await asyncio.sleep(0.02)
