"""Beginning a new conversation under a name."""

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
    from clew.engine.records import ConversationView


def begin(settings: Settings, name: str, title: str | None) -> ConversationView:
    """
    Have ``name`` mean a new conversation, and the one before ended.

    :raises UsageError: if ``name`` is an id, or the title cannot be used
    """
    with logs_to_file(settings):
        return asyncio.run(_begin(settings, name, title))


async def _begin(settings: Settings, name: str, title: str | None) -> ConversationView:
    async with open_application(settings, role="sessions", own_only=True) as product:
        engine = product.engine
        route = engine.parse_target(name)
        if isinstance(route, str):
            raise UsageError(f"{name!r} is an id: give the NAME that is to mean something new")
        before = await _resolved(engine, route)
        conversation = await engine.start_new_conversation(route)
        if title is not None:
            await engine.rename_conversation(conversation, title)
        if before is not None:
            await _ended(engine, before)
        return await engine.get_view(conversation)


async def _resolved(engine: Engine, route: Route) -> ConversationId | None:
    try:
        return await engine.resolve_name(route.key)
    except NotFound:
        return None


async def _ended(engine: Engine, conversation: ConversationId) -> None:
    """Wait a moment for the end that was filed; later the next process would carry it out."""
    for _ in range(100):
        if not await engine.list_queue(conversation):
            return
        await asyncio.sleep(0.02)
