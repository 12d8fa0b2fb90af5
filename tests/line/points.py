"""Points: the places where a turn waits, and what is done at one of them."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Concatenate, ParamSpec, TypeVar

from clew.store.contract import Store
from tests.killing.killer import job_name

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from clew.store.contract import Tx

T = TypeVar("T")
P = ParamSpec("P")

#: Transactions on the path of a message; others run beside it.
JOBS = frozenset(
    {
        "approvals.request_approval",
        "compactions.rotate_compacted",
        "context.read_head_context",
        "entries.append_entries",
        "entries.read_entries_after",
        "context.read_context_update",
        "journal.list_step_calls",
        "tool_journal._read_call",
        "journal.record_intent",
        "journal.count_rerun",
        "journal.resume_suspended",
        "journal.record_result",
        "locks.release_compression_lock",
        "locks.try_acquire_compression_lock",
        "rewinds.roll_back_turn",
        "turns.begin_work",
        "turns.finish_turn",
        "turns.may_steer",
        "turns.steer_turn",
        "turns.store_attempt",
        "turns.store_request",
        "turns.store_step",
        "turns.suspend_turn",
        "due_work.find_next_work",
    }
)


class Points:
    """Notes each point that is come to, once armed, and acts at one: by its number or its name."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self._at: int | str | None = None
        self._act: Callable[[], Awaitable[None]] | None = None
        self._acted = asyncio.Event()

    def arm(self, at: int | str | None, act: Callable[[], Awaitable[None]] | None) -> None:
        self.names, self._at, self._act = [], at, act
        self._acted.clear()

    async def acted(self) -> bool:
        """Return whether the point was reached; wait for its action, else disarm it."""
        if self._act is not None:
            self._act = None
            return False
        await self._acted.wait()
        return True

    async def reach(self, name: str) -> None:
        self.names.append(name)
        if self._act is not None and self._at in (len(self.names), name):
            act, self._act = self._act, None
            # A stop ends the task that is at the point; what is done there goes on.
            acting = asyncio.ensure_future(act())
            acting.add_done_callback(lambda _: self._acted.set())
            await asyncio.shield(acting)


class PointedStore(Store):
    """A store whose calls are points: before each, while it is under way, and after it."""

    def __init__(self, inner: Store, points: Points) -> None:
        self.inner, self._points = inner, points

    async def write(
        self, job: Callable[Concatenate[Tx, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        return await self._at_points(job_name(job), lambda: self.inner.write(job, *args, **kwargs))

    async def read(
        self, job: Callable[Concatenate[Tx, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        return await self._at_points(job_name(job), lambda: self.inner.read(job, *args, **kwargs))

    async def _at_points(self, name: str, call: Callable[[], Awaitable[T]]) -> T:
        if name not in JOBS:
            return await call()
        await self._points.reach(f"{name} before")
        under_way = asyncio.ensure_future(call())
        # As in a real store: what was begun goes on, although its caller is cancelled.
        under_way.add_done_callback(_retrieved)
        await asyncio.sleep(0)
        await self._points.reach(f"{name} under way")
        result = await asyncio.shield(under_way)
        await self._points.reach(f"{name} after")
        return result

    def watch_changes(self) -> AsyncIterator[frozenset[str] | None]:
        return self.inner.watch_changes()

    async def register_owner(self, owner: str) -> None:
        await self.inner.register_owner(owner)

    async def check_available(self) -> None:
        await self.inner.check_available()

    async def aclose(self) -> None:
        await self.inner.aclose()


class Forgetful(PointedStore):
    """A store that loses the answer to each write, so that it is made once more."""

    async def write(
        self, job: Callable[Concatenate[Tx, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        await self.inner.write(job, *args, **kwargs)
        return await super().write(job, *args, **kwargs)


def _retrieved(future: asyncio.Future[T]) -> None:
    if not future.cancelled():
        future.exception()
