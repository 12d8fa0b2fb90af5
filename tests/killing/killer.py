"""Signals to one's own process, at the n-th time that it comes to a named place."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Concatenate, NoReturn, ParamSpec, TypeVar

from clew.store.contract import Store
from tests.killing.plans import order_in
from tests.killing.records import Killed, Log

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path

    from clew.store.contract import Tx

T = TypeVar("T")
P = ParamSpec("P")

#: The place where the provider does the killing.
REQUEST = "request under way"


@dataclass(frozen=True, kw_only=True, slots=True)
class Place:
    """
    Point at which a process is killed, or sent another signal.

    ``JOB before``: a write of the store was asked for; ``JOB inside``: it has run, its commit has
    not; ``JOB after``: it is committed and nobody was told. ``tool NAME before|after``: around the
    effect of a tool. ``REQUEST``: while the provider has a request of ours. Others are the front's.
    """

    name: str
    nth: int = 1
    signal: signal.Signals = signal.SIGKILL


class Killer:
    """Sends the signal to this process at a place, once it is armed."""

    def __init__(self, place: Place | None, log: Log, control: Path) -> None:
        self._place, self._log, self._control = place, log, control
        self._armed, self._seen = False, 0
        self._lock = threading.Lock()

    def arm(self) -> None:
        """From now on the place counts."""
        self._armed = True
        if self._place is not None and self._place.name == REQUEST:
            order = {"pid": os.getpid(), "nth": self._place.nth}
            draft = self._control / f"kill.{os.getpid()}"
            draft.write_text(json.dumps(order))
            draft.rename(order_in(self._control))

    def reach(self, name: str) -> None:
        """This process is at a place; called in any thread."""
        if not self._armed or self._place is None or self._place.name != name:
            return
        with self._lock:
            self._seen += 1
            if self._seen == self._place.nth:
                self._log.add(Killed(place=name))
                if self._place.signal is signal.SIGKILL:
                    die()
                os.kill(os.getpid(), self._place.signal)


def die() -> NoReturn:
    """End this process as the kernel does when memory is short."""
    os.kill(os.getpid(), signal.SIGKILL)
    # The signal comes when the kernel gets to it.
    time.sleep(60)
    raise AssertionError("SIGKILL did not kill")


def job_name(job: Callable[..., object]) -> str:
    """``inbox.accept_input`` for ``clew.store.transactions.inbox.accept_input``."""
    return f"{job.__module__.rpartition('.')[2]}.{job.__name__}"


class WatchedStore(Store):
    """A store in which each write is three places; ``reach`` is told of each, in any thread."""

    def __init__(
        self, inner: Store, reach: Callable[[str], None], told: Callable[[object], object] = id
    ) -> None:
        """``told`` sees the result of every write."""
        self._inner, self._reach, self._told = inner, reach, told

    async def write(
        self, job: Callable[Concatenate[Tx, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        name = job_name(job)

        def inside(t: Tx) -> T:
            result = job(t, *args, **kwargs)
            self._reach(f"{name} inside")
            return result

        self._reach(f"{name} before")
        result = await self._inner.write(inside)
        self._reach(f"{name} after")
        self._told(result)
        return result

    async def read(
        self, job: Callable[Concatenate[Tx, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        return await self._inner.read(job, *args, **kwargs)

    def watch_changes(self) -> AsyncIterator[frozenset[str] | None]:
        return self._inner.watch_changes()

    async def register_owner(self, owner: str) -> None:
        await self._inner.register_owner(owner)

    async def check_available(self) -> None:
        await self._inner.check_available()

    async def aclose(self) -> None:
        await self._inner.aclose()
