"""Calls of the tool ``delegate``: open a child, and wait for it as long as that is sensible."""

from __future__ import annotations

import asyncio
import time
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

from clew.background import cancel_and_wait
from clew.errors import UsageError
from clew.features.delegation import children
from clew.features.delegation.ending import read_answer
from clew.features.delegation.opening import TaskRequest, open_child
from clew.features.delegation.wording import format_answer, format_started
from clew.plugin import get_turn_context

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from clew.features.delegation.children import Child
    from clew.features.delegation.kinds import TaskTerms
    from clew.features.delegation.settings import DelegationSettings
    from clew.plugin import TurnContext
    from clew.store.contract import Store, Tx

#: Seconds after which the store is asked again although it has told of no change.
_LONGEST_PAUSE: Final = 2.0


async def delegate(request: TaskRequest, terms: TaskTerms) -> str:
    """
    Open a child, or find the one that this call has opened, and return its answer.

    :raises UsageError: saying what is wrong and what would do
    """
    context = get_turn_context()
    if context is None or context.call_key is None:
        raise UsageError("tasks are given in turns only")
    settings = terms.limits
    async with _watch_changes(context.services.store) as changed:
        child = await _open(context, request, terms, changed)
        if child is None:
            raise UsageError(
                f"{settings.at_once} tasks run already: wait for the end of one, or do it yourself"
            )
        context.services.work_on(child.conversation_id)
        if child.background:
            return format_started(child)
        return await _wait_for_answer(context.services.store, child, settings, changed)


async def _open(
    context: TurnContext,
    request: TaskRequest,
    terms: TaskTerms,
    changed: asyncio.Event,
) -> Child | None:
    """Open a child as soon as its tree has a place; in the background at once or not at all."""
    store, end = context.services.store, time.monotonic() + terms.limits.wait.total_seconds()
    while True:
        changed.clear()
        child = await store.write(open_child, context, request, terms)
        left = end - time.monotonic()
        if child is not None or request.background or left <= 0:
            return child
        await _wait(changed, left)


async def _wait_for_answer(
    store: Store, child: Child, settings: DelegationSettings, changed: asyncio.Event
) -> str:
    longest = settings.wait.total_seconds()
    while True:
        changed.clear()
        answer, waited = await store.read(_read_progress, child)
        if answer is not None:
            return answer
        if waited < longest:
            await _wait(changed, longest - waited)
        elif await store.write(children.move_to_background, child.conversation_id):
            return format_started(child)


def _read_progress(t: Tx, child: Child) -> tuple[str | None, float]:
    """Return the answer of a child that has ended, and the seconds since it was opened."""
    now = children.find_child(t, child.conversation_id)
    if now is None:
        return f"The task {child.title!r} was deleted, with its answer.", 0
    waited = (t.now - now.created_at) / 1000
    if now.background:
        # The same call, after it was told so.
        return format_started(now), waited
    return None if now.is_running else format_answer(now, read_answer(t, now)), waited


@asynccontextmanager
async def _watch_changes(store: Store) -> AsyncGenerator[asyncio.Event]:
    """Set an event with each change of the store."""
    changed = asyncio.Event()

    async def watch() -> None:
        async for _ in store.watch_changes():
            changed.set()

    task = asyncio.create_task(watch(), name="delegation:changes")
    try:
        yield changed
    finally:
        await cancel_and_wait(task)


async def _wait(changed: asyncio.Event, longest: float) -> None:
    """Wait for a change, at most for so many seconds."""
    pause = min(longest, _LONGEST_PAUSE)
    try:
        async with asyncio.timeout(pause):
            await changed.wait()
    except TimeoutError:
        return
